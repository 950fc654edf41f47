"""Your own table, with a column that says whose row it is, as FederatedData.

DuckDB reads the files and frames, one column at a time; NumPy computes the statistics, because
DuckDB's sums depend on its threads and the same table must give the same bytes everywhere.
"""

import difflib
import gzip
import json
import math
import os
import re
import tempfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple

import duckdb
import numpy as np
from jaxtyping import Float32, Float64, Int, Shaped

from fairfl.clients.federated import FederatedData, Fractions, Task, check_fractions, encoded

Kind = Literal["number", "boolean", "time", "category"]
Class = str | bool | int | float
Order = Int[np.ndarray, " rows"] | slice

VERSION = 1
MOST_CATEGORIES = 1_000
MOSTLY_NUMBERS = 0.9
LARGEST = 1e38
FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
SIGNED = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}
WHOLE = SIGNED | {"U" + type for type in SIGNED}
REAL = {"FLOAT", "DOUBLE"}
PLAIN = WHOLE | REAL | {"BOOLEAN"}
WIDE = {"HUGEINT", "UHUGEINT", "BIGNUM", "VARINT"}
TEXT = {"VARCHAR", "JSON", "UUID", '"NULL"'}
# A sample of whole numbers or dates cannot tell that a later row has a fraction or a time of day,
# and DuckDB rounds those silently.
WIDER = {"BIGINT": "DOUBLE", "DATE": "TIMESTAMP"}
READABLE_AS: dict[Kind, set[Kind]] = {
    "number": {"number", "boolean", "category"},
    "boolean": {"number", "boolean", "category"},
    "time": {"time", "category"},
    "category": {"number", "boolean", "time", "category"},
}


