"""Columns become features: numbers worked out by hand, and new rows read the same way."""

import datetime

import numpy as np
import pytest
from tables_made_up import AB, BY_HOSPITAL, VISITS, csv_of, mistake, refusal

from fairfl.clients import preprocessing
from fairfl.clients.preprocessing import Column, Preprocessing
from fairfl.clients.tables import from_table, load_table


def test_features_are_standardised_filled_and_one_hot(write):
    table = load_table(write(VISITS), **BY_HOSPITAL)
    assert table.preprocessing.features == (
        "age",
        "age is missing",
        "smoker",
        "city = Aachen",
        "city = Bonn",
        "city = Ulm",
        "city is missing",
    )
    # Ages 30 50 (50) 70 50 around the mean 50; their variance is (400 + 400) / 5 = 160.
    z = np.float32(20 / np.sqrt(160))
    expected = [
        [0, 0, 0, 0, 1, 0, 0],
        [z, 0, 1, 0, 1, 0, 0],
        [-z, 0, 1, 0, 0, 1, 0],
        [0, 1, 1, 0, 0, 0, 1],
        [0, 0, 0, 1, 0, 0, 0],
    ]
    assert table.data.x.dtype == np.float32
    assert table.data.x.flags.c_contiguous
    np.testing.assert_array_equal(table.data.x, np.array(expected, np.float32))


def test_standardised_columns_have_mean_zero_and_deviation_one_over_all_rows(write):
    values = np.random.default_rng(0).gamma(2, 100, 501).round(3).tolist()
    values[7] = values[400] = ""
    x = from_table(write(csv_of(values)), **AB).x
    assert abs(x[:, 0].astype(np.float64).mean()) < 1e-6
    assert x[:, 0].astype(np.float64).std() == pytest.approx(1, abs=1e-6)
    assert x[:, 1].sum() == 2


def test_the_median_of_the_present_values_fills_the_gaps(write):
    column = load_table(write(csv_of([1, "", 3, 10, "", 100])), **AB).preprocessing.columns[0]
    assert column.median == 6.5
    assert column.mean == pytest.approx((1 + 3 + 10 + 100 + 13) / 6)


@pytest.mark.parametrize("value", [0.1, 0, 123456789])
def test_a_constant_column_becomes_zeros(write, value):
    table = load_table(write(csv_of([value] * 7, w=list(range(7)))), **AB)
    assert not table.data.x[:, 0].any()
    assert table.preprocessing.columns[0].deviation == 0


def test_booleans_are_zero_and_one_and_a_missing_one_is_their_median(write):
    x = from_table(write(csv_of(["true", "false", "", "true"])), **AB).x
    assert x.tolist() == [[1, 0], [1, 1], [0, 0], [1, 0]]


def test_dates_are_standardised_seconds(write):
    table = load_table(write(csv_of(["2024-01-01", "2024-01-03", "", "2024-01-03"])), **AB)
    column = table.preprocessing.columns[0]
    second = datetime.datetime(2024, 1, 3, tzinfo=datetime.UTC).timestamp()
    assert (column.kind, column.median) == ("time", second)
    assert column.mean == second - 43_200
    assert table.data.x[:, 1].tolist() == [0, 1, 0, 0]
    assert "mean 2024-01-02T12:00:00, deviation 0.866025 days" in "\n".join(
        table.preprocessing.describe()
    )


def test_columns_that_hold_nothing_usable_are_left_out_and_named(arrow):
    frame = arrow.table(
        {"h": [1, 2], "v": [1, 2], "tags": [[1], [2]], "none": [None, None], "y": [0, 1]}
    )
    table = load_table(frame, **AB)
    assert table.preprocessing.features == ("v",)
    assert table.preprocessing.describe()[-3:] == [
        "'tags': left out, holds BIGINT[] values",
        "'none': left out, every value is missing",
        "features: 1",
    ]
    assert "'tags' holds BIGINT[] values" in mistake(frame, **AB, features=["v", "tags"])


def test_nothing_but_client_and_label(write):
    text = mistake(write("h,y\nA,0\nB,1\n"), **AB)
    assert (
        "has no usable feature column; give at least one besides the client and the label" in text
    )


def test_nothing_but_missing_values(write):
    text = mistake(write("h,v,y\nA,,0\nB,,1\n"), **AB)
    assert "has no usable feature column ('v': every value is missing); give" in text


def test_features_that_do_not_fit_into_memory(write, monkeypatch):
    monkeypatch.setattr(preprocessing, "_memory", lambda: 4.0 * 5 * 7 - 1)
    text = mistake(write(VISITS), **BY_HOSPITAL)
    assert "without 'city', which alone makes 4 features" in text
    monkeypatch.setattr(preprocessing, "_memory", lambda: 4.0 * 5 * 7)
    assert from_table(write(VISITS), **BY_HOSPITAL).x.shape == (5, 7)


# --- new rows -------------------------------------------------------------------------------------


def test_apply_gives_the_rows_of_training_bit_for_bit(write):
    path = write(VISITS)
    table = load_table(path, **BY_HOSPITAL)
    kept = Preprocessing.from_json(table.preprocessing.to_json())
    assert kept == table.preprocessing
    rows = kept.apply(path)
    order = np.argsort(rows.clients.astype(str), kind="stable")
    assert rows.clients.tolist() == ["Nord", "Alt", "Nord", "Alt", "Nord"]
    assert rows.x[order].tobytes() == table.data.x.tobytes()
    assert rows.y[order].tobytes() == table.data.y.tobytes()


