"""Tables in, clients out: rows in order, labels as classes, and one sentence per mistake."""

from itertools import pairwise

import numpy as np
import pytest
from tables_made_up import AB, BY_HOSPITAL, VISITS, csv_of, mistake, parquet

from fairfl.clients.tables import from_table, load_table


def test_rows_lie_client_by_client_in_the_order_of_the_table(write):
    data = from_table(write(VISITS), **BY_HOSPITAL)
    assert data.ids == ("Alt", "Nord")
    assert data.offsets.tolist() == [0, 2, 5]
    assert data.y.tolist() == [1, 0, 0, 1, 1]
    assert data.y.dtype == np.int32
    assert (data.task, data.classes.tolist(), data.name) == ("binary", [0, 1], "visits")


def test_the_order_of_a_large_table_is_its_own(arrow, tmp_path):
    n = 300_000
    owner = np.random.default_rng(0).integers(0, 50, n)
    for part, rows in enumerate(np.array_split(np.arange(n), 3)):
        columns = {"h": owner[rows], "v": rows.astype(float), "y": rows % 2}
        parquet(arrow, tmp_path / f"part-{part}.parquet", columns)
    data = from_table(tmp_path, **AB)
    order = np.argsort(owner, kind="stable")
    np.testing.assert_array_equal(data.y, order % 2)
    assert data.sizes.tolist() == np.bincount(owner).tolist()
    assert all((np.diff(data.x[a:b, 0]) > 0).all() for a, b in pairwise(data.offsets))


def test_split_is_kept(write):
    path = write(VISITS)
    assert from_table(path, **BY_HOSPITAL, split=(0.5, 0.25, 0.25)).fractions == (0.5, 0.25, 0.25)
    assert from_table(path, **BY_HOSPITAL, split=None).fractions is None
    assert "split=(1.0, 1.0, 1.0)" in mistake(path, **BY_HOSPITAL, split=(1.0, 1.0, 1.0))


def test_features_choose_the_columns_and_their_order(write):
    path = write(VISITS)
    table = load_table(path, **BY_HOSPITAL, features=["smoker", "age", "smoker"])
    assert table.preprocessing.features == ("smoker", "age", "age is missing")
    assert load_table(path, **BY_HOSPITAL, features="smoker").data.x.shape == (5, 1)


# --- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "task", "y", "classes"),
    [
        (["no", "yes", "no", "maybe"], "multiclass", [1, 2, 1, 0], ["maybe", "no", "yes"]),
        ([5, 7, 5, 7], "binary", [0, 1, 0, 1], [5, 7]),
        ([True, False, True, True], "binary", [1, 0, 1, 1], [False, True]),
        ([1.0, 2.0, 2.0, 1.0], "binary", [0, 1, 1, 0], [1.0, 2.0]),
        ([0.5, 2.0, 1.0, 0.25], "regression", [0.5, 2.0, 1.0, 0.25], None),
        (["0", "1", "1", "0"], "binary", [0, 1, 1, 0], ["0", "1"]),
    ],
)
def test_labels_are_encoded_as_from_arrays_does(arrow, labels, task, y, classes):
    frame = arrow.table({"h": [0] * 4, "v": [1, 2, 3, 4], "y": labels})
    table = load_table(frame, **AB)
    assert table.data.task == task
    assert table.data.y.tolist() == y
    assert (None if table.data.classes is None else table.data.classes.tolist()) == classes
    again = table.preprocessing.apply(frame).y
    assert (again.dtype, again.tolist()) == (table.data.y.dtype, y)


def test_whole_numbers_make_a_regression_when_told(write):
    path = write(csv_of([1, 2, 3, 5]))
    data = from_table(path, **AB, task="regression")
    assert (data.task, data.y.dtype, data.classes) == ("regression", np.float32, None)


def test_numbers_written_as_text_make_a_regression_when_told(arrow):
    frame = arrow.table({"h": ["a", "b"], "v": [1, 2], "y": ["1.5", "3"]})
    assert from_table(frame, **AB, task="regression").y.tolist() == [1.5, 3]


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"client": "hospitl"}, "client='hospitl' is no column of"),
        ({"client": "HOSPITAL"}, "did you mean 'hospital'?"),
        ({"label": "zzz"}, "'age', 'smoker', 'city', 'readmitted'; name one of these"),
        ({"features": ["age", "smokr"]}, "features='smokr' is no column"),
        ({"features": ["age", "readmitted"]}, "'readmitted' is the label column, which cannot be"),
        ({"features": ["hospital"]}, "'hospital' is the client column, which cannot be a feature"),
        ({"label": "hospital"}, "client='hospital' and label='hospital' are the same column"),
        ({"features": []}, "has no usable feature column; give at least one besides"),
        ({"label": "city"}, "the label column 'city' is blank in 1 of 5 rows; drop these rows or"),
        ({"client": "age"}, "the client column 'age' is blank in 1 of 5 rows; drop these rows or"),
        (
            {"task": "regression", "label": "hospital", "client": "smoker"},
            "holds 'Nord'; leave task",
        ),
    ],
)
def test_wrong_arguments(write, change, expected):
    assert expected in mistake(write(VISITS), **(BY_HOSPITAL | change))


def test_a_long_list_of_columns_is_cut(arrow):
    frame = arrow.table({f"c{i}": [1] for i in range(500)})
    assert "'c29' and 470 more" in mistake(frame, client="hospital", label="c1")


def test_a_client_that_is_a_list(arrow):
    frame = arrow.table({"h": [[1], [2]], "v": [1, 2], "y": [0, 1]})
    assert "the client column 'h' holds BIGINT[] values; name a column" in mistake(frame, **AB)


def test_a_label_that_is_nan(arrow):
    frame = arrow.table({"h": [1, 2], "v": [1, 2], "y": [0.5, np.nan]})
    assert "the label column 'y' is blank in 1 of 2 rows" in mistake(frame, **AB)


@pytest.mark.parametrize("value", [1, "yes", True, 2.0, "1"])
def test_a_single_class(arrow, value):
    frame = arrow.table({"h": [1, 2], "v": [1, 2], "y": [value] * 2})
    for task in (None, "multiclass"):
        text = mistake(frame, **AB, task=task)
        assert f"every row of the label column 'y' is {value!r}; a classifier needs" in text


def test_more_classes_than_a_classifier_has(write):
    path = write(csv_of([1, 2] * 600, y=list(range(1200))))
    assert "holds 1,200 different whole numbers; say task='regression'" in mistake(path, **AB)
    assert len(from_table(path, **AB, task="multiclass").classes) == 1200
    names = write(csv_of([1, 2] * 600, y=[f"id{i}" for i in range(1200)]))
    assert "column 'y' looks like an identifier" in mistake(names, **AB)


def test_task_binary_with_three_classes(write):
    path = write(csv_of([1, 2, 3], y=["a", "b", "c"]))
    assert "task='binary' but there are 3 different labels" in mistake(path, **AB, task="binary")
