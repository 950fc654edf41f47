"""Tables in, rows out: numbers worked out by hand, and one sentence for every mistake."""

import datetime
import gzip
import json
import re
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

from fairfl.clients import tables
from fairfl.clients.tables import Column, Preprocessing, from_table, load_table

VISITS = """hospital,age,smoker,city,readmitted
Nord,30,true,Ulm,0
Alt,50,false,Bonn,1
Nord,,true,,1
Alt,70,true,Bonn,0
Nord,50,false,Aachen,1
"""
# DuckDB guesses from the first 20,480 rows of a text file; what follows must count all the same.
LATE = 30_000
BY_HOSPITAL = {"client": "hospital", "label": "readmitted"}


@pytest.fixture
def write(tmp_path):
    """Writes a file and returns its path."""

    def write(text, name="visits.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow", reason="Arrow tables need pyarrow")


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas", reason="pandas frames need pandas")


def parquet(arrow, path, columns):
    pytest.importorskip("pyarrow.parquet", reason="writing Parquet needs pyarrow")
    arrow.parquet.write_table(arrow.table(columns), path)
    return path


def refusal(function, *args, **kwargs):
    """What a call is refused with: one line, one sentence."""
    with pytest.raises(ValueError, match=r"\A[^\n]+[^.\n]\Z") as caught:
        function(*args, **kwargs)
    assert not re.search(r"[.;?] [A-Z]", str(caught.value)), caught.value
    return str(caught.value)


def mistake(*args, **kwargs):
    return refusal(load_table, *args, **kwargs)


def csv_of(feature, **columns):
    """A table of two clients with two labels and one feature called v."""
    n = len(feature)
    columns = {
        "h": list("AB" * n)[:n],
        "v": feature,
        "y": [0, 1] * (n // 2) + [0] * (n % 2),
        **columns,
    }
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"


AB = {"client": "h", "label": "y"}


# --- numbers worked out by hand -------------------------------------------------------------------


def test_rows_lie_client_by_client_in_the_order_of_the_table(write):
    data = from_table(write(VISITS), **BY_HOSPITAL)
    assert data.ids == ("Alt", "Nord")
    assert data.offsets.tolist() == [0, 2, 5]
    assert data.y.tolist() == [1, 0, 0, 1, 1]
    assert data.y.dtype == np.int32
    assert (data.task, data.classes.tolist(), data.name) == ("binary", [0, 1], "visits")


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


def test_timestamps_with_a_zone_and_times_of_day_are_numbers_too(arrow):
    stamps = [datetime.datetime(2024, 1, day, tzinfo=datetime.UTC) for day in (1, 2)]
    times = [datetime.time(1), datetime.time(3)]
    frame = arrow.table({"h": ["a", "b"], "s": stamps, "t": times, "y": [0, 1]})
    assert from_table(frame, **AB).x.tolist() == [[-1, -1], [1, 1]]


def test_text_that_is_all_numbers_is_numbers(arrow):
    frame = arrow.table({"h": ["a", "b", "a"], "v": ["1", None, " 3"], "y": [0, 1, 1]})
    column = load_table(frame, **AB).preprocessing.columns[0]
    assert (column.kind, column.median, column.missing) == ("number", 2, True)


def test_nan_and_blank_text_are_missing(arrow):
    frame = arrow.table(
        {"h": ["a", "b", "a"], "v": [1.0, np.nan, 3], "c": ["x", "  ", None], "y": [0, 1, 1]}
    )
    x = from_table(frame, **AB).x
    assert x[:, 1].tolist() == [0, 0, 1]
    assert x[:, 2:].tolist() == [[1, 0], [0, 1], [0, 1]]


def test_decimals_and_huge_integers_are_numbers(arrow):
    frame = arrow.table(
        {"h": [1, 2], "d": [Decimal("1.5"), Decimal("2.5")], "w": [2**62, 0], "y": [0, 1]}
    )
    assert from_table(frame, **AB).x.tolist() == [[-1, 1], [1, -1]]


# --- clients --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([10, 9, 10, 2], (2, 9, 10)),
        ([1.5, -2.0, 1.5, 0.5], (-2.0, 0.5, 1.5)),
        ([True, False, True, True], (False, True)),
        (["b", "a", "B", "é"], ("B", "a", "b", "é")),
        ([Decimal(10), Decimal(9), Decimal(9), Decimal(2)], ("2", "9", "10")),
        (
            [datetime.date(2024, 1, 2), datetime.date(2023, 5, 5)] * 2,
            ("2023-05-05", "2024-01-02"),
        ),
    ],
)
def test_clients_are_sorted_by_value(arrow, names, expected):
    frame = arrow.table({"h": names, "v": [0, 1, 2, 3], "y": [0, 1, 1, 0]})
    table = load_table(frame, **AB)
    assert table.data.ids == expected
    assert [type(id) for id in table.data.ids] == [type(id) for id in expected]
    of_row = table.preprocessing.apply(frame).clients.tolist()
    by_row = dict(zip(range(4), of_row, strict=True))
    first = table.data.x[:, 0].argsort()
    owner = np.repeat(np.array(expected, object), table.data.sizes)
    assert [owner[row] for row in first] == list(by_row.values())