def test_apply_is_bit_for_bit_on_awkward_numbers(arrow):
    rng = np.random.default_rng(1)
    n = 20_000
    frame = arrow.table(
        {
            "h": np.sort(rng.integers(0, 9, n)),
            "v": rng.standard_cauchy(n),
            "w": rng.integers(-(2**62), 2**62, n),
            "f": rng.normal(1e6, 1e-3, n).astype(np.float32),
            "y": rng.normal(size=n),
        }
    )
    table = load_table(frame, **AB)
    rows = Preprocessing.from_json(table.preprocessing.to_json()).apply(frame)
    assert rows.x.tobytes() == table.data.x.tobytes()
    assert rows.y.tobytes() == table.data.y.tobytes()


@pytest.fixture
def trained(write):
    return load_table(write(VISITS), **BY_HOSPITAL).preprocessing


def test_new_rows_are_read_as_training_read_them(trained, write):
    new = "age,city,hospital,smoker\n,Rom,Neu,false\n70,,Alt,\n"
    rows = trained.apply(write(new, "new.csv"))
    z = np.float32(20 / np.sqrt(160))
    assert rows.y is None
    assert rows.clients.tolist() == ["Neu", "Alt"]
    expected = np.array([[0, 1, 0, 0, 0, 0, 0], [z, 0, 1, 0, 0, 0, 1]], np.float32)
    np.testing.assert_array_equal(rows.x, expected)


def test_codes_of_training_stay_text_in_new_rows(write):
    old = "h,code,y\n07,01,01\nA,B,x\n7,1,1\n"
    table = load_table(write(old), **AB)
    for row, (h, code, y) in {1: ("07", "01", "01"), 2: ("7", "1", "1")}.items():
        rows = table.preprocessing.apply(write(f"h,code,y\n{h},{code},{y}\n", "new.csv"))
        assert rows.clients.tolist() == [h]
        assert rows.x.tolist() == [[row == 1, row == 2, 0]]
        assert rows.y.tolist() == [row - 1]


def test_an_unknown_category_is_all_zeros(write):
    table = load_table(write(csv_of(["a", "b"])), **AB)
    new = write("h,v\nA,c\nA,b\nA,\n", "new.csv")
    assert table.preprocessing.apply(new).x.tolist() == [[0, 0], [0, 1], [0, 0]]


def test_an_empty_label_column_is_no_label(trained, write):
    empty = VISITS.replace(",0\n", ",\n").replace(",1\n", ",\n")
    assert trained.apply(write(empty, "empty.csv")).y is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("age", "years", "lacks 'age', which training used; add what is missing to its columns"),
        ("hospital", "clinic", "lacks 'hospital'"),
        (
            "Alt,50",
            "Alt,old",
            "column 'age' held values of the kind 'number' in training but holds ",
        ),
        ("Nord,30,true", "Nord,30,x", "kind 'boolean' in training but holds 'x' in row 1"),
        ("Nord,50", "Nord,inf", "column 'age' holds inf in row 5"),
        (",0\n", ",3\n", "'readmitted' holds 3 in row 1 but training knew 0, 1; correct it"),
        ("Ulm,0", "Ulm,", "the label column 'readmitted' is blank in 1 of 5 rows"),
        ("Alt", "", "the client column 'hospital' is blank in 2 of 5 rows"),
    ],
)
def test_new_rows_that_do_not_fit_are_refused(write, old, new, expected):
    trained = load_table(write(VISITS), **BY_HOSPITAL).preprocessing
    path = write(VISITS.replace(old, new), "new.csv")
    assert expected in refusal(trained.apply, path)


def test_a_value_beyond_32_bits_is_refused(arrow):
    trained = load_table(arrow.table({"h": [1, 2], "v": [1, 1.001], "y": [0, 1]}), **AB)
    new = arrow.table({"h": [1, 2], "v": [1, -5e37]})
    text = refusal(trained.preprocessing.apply, new)
    assert "column 'v' is -1e+41 deviations from the mean in row 2, too far" in text


# --- described and kept ---------------------------------------------------------------------------


def test_a_description_tells_every_column(trained):
    assert trained.describe() == [
        "client column 'hospital'",
        "label column 'readmitted': binary, classes 0, 1",
        "'age': number, mean 50, deviation 12.6491; "
        "a missing one becomes the median, 50, and is marked",
        "'smoker': boolean, 0 or 1",
        "'city': 3 categories, 'Aachen', 'Bonn', 'Ulm'; an empty cell is a category of its own",
        "features: 7",
    ]


def test_a_preprocessing_of_another_version_is_refused(trained):
    other = trained.to_json().replace('"version": 1', '"version": 2')
    text = refusal(Preprocessing.from_json, other)
    assert "has version 2 but this fairfl reads version 1; use the fairfl that wrote it" in text


def test_json_keeps_every_bit_and_every_type():
    column = Column("v", "number", True, mean=0.1 + 0.2, deviation=1e-300, median=-0.0)
    for classes in (None, (False, True), (1, 2), (0.5, 1.0), ("a", "é")):
        before = Preprocessing("h", True, "y", "binary", classes, (column,), (("w", "empty"),))
        after = Preprocessing.from_json(before.to_json())
        assert repr(after) == repr(before)
