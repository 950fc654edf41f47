"""The cells of an open table: their kind, which of them are missing, their values as arrays.

DuckDB reads one column at a time; NumPy computes with it, because DuckDB's sums depend on its
threads and the same table must give the same bytes everywhere.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import duckdb
import numpy as np
from jaxtyping import Float64, Int

Kind = Literal["number", "boolean", "time", "category"]

MOST_CATEGORIES = 1_000
MOSTLY_NUMBERS = 0.9
LARGEST = 1e38
SIGNED = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}
WHOLE = SIGNED | {"U" + type for type in SIGNED}
REAL = {"FLOAT", "DOUBLE"}
PLAIN = WHOLE | REAL | {"BOOLEAN"}
WIDE = {"HUGEINT", "UHUGEINT", "BIGNUM", "VARINT"}
TEXT = {"VARCHAR", "JSON", "UUID", '"NULL"'}
READABLE_AS: dict[Kind, set[Kind]] = {
    "number": {"number", "boolean", "category"},
    "boolean": {"number", "boolean", "category"},
    "time": {"time", "category"},
    "category": {"number", "boolean", "time", "category"},
}


@dataclass(frozen=True)
class Source:
    """An open table: DuckDB calls it `source`, errors call it by its place."""

    place: str
    connection: duckdb.DuckDBPyConnection
    types: dict[str, str]
    rows: int

    def kind(self, name: str) -> Kind | None:
        return kind_of(self.types[name])

    def value(self, name: str) -> str:
        """The SQL of a cell, NULL for everything that means missing: NaN and blank text too."""
        cell, type = quoted(name), self.types[name]
        if type in REAL:
            return f"CASE WHEN isnan({cell}) THEN NULL ELSE {cell} END"
        if kind_of(type) != "category":
            return cell
        cell = f"json_extract_string({cell}, '$')" if type == "JSON" else f"CAST({cell} AS VARCHAR)"
        return f"CASE WHEN trim({cell}) = '' THEN NULL ELSE {cell} END"

    def text(self, name: str) -> str:
        """The SQL of a cell as text, NULL where it is missing."""
        return f"CAST({self.value(name)} AS VARCHAR)"

    def present(self, name: str) -> int:
        """How many cells are not missing."""
        return self.one(f"count({self.value(name)})")

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

    def cell(self, name: str, row: int) -> Any:
        query = f"SELECT {self.value(name)} FROM source LIMIT 1 OFFSET {row}"
        return self.connection.execute(query).fetchall()[0][0]

    def unread(self, name: str, expression: str) -> tuple[int, Any]:
        """The first row, from 1, whose cell is there but not the expression, and that cell."""
        condition = f"{self.value(name)} IS NOT NULL AND {expression} IS NULL"
        row = int(np.argmax(self.array(condition)))
        return row + 1, self.cell(name, row)


def kind_of(type: str) -> Kind | None:
    """What a DuckDB type is to us; None for lists, structures and bytes.

    >>> from fairfl.clients.cells import kind_of
    >>> [kind_of(type) for type in ("DECIMAL(18,3)", "DATE", "VARCHAR", "VARCHAR[]")]
    ['number', 'time', 'category', None]
    """
    if type.endswith("]"):
        return None
    if type in TEXT or type.startswith("ENUM("):
        return "category"
    if type in WHOLE | REAL | WIDE or type.startswith("DECIMAL("):
        return "number"
    if type == "DATE" or re.match(r"TIME(STAMP)?(_|\b)", type):
        return "time"
    return "boolean" if type == "BOOLEAN" else None


def quoted(name: str) -> str:
    """A column name as SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def numbers(source: Source, name: str, kind: Kind) -> Float64[np.ndarray, " rows"]:
    """The column as numbers, NaN where missing."""
    values = source.array(f"coalesce({read_as(source, name, kind)}, CAST('nan' AS DOUBLE))")
    wrong = np.flatnonzero(np.abs(values) > LARGEST)
    if len(wrong):
        raise ValueError(
            f"column {name!r} holds {values[wrong[0]]} in row {wrong[0] + 1:,}; correct or empty "
            "infinite and astronomic values, or leave the column out"
        )
    return values