def test_clients_of_a_categorical_column_are_sorted_by_name(pandas):
    hospital = pandas.Categorical(["b", "a", "c"], categories=["c", "b", "a"])
    frame = pandas.DataFrame({"h": hospital, "v": [1, 2, 3], "y": [0, 1, 2]})
    data = from_table(frame, **AB)
    assert (data.ids, data.y.tolist()) == (("a", "b", "c"), [1, 0, 2])


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


def test_split_is_kept(write):
    path = write(VISITS)
    assert from_table(path, **BY_HOSPITAL, split=(0.5, 0.25, 0.25)).fractions == (0.5, 0.25, 0.25)
    assert from_table(path, **BY_HOSPITAL, split=None).fractions is None
    assert "split=(1.0, 1.0, 1.0)" in mistake(path, **BY_HOSPITAL, split=(1.0, 1.0, 1.0))


# --- sources --------------------------------------------------------------------------------------


def test_the_same_table_in_every_format_is_the_same_data(write, tmp_path, arrow, pandas):
    path = write(VISITS)
    frame = pandas.read_csv(path)
    lines = "".join(
        json.dumps({k: v for k, v in row.items() if v == v}) + "\n"
        for row in frame.to_dict("records")
    )
    header, *rows = VISITS.splitlines(keepends=True)
    write(header + "".join(rows[:2]), "folder/a.csv")
    write(header + "".join(rows[2:]), "folder/b.csv")
    write("not a table", "folder/README.txt")
    write("not,a,part", "folder/_temporary.csv")
    table = arrow.Table.from_pandas(frame)
    sources = [
        str(path),
        write(VISITS.replace(",", ";"), "semicolons.csv"),
        write(VISITS.replace(",", "\t"), "tabs.tsv"),
        write(gzip.compress(VISITS.encode()), "packed.csv.gz"),
        write(lines, "lines.jsonl"),
        write(gzip.compress(lines.encode()), "packed.ndjson.gz"),
        write(f"[{','.join(lines.splitlines())}]", "array.json"),
        parquet(arrow, tmp_path / "visits.parquet", dict(frame.items())),
        tmp_path / "folder",
        table,
        frame,
        frame.astype({"city": "category", "hospital": "category"}),
    ]
    loaded = [load_table(source, **BY_HOSPITAL) for source in sources]
    assert {table.data.fingerprint for table in loaded} == {loaded[0].data.fingerprint}
    assert {table.preprocessing for table in loaded} == {loaded[0].preprocessing}


def test_a_polars_frame_is_a_table(write):
    polars = pytest.importorskip("polars", reason="polars frames need polars")
    path = write(VISITS)
    data = from_table(polars.read_csv(path), **BY_HOSPITAL)
    assert data.fingerprint == from_table(path, **BY_HOSPITAL).fingerprint


def test_a_fraction_after_many_whole_numbers_is_not_rounded(write):
    path = write(csv_of([0] * LATE + [0.25, 0.5]))
    assert len(np.unique(from_table(path, **AB).x)) == 3