@dataclass(frozen=True)
class Column:
    """How one column of the table becomes features.

    A number, boolean or time v becomes (v - mean) / deviation, and 0 where the deviation is 0;
    a category becomes one feature per category. `missing` adds a feature that marks empty cells.
    """

    name: str
    kind: Kind
    missing: bool
    mean: float = 0.0
    deviation: float = 1.0
    median: float = 0.0
    categories: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features, in the order of x."""
        values = [f"{self.name} = {category}" for category in self.categories] or [self.name]
        return (*values, f"{self.name} is missing") if self.missing else tuple(values)


class NewRows(NamedTuple):
    """A table in the model's own terms, in the table's row order; y is None without labels."""

    x: Float32[np.ndarray, "rows features"]
    clients: Shaped[np.ndarray, " rows"]
    y: Shaped[np.ndarray, " rows"] | None


@dataclass(frozen=True)
class Preprocessing:
    """What `load_table` did to the columns, so that new rows can be read in the same way."""

    client: str
    client_as_text: bool
    label: str
    task: Task
    classes: tuple[Class, ...] | None
    columns: tuple[Column, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    version: int = VERSION

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features, in the order of x."""
        return tuple(name for column in self.columns for name in column.features)

    def apply(self, table: Any) -> NewRows:
        """The rows of another table with the same columns, in its row order.

        A category that training never saw is all zeros. The label column may be absent or empty.
        """
        # Without this a CSV file whose categories happen to be 1 and 2 would be read as numbers.
        text = {column.name for column in self.columns if column.kind == "category"}
        with _opened(table, text, {self.client, self.label}) as source:
            _check_columns_present(source, self)
            owner, ids = _clients(source, self.client, self.client_as_text)
            names = np.array(ids, object if self.client_as_text else None)
            y = _known_labels(source, self)
            x = _features(source, self.columns, slice(None))
        return NewRows(x, names[owner], y)

    def describe(self) -> list[str]:
        """What was done, one line per column."""
        return [
            f"client column {self.client!r}",
            f"label column {self.label!r}: {_described_task(self)}",
            *(f"{column.name!r}: {_described(column)}" for column in self.columns),
            *(f"{name!r}: left out, {reason}" for name, reason in self.left_out),
            f"features: {len(self.features)}",
        ]

    def to_json(self) -> str:
        """As JSON text; numbers keep every bit."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Preprocessing":
        """Back from `to_json`."""
        fields = json.loads(text)
        if fields.get("version") != VERSION:
            raise ValueError(
                f"this preprocessing has version {fields.get('version')!r} but this fairfl reads "
                f"version {VERSION}; use the fairfl that wrote it, or load the table again"
            )
        columns = (
            column | {"categories": tuple(column["categories"])} for column in fields["columns"]
        )
        fields["columns"] = tuple(Column(**column) for column in columns)
        fields["left_out"] = tuple((name, reason) for name, reason in fields["left_out"])
        fields["classes"] = None if fields["classes"] is None else tuple(fields["classes"])
        return cls(**fields)


class Table(NamedTuple):
    """A table as data to train on, and how its columns were read."""

    data: FederatedData
    preprocessing: Preprocessing


def from_table(
    source: Any,
    *,
    client: str,
    label: str,
    features: Sequence[str] | None = None,
    split: Fractions | None = (0.8, 0.1, 0.1),
    task: Task | None = None,
) -> FederatedData:
    """Data from a table with one row per example and a column that names the row's client.

    `source` is a CSV, Parquet or JSON lines file, a folder of them, or an Arrow, pandas or polars
    table. Clients are in the order of their names, a client's rows in the order of the table.
    Numbers and times are standardised, text becomes one feature per category, missing numbers
    become the median and are marked. `load_table` also returns how each column was read.

    >>> import pathlib, tempfile
    >>> from fairfl.clients.tables import from_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "visits.csv")
    ...     _ = file.write_text("hospital,age,readmitted\\nB,30,0\\nA,50,1\\nB,50,1\\nA,30,0\\n")
    ...     data = from_table(file, client="hospital", label="readmitted")
    >>> data.ids, data.sizes.tolist(), data.y.tolist(), data.x.tolist()
    (('A', 'B'), [2, 2], [1, 0, 0, 1], [[1.0], [-1.0], [-1.0], [1.0]])
    """
    return load_table(
        source, client=client, label=label, features=features, split=split, task=task
    ).data


def load_table(
    source: Any,
    *,
    client: str,
    label: str,
    features: Sequence[str] | None = None,
    split: Fractions | None = (0.8, 0.1, 0.1),
    task: Task | None = None,
) -> Table:
    """`from_table`, together with the preprocessing that reads new rows in the same way.

    >>> import pathlib, tempfile
    >>> from fairfl.clients.tables import load_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "visits.csv")
    ...     _ = file.write_text("hospital,age,readmitted\\nB,30,0\\nA,50,1\\nB,50,1\\nA,30,0\\n")
    ...     table = load_table(file, client="hospital", label="readmitted")
    >>> print("\\n".join(table.preprocessing.describe()))
    client column 'hospital'
    label column 'readmitted': binary, classes 0, 1
    'age': number, mean 40, deviation 10
    features: 1
    """
    check_fractions(split)
    with _opened(source, as_written={client, label}) as rows:
        names = _feature_columns(rows, client, label, features)
        as_text = rows.types[client] not in PLAIN
        owner, ids = _clients(rows, client, as_text)
        y, classes, task = _labels(rows, label, task)
        columns, left_out = _fitted(rows, names)
        order = np.argsort(owner, kind="stable")
        x = _features(rows, columns, order)
    known = None if classes is None else tuple(classes.tolist())
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(ids)))])
    return Table(
        FederatedData(
            x=x,
            y=y[order],
            offsets=offsets,
            ids=ids,
            task=task,
            classes=classes,
            fractions=split,
            name=_title(source),
        ),
        Preprocessing(client, as_text, label, task, known, columns, left_out),
    )


# ---- columns ----


def _feature_columns(
    source: "_Source", client: str, label: str, features: Sequence[str] | None
) -> list[str]:
    for role, name in (("client", client), ("label", label)):
        _check_column(source, name, role)
        if _kind(source.types[name]) is None:
            raise ValueError(
                f"the {role} column {name!r} holds {source.types[name]} values; "
                "name a column of plain values"
            )
    if client == label:
        raise ValueError(
            f"client={client!r} and label={label!r} are the same column; name two different ones"
        )
    if features is None:
        return [name for name in source.types if name not in (client, label)]
    return _chosen([features] if isinstance(features, str) else features, source, client, label)


def _chosen(features: Sequence[str], source: "_Source", client: str, label: str) -> list[str]:
    for name in features:
        _check_column(source, name, "features")
        if name in (client, label):
            role = "client" if name == client else "label"
            raise ValueError(
                f"{name!r} is the {role} column, which cannot be a feature; take it out of features"
            )
        if _kind(source.types[name]) is None:
            raise ValueError(
                f"column {name!r} holds {source.types[name]} values, which cannot be a feature; "
                "take it out of features"
            )
    return list(features)


def _fitted(
    source: "_Source", names: list[str]
) -> tuple[tuple[Column, ...], tuple[tuple[str, str], ...]]:
    columns = {name: _column(source, name) for name in names}
    left_out = tuple((name, found) for name, found in columns.items() if isinstance(found, str))
    kept = tuple(column for column in columns.values() if isinstance(column, Column))
    if not kept:
        reasons = ", ".join(f"{name!r}: {reason}" for name, reason in left_out)
        raise ValueError(
            f"{source.place} has no usable feature column{f' ({reasons})' if reasons else ''}; "
            "give at least one besides the client and the label"
        )
    return kept, left_out


def _column(source: "_Source", name: str) -> Column | str:
    """The column, or why it cannot be used."""
    kind = _kind(source.types[name])
    if kind is None:
        return f"holds {source.types[name]} values"
    present = source.one(f"count({source.value(name)})")
    if present == 0:
        return "every value is missing"
    if kind == "category" and not _holds_numbers(source, name):
        categories = _categories(source, name, "leave it out by naming the others in features")
        return Column(name, kind, present < source.rows, categories=categories)
    return _numeric_column(source, name, "number" if kind == "category" else kind)


def _numeric_column(source: "_Source", name: str, kind: Kind) -> Column:
    values = _numbers(source, name, kind)
    missing = np.isnan(values)
    median = float(np.median(values[~missing], overwrite_input=True))
    if kind == "boolean":
        return Column(name, kind, bool(missing.any()), median=median)
    values[missing] = median
    # The mean of equal numbers can be a rounding error away from them: never divide by that.
    deviation = 0.0 if values.min() == values.max() else float(values.std())
    return Column(name, kind, bool(missing.any()), float(values.mean()), deviation, median)


def _holds_numbers(source: "_Source", name: str) -> bool:
    """Whether text is numbers throughout; a few words among many numbers are a mistake."""
    value = source.value(name)
    present = source.one(f"count({value})")
    numbers = source.one(f"count(TRY_CAST({value} AS DOUBLE))")
    if MOSTLY_NUMBERS * present <= numbers < present:
        row, found = source.first(
            f"{value} IS NOT NULL AND TRY_CAST({value} AS DOUBLE) IS NULL", value
        )
        raise ValueError(
            f"column {name!r} holds numbers in {numbers:,} of {present:,} rows but {found!r} in "
            f"row {row:,}; correct or empty such cells, or leave the column out"
        )
    return numbers == present


def _categories(source: "_Source", name: str, remedy: str) -> tuple[str, ...]:
    value = f"CAST({source.value(name)} AS VARCHAR)"
    # The sketch takes a few kilobytes where a list of the values of an identifier takes gigabytes.
    about = source.one(f"approx_count_distinct({value})")
    found = () if about > 2 * MOST_CATEGORIES else source.distinct(value, by=value)
    if about > 2 * MOST_CATEGORIES or len(found) > MOST_CATEGORIES:
        raise ValueError(
            f"column {name!r} looks like an identifier: it holds about {len(found) or about:,} "
            f"different texts and at most {MOST_CATEGORIES:,} can be categories; {remedy}"
        )
    return found


# ---- cells ----


def _numbers(source: "_Source", name: str, kind: Kind) -> Float64[np.ndarray, " rows"]:
    """The column as numbers, NaN where missing."""
    values = source.array(f"coalesce({_read_as(source, name, kind)}, CAST('nan' AS DOUBLE))")
    wrong = np.flatnonzero(np.abs(values) > LARGEST)
    if len(wrong):
        raise ValueError(
            f"column {name!r} holds {values[wrong[0]]} in row {wrong[0] + 1:,}; correct or empty "
            "infinite and astronomic values, or leave the column out"
        )
    return values


def _read_as(source: "_Source", name: str, kind: Kind) -> str:
    """The SQL that reads a column as a kind, whatever type this table gives it."""
    own = _kind(source.types[name])
    value = source.value(name)
    if own not in READABLE_AS[kind]:
        raise ValueError(
            f"column {name!r} held values of the kind {kind!r} in training but holds "
            f"{source.types[name]} here; convert it to the type it had"
        )
    if kind == "category":
        return f"CAST({value} AS VARCHAR)"
    if kind == "time":
        expression = f"epoch({value if own == 'time' else f'TRY_CAST({value} AS TIMESTAMP)'})"
    else:
        through = value if kind == "number" else f"TRY_CAST({value} AS BOOLEAN)"
        expression = f"TRY_CAST({through} AS DOUBLE)"
    if own == "category":
        _check_all_read(source, name, kind, expression)
    return expression


def _check_all_read(source: "_Source", name: str, kind: Kind, expression: str) -> None:
    value = source.value(name)
    if source.one(f"count({value})") > source.one(f"count({expression})"):
        row, found = source.first(f"{value} IS NOT NULL AND {expression} IS NULL", value)
        raise ValueError(
            f"column {name!r} held values of the kind {kind!r} in training but holds {found!r} in "
            f"row {row:,}; correct or empty such cells"
        )


def _kind(type: str) -> Kind | None:
    """What a DuckDB type is to us; None for lists, structures and bytes."""
    if type.endswith("]"):
        return None
    if type in TEXT or type.startswith("ENUM("):
        return "category"
    if type in WHOLE | REAL | WIDE or type.startswith("DECIMAL("):
        return "number"
    if type == "DATE" or re.match(r"TIME(STAMP)?(_|\b)", type):
        return "time"
    return "boolean" if type == "BOOLEAN" else None


# ---- clients and labels ----


def _clients(
    source: "_Source", name: str, as_text: bool
) -> tuple[Int[np.ndarray, " rows"], tuple[Any, ...]]:
    """Each row's client, as an index into the names."""
    _check_no_blanks(source, name, "client")
    if source.types[name] in PLAIN and not as_text:
        ids, owner = np.unique(source.array(_quoted(name)), return_inverse=True)
        return owner, tuple(ids.tolist())
    value = f"CAST({source.value(name)} AS VARCHAR)"
    text = _kind(source.types[name]) == "category"
    ids = source.distinct(value, by=value if text else _quoted(name))
    return _codes(source, value, ids), ids


