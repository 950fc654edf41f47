"""The cells of an open table: their kind, which of them are missing, their values as arrays.

DuckDB reads one column at a time; NumPy computes the statistics, because DuckDB's sums depend on
its threads and the same table must give the same bytes everywhere.
"""

import re
from collections.abc import Collection, Sequence
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

    def cell(self, expression: str, row: int) -> Any:
        return self.one(f"{expression} FROM source LIMIT 1 OFFSET {row} --")
