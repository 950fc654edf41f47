"""How the columns of a table become features: learnt from one table, applied to the next."""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int, Shaped

from fairfl.clients.cells import (
    Kind,
    Source,
    categories,
    check_no_blanks,
    clients_of,
    codes,
    holds_numbers,
    numbers,
    read_as,
)
from fairfl.clients.sources import is_text, listed, opened
from fairfl.clients.task import Task

Class = str | bool | int | float
Order = Int[np.ndarray, " rows"] | slice
LeftOut = tuple[tuple[str, str], ...]

VERSION = 1


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


class Features(NamedTuple):
    """Rows to be scored, in the table's row order, and what is beside the features.

    `names` are the table's columns, `given` those said for a file without a header line; `unseen`
    counts the rows whose cell of a text column holds what training never saw; `clients` are the
    rows' clients as text, None without the column; y is None without labels.
    """

    x: Float32[np.ndarray, "rows features"]
    names: tuple[str, ...]
    given: tuple[str, ...] | None
    unseen: dict[str, int]
    clients: Shaped[np.ndarray, " rows"] | None
    y: Shaped[np.ndarray, " rows"] | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preprocessing:
    """What `load_table` did to the columns, so that new rows can be read in the same way.

    `names` are those given to the columns of a file without a header line.
    """

    client: str
    client_as_text: bool
    label: str
    task: Task
    classes: tuple[Class, ...] | None
    columns: tuple[Column, ...]
    left_out: LeftOut = ()
    names: tuple[str, ...] | None = None
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
        with opened(table, as_text=text, as_written={self.client, self.label}) as source:
            used = [column.name for column in self.columns]
            _check_columns_present(source, [self.client, *used])
            owner, ids = clients_of(source, self.client, self.client_as_text)
            names = np.array(ids, object if self.client_as_text else None)
            y = _known_labels(source, self.label, self.classes)
            x = features_of(source, self.columns, slice(None))
        return NewRows(x, names[owner], y)

    def features_in(self, table: Any, names: Sequence[str] | None = None) -> Features:
        """What a model needs of another table's rows; client and label columns may be absent.

        `names` are given to the columns of a file without a header line, as they were in training
        if nothing else is said.
        """
        text = {column.name for column in self.columns if column.kind == "category"}
        named = (names or self.names) if is_text(table) else names
        with opened(table, text, {self.client, self.label}, named) as source:
            _check_columns_present(source, [column.name for column in self.columns])
            x = features_of(source, self.columns, slice(None))
            y, notes = _labels_if_known(source, self.label, self.classes)
            clients = _clients_if_there(source, self.client)
        given = None if named is None else tuple(named)
        return Features(x, tuple(source.types), given, self._unseen(x), clients, y, notes)

    def _unseen(self, x: Float32[np.ndarray, "rows features"]) -> dict[str, int]:
        """Rows that are in no category, per column."""
        starts = np.cumsum([0, *(len(column.features) for column in self.columns)])
        counts = {
            column.name: int((~x[:, start:stop].any(axis=1)).sum())
            for column, (start, stop) in zip(self.columns, pairwise(starts), strict=True)
            if column.kind == "category"
        }
        return {name: count for name, count in counts.items() if count}

    def describe(self) -> list[str]:
        """What was done, one line per column."""
        classes = "" if self.classes is None else f", classes {listed(self.classes, most=10)}"
        return [
            f"client column {self.client!r}",
            f"label column {self.label!r}: {self.task}{classes}",
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
        for name in ("classes", "names"):
            fields[name] = None if fields[name] is None else tuple(fields[name])
        return cls(**fields)


# ---- what training learns ----


def learnt(source: Source, names: Sequence[str]) -> tuple[tuple[Column, ...], LeftOut]:
    """The columns that can be features, and why the others cannot."""
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


def _column(source: Source, name: str) -> Column | str:
    """The column, or why it cannot be used."""
    kind = source.kind(name)
    if kind is None:
        return f"holds {source.types[name]} values"
    present = source.present(name)
    if present == 0:
        return "every value is missing"
    if kind == "category" and not holds_numbers(source, name):
        found = categories(source, name, "leave it out by naming the others in features")
        return Column(name, kind, present < source.rows, categories=found)
    return _numeric_column(source, name, "number" if kind == "category" else kind)


def _numeric_column(source: Source, name: str, kind: Kind) -> Column:
    values = numbers(source, name, kind)
    missing = np.isnan(values)
    median = float(np.median(values[~missing], overwrite_input=True))
    if kind == "boolean":
        return Column(name, kind, bool(missing.any()), median=median)
    values[missing] = median
    # The mean of equal numbers can be a rounding error away from them: never divide by that.
    deviation = 0.0 if values.min() == values.max() else float(values.std())
    return Column(name, kind, bool(missing.any()), float(values.mean()), deviation, median)


# ---- features ----


def features_of(
    source: Source, columns: tuple[Column, ...], order: Order
) -> Float32[np.ndarray, "rows features"]:
    """All features, filled column by column so that only one column is held twice."""
    starts = np.concatenate([[0], np.cumsum([len(column.features) for column in columns])])
    _check_room(source, columns)
    x = np.zeros((source.rows, starts[-1]), np.float32)
    for column, (start, stop) in zip(columns, pairwise(starts), strict=True):
        fill = _fill_categories if column.kind == "category" else _fill_numbers
        fill(source, column, order, x[:, start:stop])
    return x


def _fill_numbers(source: Source, column: Column, order: Order, x: np.ndarray) -> None:
    values = numbers(source, column.name, column.kind)
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


def _fill_categories(source: Source, column: Column, order: Order, x: np.ndarray) -> None:
    value = read_as(source, column.name, column.kind)
    found = codes(source, value, column.categories)[order]
    known = np.flatnonzero(found >= 0)
    x[known, found[known]] = 1
    if column.missing:
        x[:, -1] = source.array(f"{value} IS NULL")[order]


def _check_room(source: Source, columns: tuple[Column, ...]) -> None:
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


# ---- new rows ----


def _check_columns_present(source: Source, needed: Sequence[str]) -> None:
    absent = [name for name in needed if name not in source.types]
    if absent:
        raise ValueError(
            f"{source.place} lacks {listed(absent)}, which training used; "
            f"add what is missing to its columns {listed(source.types)}"
        )


def _known_labels(
    source: Source, name: str, classes: tuple[Class, ...] | None
) -> Shaped[np.ndarray, " rows"] | None:
    """Labels of new rows as training numbered them, None where there are none."""
    if name not in source.types or source.present(name) == 0:
        return None
    check_no_blanks(source, name, "label")
    if classes is None:
        return numbers(source, name, "number").astype(np.float32)
    y = _class_numbers(source, name, classes)
    if (y < 0).any():
        row = int(np.argmax(y < 0))
        raise ValueError(
            f"the label column {name!r} holds {source.cell(name, row)!r} in row {row + 1:,} but "
            f"training knew {listed(classes)}; correct it, or leave the label column out to "
            "predict it"
        )
    return y


def _labels_if_known(
    source: Source, name: str, classes: tuple[Class, ...] | None
) -> tuple[Shaped[np.ndarray, " rows"] | None, tuple[str, ...]]:
    """Labels where every row has one that training knew, and why there are none."""
    try:
        return _known_labels(source, name, classes), ()
    except ValueError as error:
        return None, (f"No accuracy is given: {error}.",)


def _clients_if_there(source: Source, name: str) -> Shaped[np.ndarray, " rows"] | None:
    if name not in source.types or source.kind(name) is None:
        return None
    found = source.distinct(source.text(name), by=source.text(name))
    owner = codes(source, source.text(name), found)
    return np.array([*found, None], object)[owner]


def _class_numbers(
    source: Source, name: str, classes: tuple[Class, ...]
) -> Int[np.ndarray, " rows"]:
    """Each row's position in the sorted classes, -1 where it is none of them."""
    if isinstance(classes[0], str):
        return codes(source, read_as(source, name, "category"), classes)
    values = numbers(source, name, "boolean" if isinstance(classes[0], bool) else "number")
    known = np.array(classes, np.float64)
    found = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[found] == values, found, -1).astype(np.int32)


# ---- descriptions ----


def _described(column: Column) -> str:
    if column.kind == "category":
        filled = "; an empty cell is a category of its own" if column.missing else ""
        return f"{len(column.categories)} categories, {listed(column.categories, most=5)}{filled}"
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
