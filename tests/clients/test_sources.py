"""Every format gives the same table, nothing is guessed wrongly, and one sentence per mistake."""

import gzip
import json

import duckdb
import numpy as np
import pytest
from tables_made_up import AB, BY_HOSPITAL, LATE, VISITS, csv_of, mistake, parquet

from fairfl.clients import sources
from fairfl.clients.tables import from_table, load_table


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


# --- types are those of all rows ------------------------------------------------------------------


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


# --- folders and names ----------------------------------------------------------------------------


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


def test_nothing_is_left_behind(write, tmp_path, monkeypatch):
    path = write(VISITS)
    (tmp_path / "spill").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))
    with sources.opened(path) as source:
        spill = source.one("current_setting('temp_directory')")
    assert spill.startswith(str(tmp_path / "spill"))
    from_table(path, **BY_HOSPITAL)
    assert not list((tmp_path / "spill").iterdir())
    assert len(list(tmp_path.iterdir())) == 2


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


@pytest.mark.parametrize(("text", "name"), [("h,v,y\n", "a.csv"), ("", "a.csv"), ("", "a.jsonl")])
def test_an_empty_table(write, text, name):
    assert "but no rows; give a table with" in mistake(write(text, name), **AB)


def test_an_empty_frame(arrow):
    assert "the table has the columns 'h', 'v', 'y' but no rows" in mistake(
        arrow.table({"h": [], "v": [], "y": []}), **AB
    )


def damaged(write, kind):
    """Files that broke on the way."""
    text = csv_of(np.random.default_rng(0).normal(size=20_000).tolist())
    packed = gzip.compress(text.encode())
    bitten = bytearray(packed)
    bitten[len(packed) // 2] ^= 255
    whole = write(b"", "whole.parquet")
    rows = "SELECT i % 2 AS h, random() AS v, i % 2 AS y FROM range(20_000) AS t(i)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows}) TO '{whole}' (FORMAT parquet)")
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
def test_a_damaged_file(write, kind):
    path = write(*damaged(write, kind))
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


NAMES = ["h", "v", "y"]


@pytest.mark.parametrize("name", ["rows.csv", "rows.data", "rows.txt"])
def test_names_are_given_to_a_file_without_a_header_line(write, name):
    bare = load_table(write("A, 1, a\nB, 2, b\n", name), **AB, columns=NAMES)
    with_header = load_table(write("h,v,y\nA,1,a\nB,2,b\n"), **AB)
    assert bare.preprocessing.names == tuple(NAMES)
    np.testing.assert_array_equal(bare.data.x, with_header.data.x)
    assert bare.data.ids == ("A", "B")


def test_blanks_after_commas_are_not_part_of_the_text(write):
    data = load_table(write("h, v, y\nA, one, no\nB, two, yes\nA,two,no\n"), **AB)
    assert data.preprocessing.features == ("v = one", "v = two")
    assert data.data.classes.tolist() == ["no", "yes"]


def test_a_first_line_of_given_names_is_a_header_all_the_same(write):
    data = load_table(write("y,h,v\n0,A,1\n1,B,2\n"), **AB, columns=NAMES).data
    assert data.y.tolist() == [0, 1]


def test_names_that_are_not_as_many_as_the_columns(write):
    text = mistake(write("A,1,0\nB,2,1\n"), **AB, columns=["h", "y"])
    assert "has 3 columns but 2 names are given for them, 'h', 'y'" in text


def test_names_for_a_file_that_has_its_own(write):
    path = write('{"h": "A", "v": 1, "y": 0}\n', "rows.jsonl")
    assert "has names for its own; leave columns out" in mistake(path, **AB, columns=NAMES)


def test_a_missing_header_line_is_suspected(write):
    text = mistake(write("A,1,0\nB,2,1\n"), **AB)
    assert "if the file has no header line, give all its names with columns" in text