def _labels(
    source: "_Source", name: str, task: Task | None
) -> tuple[np.ndarray, np.ndarray | None, Task]:
    _check_no_blanks(source, name, "label")
    if _kind(source.types[name]) in ("number", "boolean"):
        return _numeric_labels(source, name, task)
    if _kind(source.types[name]) == "category" and _holds_numbers(source, name):
        return _labels_in_digits(source, name, task)
    if task == "regression":
        raise ValueError(
            f"task='regression' needs numbers but the label column {name!r} holds "
            f"{source.cell(source.value(name), 0)!r}; leave task out to predict classes"
        )
    return _text_labels(source, name, task)


def _labels_in_digits(
    source: "_Source", name: str, task: Task | None
) -> tuple[np.ndarray, np.ndarray | None, Task]:
    """Text that is all numbers: classes as they are written, unless there are fractions."""
    values = _numbers(source, name, "number")
    if task == "regression" or (task is None and (values != np.round(values)).any()):
        return encoded(values, task)
    return _text_labels(source, name, task)


def _numeric_labels(
    source: "_Source", name: str, task: Task | None
) -> tuple[np.ndarray, np.ndarray | None, Task]:
    plain = source.types[name] in WHOLE | {"BOOLEAN"}
    labels = source.array(_quoted(name)) if plain else _numbers(source, name, "number")
    if task != "regression" and (labels == labels[0]).all():
        raise _one_class(name, labels[0].item())
    y, classes, found = encoded(labels, task)
    if task is None and classes is not None and len(classes) > MOST_CATEGORIES:
        raise ValueError(
            f"the label column {name!r} holds {len(classes):,} different whole numbers; say "
            "task='regression' to predict a number or task='multiclass' if these are classes"
        )
    return y, classes, found