def read_as(source: Source, name: str, kind: Kind) -> str:
    """The SQL that reads a column as a kind, whatever type this table gives it."""
    own, value = source.kind(name), source.value(name)
    if own not in READABLE_AS[kind]:
        raise ValueError(
            f"column {name!r} held values of the kind {kind!r} in training but holds "
            f"{source.types[name]} here; convert it to the type it had"
        )
    if kind == "category":
        return source.text(name)
    if kind == "time":
        expression = f"epoch({value if own == 'time' else f'TRY_CAST({value} AS TIMESTAMP)'})"
    else:
        through = value if kind == "number" else f"TRY_CAST({value} AS BOOLEAN)"
        expression = f"TRY_CAST({through} AS DOUBLE)"
    if own == "category":
        _check_all_read(source, name, kind, expression)
    return expression


def _check_all_read(source: Source, name: str, kind: Kind, expression: str) -> None:
    if source.present(name) > source.one(f"count({expression})"):
        row, found = source.unread(name, expression)
        raise ValueError(
            f"column {name!r} held values of the kind {kind!r} in training but holds {found!r} in "
            f"row {row:,}; correct or empty such cells"
        )


def holds_numbers(source: Source, name: str) -> bool:
    """Whether text is numbers throughout; a few words among many numbers are a mistake."""
    number = f"TRY_CAST({source.value(name)} AS DOUBLE)"
    found, present = source.one(f"count({number})"), source.present(name)
    if MOSTLY_NUMBERS * present <= found < present:
        row, word = source.unread(name, number)
        raise ValueError(
            f"column {name!r} holds numbers in {found:,} of {present:,} rows but {word!r} in "
            f"row {row:,}; correct or empty such cells, or leave the column out"
        )
    return found == present


def categories(source: Source, name: str, remedy: str) -> tuple[str, ...]:
    """The different texts of a column, sorted."""
    text = source.text(name)
    # The sketch takes a few kilobytes where a list of the values of an identifier takes gigabytes.
    about = source.one(f"approx_count_distinct({text})")
    found = () if about > 2 * MOST_CATEGORIES else source.distinct(text, by=text)
    if about > 2 * MOST_CATEGORIES or len(found) > MOST_CATEGORIES:
        raise ValueError(
            f"column {name!r} looks like an identifier: it holds about {len(found) or about:,} "
            f"different texts and at most {MOST_CATEGORIES:,} can be categories; {remedy}"
        )
    return found


def codes(source: Source, expression: str, names: Sequence[Any]) -> Int[np.ndarray, " rows"]:
    """Each row's position in the names, -1 where it is none of them.

    DuckDB's enums do it in four bytes a row; fetching the text would cost sixty.
    """
    source.connection.execute("CREATE TYPE named AS ENUM (SELECT unnest(?))", [list(names)])
    code = f"enum_code(TRY_CAST({expression} AS named))"
    found = source.array(f"coalesce(CAST({code} AS INTEGER), -1)")
    source.connection.execute("DROP TYPE named")
    return found


def clients_of(
    source: Source, name: str, as_text: bool
) -> tuple[Int[np.ndarray, " rows"], tuple[Any, ...]]:
    """Each row's client, as an index into the sorted names, and the names."""
    check_no_blanks(source, name, "client")
    if source.types[name] in PLAIN and not as_text:
        ids, owner = np.unique(source.array(quoted(name)), return_inverse=True)
        return owner, tuple(ids.tolist())
    text = source.text(name)
    # An ENUM sorts in the order of its definition, numbers and dates not as their text does.
    ids = source.distinct(text, by=text if source.kind(name) == "category" else quoted(name))
    return codes(source, text, ids), ids


def check_no_blanks(source: Source, name: str, role: str) -> None:
    blank = source.rows - source.present(name)
    if blank:
        raise ValueError(
            f"the {role} column {name!r} is blank in {blank:,} of {source.rows:,} rows; "
            "drop these rows or fill in the value"
        )
