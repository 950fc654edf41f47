"""The numbers of the paper's tables, as data: published.csv, one row per printed number.

`dataset` is a registered name with its options after colons; `objective` is as the paper writes it,
with q1 and q2 as Table 2 does. A missing deviation means that the paper prints none.
"""

import csv
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple


class Published(NamedTuple):
    """One printed number: its place in the paper, mean, and deviation over five splits."""

    table: str
    dataset: str
    objective: str
    split: str
    metric: str
    value: float
    deviation: float | None


@lru_cache
def published(table: str) -> tuple[Published, ...]:
    """All numbers of a table, in the order in which the paper prints them.

    >>> from fairfl.paper import published
    >>> first = published("table-1")[0]
    >>> first.dataset, first.objective, first.metric, first.value, first.deviation
    ('synthetic', 'q=0', 'average', 80.8, 0.9)
    """
    found = tuple(row for row in _rows() if row.table == table)
    if not found:
        known = ", ".join(dict.fromkeys(row.table for row in _rows()))
        raise ValueError(f"the paper has no {table!r} with numbers; it has {known}")
    return found


@lru_cache
def _rows() -> tuple[Published, ...]:
    text = files("fairfl.paper").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(
        Published(
            row["table"],
            row["dataset"],
            row["objective"],
            row["split"],
            row["metric"],
            float(row["value"]),
            float(row["deviation"]) if row["deviation"] else None,
        )
        for row in csv.DictReader(text.splitlines())
    )