def _text_labels(
    source: "_Source", name: str, task: Task | None
) -> tuple[np.ndarray, np.ndarray | None, Task]:
    names = _categories(
        source, name, "name another label column, or say task='regression' if these are numbers"
    )
    if len(names) == 1:
        raise _one_class(name, names[0])
    codes = _codes(source, f"CAST({source.value(name)} AS VARCHAR)", names)
    y, _, task = encoded(codes, task)
    return y, np.array(names), task


def _known_labels(
    source: "_Source", preprocessing: Preprocessing
) -> Shaped[np.ndarray, " rows"] | None:
    """Labels of new rows as training numbered them."""
    name, classes = preprocessing.label, preprocessing.classes
    if name not in source.types or source.one(f"count({source.value(name)})") == 0:
        return None
    _check_no_blanks(source, name, "label")
    if classes is None:
        return _numbers(source, name, "number").astype(np.float32)
    if _has_text_classes(preprocessing):
        value = _read_as(source, name, "category")
        y = _codes(source, value, [str(label) for label in classes])
    else:
        boolean = isinstance(classes[0], bool)
        y = _positions(_numbers(source, name, "boolean" if boolean else "number"), classes)
    _check_known(source, name, y, classes)
    return y


def _positions(
    values: Float64[np.ndarray, " rows"], classes: tuple[Class, ...]
) -> Int[np.ndarray, " rows"]:
    known = np.array(classes, np.float64)
    found = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[found] == values, found, -1).astype(np.int32)