def test_a_time_of_day_after_many_dates_is_not_cut(write):
    path = write(csv_of(["2024-01-01"] * LATE + ["2024-01-01 12:00:00"]))
    assert len(np.unique(from_table(path, **AB).x)) == 2


def test_a_date_of_another_style_keeps_its_type(write):
    column = load_table(write(csv_of(["31/12/2024"] * LATE + ["30/12/2024"])), **AB)
    assert column.preprocessing.columns[0].kind == "time"


def test_text_after_many_blanks_is_kept(write):
    table = load_table(write(csv_of([""] * LATE + ["x"])), **AB)
    assert table.preprocessing.features == ("v = x", "v is missing")


def test_a_quote_after_many_rows_is_a_quote(write):
    rows = "A,x,0\n" * LATE + 'B,"a, ""b""\nc",1\n'
    table = load_table(write("h,v,y\n" + rows), **AB)
    assert table.preprocessing.columns[0].categories == ('a, "b"\nc', "x")


def test_a_label_with_a_late_fraction_is_a_regression(write):
    table = load_table(write(csv_of([1] * (LATE + 1), y=[0, 1] * (LATE // 2) + [0.5])), **AB)
    assert (table.data.task, table.data.y.max()) == ("regression", 1)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["10", "9", "10"], (9, 10)),
        (["07", "7", "07"], ("07", "7")),
        (["1.10", "1.1", "2"], ("1.1", "1.10", "2")),
        (["yes", "no", "yes"], ("no", "yes")),
        (["12345678901234567891", "12345678901234567890", "1"], None),
        (["1"] * LATE + ["x"], ("1", "x")),
    ],
)
def test_clients_and_classes_of_a_csv_file_are_what_is_written(write, names, expected):
    expected = expected or tuple(sorted(names))
    path = write(csv_of(list(range(len(names))), h=names))
    table = load_table(path, **AB)
    assert table.data.ids == expected
    assert set(table.preprocessing.apply(path).clients.tolist()) == set(expected)
    if names[0] != "1.10" and names[-1] != "x":
        classes = load_table(path, client="y", label="h").preprocessing.classes
        assert classes == expected


def test_keys_that_appear_late_or_rarely_are_columns(write):
    rare = [{"h": i % 2, "y": i % 2, f"k{i}": 1} for i in range(300)]
    late = [{"h": i % 2, "y": i % 2} | ({"late": 1} if i == LATE else {}) for i in range(LATE + 1)]
    for lines, columns in ((rare, 300), (late, 1)):
        path = write("\n".join(map(json.dumps, lines)), "rows.jsonl")
        assert len(load_table(path, **AB).preprocessing.columns) == columns


def test_files_of_a_folder_may_differ_in_their_columns(write, tmp_path, arrow):
    write("h,v,y\na,1,0\n", "csv/1.csv")
    write("y,w,h,v\n1,x,b,3\n", "csv/2.csv")
    write("", "parquet/1.parquet")
    parquet(arrow, tmp_path / "parquet" / "1.parquet", {"h": ["a"], "v": [1], "y": [0]})
    second = {"y": [1], "w": ["x"], "h": ["b"], "v": [3]}
    parquet(arrow, tmp_path / "parquet" / "2.parquet", second)
    for folder in ("csv", "parquet"):
        table = load_table(tmp_path / folder, **AB)
        assert table.preprocessing.features == ("v", "w = x", "w is missing")
        assert table.data.x.tolist() == [[-1, 0, 1], [1, 1, 0]]


def test_a_folder_is_read_in_the_order_of_its_names(write, tmp_path):
    for part in (2, 1, 3):
        write(f"h,v,y\na,{part},{part}\n", f"folder/{part}.csv")
    assert from_table(tmp_path / "folder", **AB).y.tolist() == [0, 1, 2]


NASTY = [
    'a"b',
    "it's",
    "x; DROP TABLE source; --",
    "two words",
    "v",
    "k",
    "names",
    "source",
    "é%?*",
]


def test_no_column_name_is_sql(arrow, tmp_path):
    columns = {name: [f"{name}1", f"{name}2"] for name in NASTY} | {'"y"': [0, 1], "h'\"": [1, 2]}
    frame = arrow.table(columns)
    path = parquet(arrow, tmp_path / "nasty.parquet", columns)
    for source in (frame, path):
        table = load_table(source, client="h'\"", label='"y"')
        assert [column.name for column in table.preprocessing.columns] == NASTY
        assert table.data.x.tolist() == [[1, 0] * len(NASTY), [0, 1] * len(NASTY)]
        text = load_table(source, client="v", label="k")
        assert text.data.ids == ("v1", "v2")
        assert text.data.classes.tolist() == ["k1", "k2"]


@pytest.mark.parametrize("name", ["it's", "a[1]", "b*", "q?", "x'); DROP TABLE y; --", "a=1", "é"])
def test_no_path_is_sql_or_a_pattern(write, tmp_path, name):
    decoy = name.replace("[1]", "1").replace("*", "b").replace("?", "q")
    write(csv_of([9] * 6, w=[1] * 6), f"{decoy}/{decoy}.csv")
    path = write(csv_of([1, 2]), f"{name}/{name}.csv")
    for source in (path, tmp_path / name):
        table = load_table(source, **AB)
        assert table.preprocessing.features == ("v",)
        assert table.data.x.tolist() == [[-1], [1]]
        assert table.preprocessing.apply(source).x.tolist() == [[-1], [1]]


def test_features_choose_the_columns_and_their_order(write):
    path = write(VISITS)
    table = load_table(path, **BY_HOSPITAL, features=["smoker", "age", "smoker"])
    assert table.preprocessing.features == ("smoker", "age", "age is missing")
    assert load_table(path, **BY_HOSPITAL, features="smoker").data.x.shape == (5, 1)


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


# --- preprocessing --------------------------------------------------------------------------------


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


def test_a_column_of_another_type_is_refused(arrow):
    when = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
    trained = load_table(arrow.table({"h": [1, 2], "v": when, "y": [0, 1]}), **AB).preprocessing
    as_text = arrow.table({"h": [1, 2], "v": ["2024-01-01", "2024-01-02"]})
    assert trained.apply(as_text).x.tolist() == [[-1], [1]]
    text = refusal(trained.apply, arrow.table({"h": [1, 2], "v": [1, 2]}))
    assert "column 'v' held values of the kind 'time' in training but holds BIGINT here" in text


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


# --- mistakes -------------------------------------------------------------------------------------


def test_a_path_that_is_not_there(write, tmp_path):
    write(VISITS)
    text = mistake(tmp_path / "visit.csv", **BY_HOSPITAL)
    assert "there is no file or folder" in text
    assert "did you mean 'visits.csv'?" in text
    assert "check the path" in mistake(tmp_path / "no" / "x.csv", **BY_HOSPITAL)


def test_a_folder_without_tables(write, tmp_path):
    write("hello", "folder/notes.txt")
    assert "holds no table; put files into it that end in .csv" in mistake(
        tmp_path / "folder", **BY_HOSPITAL
    )


def test_a_folder_of_two_formats(write, tmp_path):
    write(VISITS, "folder/a.csv")
    write("{}", "folder/b.jsonl")
    assert "mixes formats ('a.csv', 'b.jsonl')" in mistake(tmp_path / "folder", **BY_HOSPITAL)


@pytest.mark.parametrize("name", ["visits.xlsx", "visits", "visits.parquet.gz", "visits.gz"])
def test_an_unknown_extension(write, name):
    assert "is of an unknown format; give a file that ends in .csv" in mistake(
        write(VISITS, name), **BY_HOSPITAL
    )


@pytest.mark.parametrize("source", [None, 3, ["a.csv"]])
def test_something_that_is_no_table(source):
    assert (
        f"source is a {type(source).__name__}, which cannot be read as a table; give a path"
        in mistake(source, **BY_HOSPITAL)
    )


def test_a_stream_that_can_be_read_once(arrow):
    reader = arrow.table({"h": [1]}).to_reader()
    assert "which cannot be read as a table" in mistake(reader, **AB)


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


@pytest.mark.parametrize("blank", ["", '""', '"  "'])
def test_a_blank_client(write, blank):
    path = write(f"h,v,y\nA,1,0\n{blank},2,1\nB,3,1\n")
    assert "the client column 'h' is blank in 1 of 3 rows; drop these rows or fill" in mistake(
        path, **AB
    )


def test_a_label_that_is_nan(arrow):
    frame = arrow.table({"h": [1, 2], "v": [1, 2], "y": [0.5, np.nan]})
    assert "the label column 'y' is blank in 1 of 2 rows" in mistake(frame, **AB)


def test_an_infinite_label(arrow):
    frame = arrow.table({"h": [1, 2], "v": [1, 2], "y": [0.5, np.inf]})
    assert "column 'y' holds inf in row 2" in mistake(frame, **AB)


def test_a_client_that_is_a_list(arrow):
    frame = arrow.table({"h": [[1], [2]], "v": [1, 2], "y": [0, 1]})
    assert "the client column 'h' holds BIGINT[] values; name a column" in mistake(frame, **AB)


@pytest.mark.parametrize("value", [1, "yes", True, 2.0, "1"])
def test_a_single_class(arrow, value):
    frame = arrow.table({"h": [1, 2], "v": [1, 2], "y": [value] * 2})
    text = mistake(frame, **AB)
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


@pytest.mark.parametrize(("values", "told"), [(1_001, "1,001"), (100_000, "")])
def test_an_identifier(arrow, values, told):
    frame = arrow.table(
        {
            "h": np.arange(values) % 3,
            "v": np.arange(values),
            "patient": [f"patient {i}" for i in range(values)],
            "y": np.arange(values) % 2,
        }
    )
    text = mistake(frame, **AB)
    assert "column 'patient' looks like an identifier: it holds about" in text
    assert f"{told} different texts" in text
    assert "leave it out by naming the others in features" in text
    assert from_table(frame, **AB, features=["v"]).x.shape == (values, 1)


def test_the_texts_of_an_identifier_are_never_listed(arrow, monkeypatch):
    n = 100_000
    frame = arrow.table({"h": [1] * n, "id": [f"{i}x" for i in range(n)], "y": np.arange(n) % 2})
    monkeypatch.setattr(tables._Source, "distinct", None)
    assert "column 'id' looks like an identifier" in mistake(frame, **AB)


def test_a_thousand_categories_are_categories(arrow):
    n = 1_000
    names = [f"{i:04}x" for i in range(n)]
    frame = arrow.table({"h": [0] * n, "c": names, "y": np.arange(n) % 2})
    np.testing.assert_array_equal(from_table(frame, **AB).x, np.eye(n, dtype=np.float32))


def test_words_among_numbers(write):
    values = [*range(9), "n/a"]
    text = mistake(write(csv_of(values)), **AB)
    assert "column 'v' holds numbers in 9 of 10 rows but 'n/a' in row 10; correct or empty" in text
    words = load_table(write(csv_of([*range(8), "n/a", "x"])), **AB).preprocessing
    assert words.columns[0].kind == "category"


def test_a_word_after_many_numbers(write):
    values = [*range(30_000), "old"]
    assert "30,000 of 30,001 rows but 'old' in row 30,001" in mistake(write(csv_of(values)), **AB)


def test_words_among_numbers_in_json(write):
    lines = [{"h": i % 2, "y": i % 2, "v": i} for i in range(20)]
    lines[4]["v"] = "four"
    path = write("\n".join(map(json.dumps, lines)), "mixed.jsonl")
    assert "column 'v' holds numbers in 19 of 20 rows but 'four' in row 5" in mistake(path, **AB)


def test_a_question_mark_among_labels(write):
    path = write(csv_of(list(range(20)), y=[0, 1] * 9 + [1, "?"]))
    assert "column 'y' holds numbers in 19 of 20 rows but '?' in row 20" in mistake(path, **AB)


@pytest.mark.parametrize("value", ["inf", "-inf", "1e300"])
def test_an_infinite_value(write, value):
    text = mistake(write(csv_of([1, 2, value, 4])), **AB)
    assert f"column 'v' holds {value.replace('1e300', '1e+300')} in row 3; correct or empty" in text


@pytest.mark.parametrize(("text", "name"), [("h,v,y\n", "a.csv"), ("", "a.csv"), ("", "a.jsonl")])
def test_an_empty_table(write, text, name):
    assert "but no rows; give a table with" in mistake(write(text, name), **AB)


def test_an_empty_frame(arrow):
    assert "the table has the columns 'h', 'v', 'y' but no rows" in mistake(
        arrow.table({"h": [], "v": [], "y": []}), **AB
    )


def test_nothing_but_client_and_label(write):
    text = mistake(write("h,y\nA,0\nB,1\n"), **AB)
    assert (
        "has no usable feature column; give at least one besides the client and the label" in text
    )


def test_nothing_but_missing_values(write):
    text = mistake(write("h,v,y\nA,,0\nB,,1\n"), **AB)
    assert "has no usable feature column ('v': every value is missing); give" in text


def damaged(arrow, write, kind):
    """Files that broke on the way."""
    text = csv_of(np.random.default_rng(0).normal(size=20_000).tolist())
    packed = gzip.compress(text.encode())
    bitten = bytearray(packed)
    bitten[len(packed) // 2] ^= 255
    whole = write(b"", "whole.parquet")
    parquet(arrow, whole, {"h": [1, 2] * 9_999, "v": np.random.rand(19_998), "y": [0, 1] * 9_999})
    content = whole.read_bytes()
    return {
        "half a parquet": (content[: len(content) // 2], "x.parquet"),
        "a parquet with a hole": (content[:8] + b"\xff" * 60_000 + content[60_008:], "x.parquet"),
        "text called parquet": (text, "x.parquet"),
        "half a gzip": (packed[: len(packed) // 2], "x.csv.gz"),
        "a bitten gzip": (bytes(bitten), "x.csv.gz"),
        "text called gzip": (text, "x.csv.gz"),
        "half a line of json": ('{"h": 1, "v": 2, "y": 1}\n{"h": 1, "v": ', "x.jsonl"),
        "latin-1": ("h,v,y\nM\u00fcnchen,1,0\nB,2,1\n".encode("latin-1"), "x.csv"),
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        "half a parquet",
        "a parquet with a hole",
        "text called parquet",
        "half a gzip",
        "a bitten gzip",
        "text called gzip",
        "half a line of json",
        "latin-1",
    ],
)
def test_a_damaged_file(arrow, write, kind):
    path = write(*damaged(arrow, write, kind))
    text = mistake(path, **AB)
    remedy = "copy or export it again" if path.suffix == ".gz" else "check that it is complete"
    assert path.name in text
    assert remedy in text


@pytest.mark.parametrize(("rows", "expected"), [(1, "no rows"), (9, "no column of")])
def test_a_row_of_another_length(write, rows, expected):
    path = write("h,v,y\n" + "A,1,0\n" * rows + "B,2,1,4,5\n" + "A,1,0\n" * (rows - 1))
    text = mistake(path, **AB)
    assert expected in text
    assert "(a row with more or fewer cells than the others can hide the header)" in text


def test_a_late_row_of_another_length(write):
    path = write("h,v,y\n" + "A,1,0\n" * LATE + "B,7,1,4\n")
    text = mistake(path, **AB)
    assert "CSV Error on Line: 30002 Expected Number of Columns: 3 Found: 4); check" in text


def test_features_that_do_not_fit_into_memory(write, monkeypatch):
    monkeypatch.setattr(tables, "_memory", lambda: 4.0 * 5 * 7 - 1)
    text = mistake(write(VISITS), **BY_HOSPITAL)
    assert "without 'city', which alone makes 4 features" in text
    monkeypatch.setattr(tables, "_memory", lambda: 4.0 * 5 * 7)
    assert from_table(write(VISITS), **BY_HOSPITAL).x.shape == (5, 7)


def test_nothing_is_left_behind(write, tmp_path, monkeypatch):
    path = write(VISITS)
    (tmp_path / "spill").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))
    with tables._opened(path) as source:
        spill = source.one("current_setting('temp_directory')")
    assert spill.startswith(str(tmp_path / "spill"))
    from_table(path, **BY_HOSPITAL)
    assert not list((tmp_path / "spill").iterdir())
    assert len(list(tmp_path.iterdir())) == 2
