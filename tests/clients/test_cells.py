"""What a cell is: numbers, times, categories, missing values, and what is none of them."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pytest
from tables_made_up import AB, csv_of, mistake, refusal

from fairfl.clients import cells
from fairfl.clients.tables import from_table, load_table


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


@pytest.mark.parametrize("blank", ["", '""', '"  "'])
def test_a_blank_client(write, blank):
    path = write(f"h,v,y\nA,1,0\n{blank},2,1\nB,3,1\n")
    assert "the client column 'h' is blank in 1 of 3 rows; drop these rows or fill" in mistake(
        path, **AB
    )


def test_a_thousand_categories_are_categories(arrow):
    n = 1_000
    names = [f"{i:04}x" for i in range(n)]
    frame = arrow.table({"h": [0] * n, "c": names, "y": np.arange(n) % 2})
    np.testing.assert_array_equal(from_table(frame, **AB).x, np.eye(n, dtype=np.float32))


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
    monkeypatch.setattr(cells.Source, "distinct", None)
    assert "column 'id' looks like an identifier" in mistake(frame, **AB)


def test_words_among_numbers(write):
    values = ["", *range(9), "n/a"]
    text = mistake(write(csv_of(values)), **AB)
    assert "column 'v' holds numbers in 9 of 10 rows but 'n/a' in row 11; correct or empty" in text
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


def test_an_infinite_label(arrow):
    frame = arrow.table({"h": [1, 2], "v": [1, 2], "y": [0.5, np.inf]})
    assert "column 'y' holds inf in row 2" in mistake(frame, **AB)


def test_a_column_of_another_type_is_refused(arrow):
    when = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
    trained = load_table(arrow.table({"h": [1, 2], "v": when, "y": [0, 1]}), **AB).preprocessing
    as_text = arrow.table({"h": [1, 2], "v": ["2024-01-01", "2024-01-02"]})
    assert trained.apply(as_text).x.tolist() == [[-1], [1]]
    text = refusal(trained.apply, arrow.table({"h": [1, 2], "v": [1, 2]}))
    assert "column 'v' held values of the kind 'time' in training but holds BIGINT here" in text