def _check_known(
    source: "_Source", name: str, y: Int[np.ndarray, " rows"], classes: tuple[Class, ...]
) -> None:
    if (y < 0).any():
        row = int(np.argmax(y < 0))
        raise ValueError(
            f"the label column {name!r} holds {source.cell(source.value(name), row)!r} in row "
            f"{row + 1:,} but training knew {_listed(classes)}; correct it, or leave the label "
            "column out to predict it"
        )


def _has_text_classes(preprocessing: Preprocessing) -> bool:
    return bool(preprocessing.classes) and isinstance(preprocessing.classes[0], str)


def _codes(source: "_Source", expression: str, names: Sequence[str]) -> Int[np.ndarray, " rows"]:
    """Each row's position in the names, -1 where it is none of them.

    DuckDB's enums do it in four bytes a row; fetching the text would cost sixty.
    """
    run = source.connection.execute
    run("CREATE TEMP TABLE names AS SELECT unnest(?) AS name", [list(names)])
    run("CREATE TYPE named AS ENUM (SELECT name FROM names)")
    code = f"enum_code(TRY_CAST({expression} AS named))"
    codes = source.array(f"coalesce(CAST({code} AS INTEGER), -1)")
    run("DROP TYPE named")
    run("DROP TABLE names")
    return codes


# ---- features ----


def _features(
    source: "_Source", columns: tuple[Column, ...], order: Order
) -> Float32[np.ndarray, "rows features"]:
    """All features, filled column by column so that only one column is held twice."""
    starts = np.concatenate([[0], np.cumsum([len(column.features) for column in columns])])
    _check_room(source, columns)
    x = np.zeros((source.rows, starts[-1]), np.float32)
    for column, (start, stop) in zip(columns, pairwise(starts), strict=True):
        fill = _fill_categories if column.kind == "category" else _fill_numbers
        fill(source, column, order, x[:, start:stop])
    return x


def _fill_numbers(source: "_Source", column: Column, order: Order, x: np.ndarray) -> None:
    values = _numbers(source, column.name, column.kind)
    missing = np.isnan(values)
    values[missing] = column.median
    x[:, 0] = _standardised(values, column)[order]
    if column.missing:
        x[:, 1] = missing[order]


def _standardised(
    values: Float64[np.ndarray, " rows"], column: Column
) -> Float32[np.ndarray, " rows"]:
    """(v - mean) / deviation, in place to spare memory."""
    if column.deviation == 0:
        return np.zeros(len(values), np.float32)
    values -= column.mean
    values /= column.deviation
    wrong = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max)
    if len(wrong):
        raise ValueError(
            f"column {column.name!r} is {values[wrong[0]]:.3g} deviations from the mean in row "
            f"{wrong[0] + 1:,}, too far for a 32-bit number; correct or empty that cell"
        )
    return values.astype(np.float32)


def _fill_categories(source: "_Source", column: Column, order: Order, x: np.ndarray) -> None:
    value = _read_as(source, column.name, column.kind)
    codes = _codes(source, value, column.categories)[order]
    known = np.flatnonzero(codes >= 0)
    x[known, codes[known]] = 1
    if column.missing:
        x[:, -1] = source.array(f"{value} IS NULL")[order]


def _check_room(source: "_Source", columns: tuple[Column, ...]) -> None:
    needed = 4 * source.rows * sum(len(column.features) for column in columns)
    if needed > _memory():
        widest = max(columns, key=lambda column: len(column.features))
        raise ValueError(
            f"the features of {source.rows:,} rows need {needed / 1e9:,.1f} GB of memory but this "
            f"machine has {_memory() / 1e9:,.1f} GB; name fewer columns in features, without "
            f"{widest.name!r}, which alone makes {len(widest.features):,} features"
        )


def _memory() -> float:
    """Bytes of memory, where the system says."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


# ---- sources ----


@dataclass(frozen=True)
class _Source:
    """An open table: DuckDB calls it `source`, errors call it by its place."""

    place: str
    connection: duckdb.DuckDBPyConnection
    types: dict[str, str]
    rows: int

    def value(self, name: str) -> str:
        """The SQL of a cell, NULL for everything that means missing: NaN and blank text too."""
        cell, type = _quoted(name), self.types[name]
        if type in REAL:
            return f"CASE WHEN isnan({cell}) THEN NULL ELSE {cell} END"
        if _kind(type) != "category":
            return cell
        cell = f"json_extract_string({cell}, '$')" if type == "JSON" else f"CAST({cell} AS VARCHAR)"
        return f"CASE WHEN trim({cell}) = '' THEN NULL ELSE {cell} END"

    def one(self, expression: str) -> Any:
        return self.connection.execute(f"SELECT {expression} FROM source").fetchall()[0][0]

    def array(self, expression: str) -> np.ndarray:
        query = f"SELECT {expression} AS v FROM source"
        return np.asarray(self.connection.execute(query).fetchnumpy()["v"])

    def distinct(self, expression: str, by: str) -> tuple[str, ...]:
        """The different values, sorted by another expression."""
        cells = f"SELECT {expression} AS v, {by} AS k FROM source"
        query = f"SELECT v FROM ({cells}) WHERE v IS NOT NULL GROUP BY v ORDER BY min(k), v"
        return tuple(row[0] for row in self.connection.execute(query).fetchall())

    def cell(self, expression: str, row: int) -> Any:
        query = f"SELECT {expression} FROM source LIMIT 1 OFFSET {row}"
        return self.connection.execute(query).fetchall()[0][0]

    def first(self, condition: str, expression: str) -> tuple[int, Any]:
        """The first row, counted from 1, that meets a condition, and its value."""
        row = int(np.argmax(self.array(condition)))
        return row + 1, self.cell(expression, row)


@contextmanager
def _opened(
    source: Any, as_text: Collection[str] = (), as_written: Collection[str] = ()
) -> Iterator[_Source]:
    """The table in DuckDB; whatever DuckDB says about it becomes one sentence.

    A CSV file has no types. `as_text` columns stay text, and `as_written` ones become whole numbers
    only where that changes no character, so that a client called 007 or 1.10 keeps its name.
    """
    place = str(source) if _is_path(source) else "the table"
    files = _files(Path(source).expanduser()) if _is_path(source) else None
    with tempfile.TemporaryDirectory(prefix="fairfl-") as spill, duckdb.connect() as connection:
        try:
            connection.execute("SET enable_progress_bar = false")
            connection.execute(f"SET temp_directory = {_literal(spill)}")
            if files is None:
                _register(connection, source)
            else:
                _read(connection, files, as_text, as_written)
            yield _described_source(place, connection)
        except duckdb.Error as error:
            raise ValueError(
                f"{place} could not be read ({_first_words(error)}); check that it is complete "
                "and of the format that its name says"
            ) from error


def _described_source(place: str, connection: duckdb.DuckDBPyConnection) -> _Source:
    described = connection.execute("DESCRIBE SELECT * FROM source").fetchall()
    types = {name: type for name, type, *_ in described}
    source = _Source(place, connection, types, rows=0)
    rows = source.one("count(*)")
    if rows == 0:
        raise ValueError(
            f"{place} has the columns {_listed(types)} but no rows; give a table with at least "
            f"one row per client{_doubt(place)}"
        )
    return _Source(place, connection, types, rows)


def _register(connection: duckdb.DuckDBPyConnection, source: Any) -> None:
    sentence = (
        f"source is a {type(source).__name__}, which cannot be read as a table; give a path, "
        "an Arrow table, or a pandas or polars DataFrame"
    )
    # Every column is a pass of its own, and a stream can be read only once.
    if not hasattr(source, "__len__"):
        raise ValueError(sentence)
    try:
        connection.register("source", source)
    except duckdb.Error as error:
        raise ValueError(f"{sentence} ({_first_words(error)})") from error


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return _files_in(path)
    if not path.exists():
        raise ValueError(f"there is no file or folder {str(path)!r}; check the path{_near(path)}")
    if _format(path) is None:
        raise ValueError(
            f"{str(path)!r} is of an unknown format; give a file that ends in {', '.join(FORMATS)} "
            "(all but .parquet may be followed by .gz)"
        )
    return [path]


def _files_in(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.iterdir() if path.is_file() and _format(path))
    formats = {_format(path) for path in files}
    if not files:
        raise ValueError(
            f"the folder {str(folder)!r} holds no table; put files into it that end in "
            f"{', '.join(FORMATS)}"
        )
    if len(formats) > 1:
        raise ValueError(
            f"the folder {str(folder)!r} mixes formats ({_listed([file.name for file in files])}); "
            "keep the files of one format"
        )
    return files


def _format(path: Path) -> str | None:
    name = path.name.lower()
    found = FORMATS.get(Path(name.removesuffix(".gz")).suffix)
    hidden = name.startswith((".", "_"))
    return None if hidden or (found == "parquet" and name.endswith(".gz")) else found


def _read(
    connection: duckdb.DuckDBPyConnection,
    files: list[Path],
    as_text: Collection[str],
    as_written: Collection[str],
) -> None:
    for path in files:
        _check_gzip(path)
    paths = "[" + ", ".join(_literal(_no_glob(path)) for path in files) + "]"
    together = f"{paths}, union_by_name = true, hive_partitioning = false"
    match _format(files[0]):
        case "parquet":
            connection.execute(f"CREATE VIEW source AS SELECT * FROM read_parquet({together})")
        case "json":
            # A key that is rare, or that first appears late, is a column like any other.
            rare = "map_inference_threshold = -1, field_appearance_threshold = 0"
            table = f"read_json({together}, sample_size = -1, {rare})"
            connection.execute(f"CREATE TEMP TABLE source AS SELECT * FROM {table}")
        case _:
            # The first quote may come after the rows that DuckDB looks at.
            arguments = f"""{together}, header = true, quote = '"', escape = '"'"""
            _read_csv(connection, arguments, {*as_text, *as_written})
            _number(connection, as_written)


def _read_csv(
    connection: duckdb.DuckDBPyConnection, arguments: str, as_text: Collection[str]
) -> None:
    """A pass per column would parse the text once per column, so it is parsed into `cells`.

    DuckDB guesses types from the first 20,480 rows. Where a later row does not fit, all rows are
    looked at, which takes several times as long.
    """
    try:
        types = _csv_types(connection, arguments, as_text, WIDER)
        connection.execute(f"CREATE TEMP TABLE cells AS SELECT * FROM read_csv({types})")
    except duckdb.ConversionException:
        types = _csv_types(connection, f"{arguments}, sample_size = -1", as_text, {})
        connection.execute(f"CREATE TEMP TABLE cells AS SELECT * FROM read_csv({types})")


def _csv_types(
    connection: duckdb.DuckDBPyConnection,
    arguments: str,
    as_text: Collection[str],
    wider: dict[str, str],
) -> str:
    """The arguments of `read_csv`, with the types that are not to be guessed."""
    guessed = connection.execute(f"DESCRIBE SELECT * FROM read_csv({arguments})").fetchall()
    types = {name: "VARCHAR" if name in as_text else wider.get(type) for name, type, *_ in guessed}
    given = ", ".join(f"{_literal(name)}: '{type}'" for name, type in types.items() if type)
    return f"{arguments}, types = {{{given}}}" if given else arguments


def _number(connection: duckdb.DuckDBPyConnection, names: Collection[str]) -> None:
    """`source` shows the cells, and as numbers those that are written as numbers are."""
    header = [name for name, *_ in connection.execute("DESCRIBE SELECT * FROM cells").fetchall()]
    texts = {name: f"nullif(trim({_quoted(name)}), '')" for name in header if name in names}
    whole = "-?(0|[1-9][0-9]{0,17})"
    numbered = [
        f"CAST({text} AS BIGINT) AS {_quoted(name)}"
        for name, text in texts.items()
        if _of_cells(connection, f"bool_and(regexp_full_match({text}, '{whole}'))")
    ]
    replaced = f"REPLACE ({', '.join(numbered)})" if numbered else ""
    connection.execute(f"CREATE VIEW source AS SELECT * {replaced} FROM cells")


def _of_cells(connection: duckdb.DuckDBPyConnection, expression: str) -> Any:
    return connection.execute(f"SELECT {expression} FROM cells").fetchall()[0][0]


def _check_gzip(path: Path) -> None:
    """DuckDB ignores the checksum, and some of its versions a missing half of the file."""
    if path.suffix.lower() != ".gz":
        return
    try:
        with gzip.open(path) as stream:
            while stream.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{str(path)!r} is damaged ({error}); copy or export it again") from error


def _no_glob(path: Path) -> str:
    return re.sub(r"([*?\[])", r"[\1]", os.path.abspath(path))


def _quoted(name: str) -> str:
    """A column name as SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _is_path(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def _title(source: Any) -> str:
    return (Path(source).name.split(".")[0] if _is_path(source) else "") or "table"


# ---- sentences ----


def _check_column(source: _Source, name: str, argument: str) -> None:
    if name in source.types:
        return
    folded = {column.casefold(): column for column in source.types}
    near = [folded[match] for match in difflib.get_close_matches(name.casefold(), folded)]
    raise ValueError(
        f"{argument}={name!r} is no column of {source.place}, which has {_listed(source.types)}; "
        + (f"did you mean {' or '.join(map(repr, near))}?" if near else "name one of these")
        + ("" if near else _doubt(source.place))
    )


def _doubt(place: str) -> str:
    """What may have happened to the header of a CSV file that is not the expected one."""
    hidden = " (a row with more or fewer cells than the others can hide the header)"
    return hidden if Path(place.removesuffix(".gz")).suffix.lower() in (".csv", ".tsv") else ""


def _check_columns_present(source: _Source, preprocessing: Preprocessing) -> None:
    needed = [preprocessing.client, *(column.name for column in preprocessing.columns)]
    absent = [name for name in needed if name not in source.types]
    if absent:
        raise ValueError(
            f"{source.place} lacks {_listed(absent)}, which training used; "
            f"add what is missing to its columns {_listed(source.types)}"
        )


def _check_no_blanks(source: _Source, name: str, role: str) -> None:
    blank = source.rows - source.one(f"count({source.value(name)})")
    if blank:
        raise ValueError(
            f"the {role} column {name!r} is blank in {blank:,} of {source.rows:,} rows; "
            "drop these rows or fill in the value"
        )


def _one_class(name: str, value: Class) -> ValueError:
    return ValueError(
        f"every row of the label column {name!r} is {value!r}; a classifier needs at least two "
        "different labels, so check that this is the column to predict"
    )


def _described_task(preprocessing: Preprocessing) -> str:
    if preprocessing.classes is None:
        return "regression"
    return f"{preprocessing.task}, classes {_listed(preprocessing.classes, most=10)}"


def _described(column: Column) -> str:
    if column.kind == "category":
        filled = "; an empty cell is a category of its own" if column.missing else ""
        return f"{len(column.categories)} categories, {_listed(column.categories, most=5)}{filled}"
    middle = _moment(column.median) if column.kind == "time" else f"{column.median:g}"
    filled = f"; a missing one becomes the median, {middle}, and is marked"
    return _described_values(column) + (filled if column.missing else "")


def _described_values(column: Column) -> str:
    if column.kind == "boolean":
        return "boolean, 0 or 1"
    if column.kind == "number":
        return f"number, mean {column.mean:g}, deviation {column.deviation:g}"
    days = column.deviation / 86_400
    return f"time, mean {_moment(column.mean)}, deviation {days:g} days"


def _moment(seconds: float) -> str:
    return str(np.datetime64(round(seconds), "s"))


def _listed(names: Collection[Any], most: int = 30) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def _near(path: Path) -> str:
    beside = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, beside, n=1)
    return f", or did you mean {near[0]!r}?" if near else ""


def _first_words(error: duckdb.Error) -> str:
    """DuckDB's own words without advice, SQL and other people's data."""
    lines = str(error).split("\n\n")[0].splitlines()
    told = takewhile(lambda line: not line.startswith("Possible"), lines)
    words = " ".join(line for line in told if not line.startswith("Original Line"))
    return " ".join(words.split(". ")[0].split())[:300].rstrip(".")
