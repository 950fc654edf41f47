"""A comparison for a terminal of 80 columns: methods, differences, what each was tuned to."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.table import Table

from fairfl.clients.federated import SplitName
from fairfl.comparison import Comparison
from fairfl.comparison.differences import COMPARED
from fairfl.comparison.notes import notes
from fairfl.report.tables import METRICS, figures_of, noun_of, ruled, spread
from fairfl.runs.result import Columns

DIVERGED, REAL, SURE = "†", "*", "**"

WIDEST = 18
"""Longer names of methods are broken into lines."""


def lines(found: Comparison) -> list[Any]:
    """Everything that a comparison says, in the order in which it is read.

    >>> import fairfl
    >>> from fairfl.report.methods import lines
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> methods = [fairfl.fedavg(), fairfl.q_fedavg()]
    >>> found = fairfl.compare(data, model, methods, rounds=3, cohort=5, seeds=2)
    >>> print(lines(found)[0])
    2 methods on synthetic: softmax regression, 20 clients, 2,539 rows
    """
    tables = [methods(found)]
    if found.comparisons:
        tables.append(differences(found))
    tables.append(settings(found))
    return [*heading(found), "", *tables, *(f"Note: {n}" for n in notes(found))]


def heading(found: Comparison) -> list[str]:
    """What was compared on what, and how long it took."""
    result = found[found.baseline]
    data, count, told = result.data, len(found.methods), result.settings
    clients = min(told["cohort"], data.clients)
    seeds = [member.seed for member in result.members]
    named = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    return [
        f"{count} method{'s' * (count > 1)} on {data.name}: {told['model']}, "
        f"{data.clients:,} clients, "
        f"{data.rows:,} rows",
        f"{result.rounds:,} rounds of {clients:,} clients, {named}, the same "
        "splits, cohorts and batches",
        f"trained in {found.seconds:,.1f} s",
    ]


def methods(found: Comparison, split: SplitName = "test") -> Table:
    """One row per method: the paper's metrics, mean over the seeds and their deviation."""
    result = found[found.baseline]
    several = f", mean ± deviation of {len(result)} seeds" if len(result) > 1 else ""
    table = ruled(f"{split.capitalize()} {noun_of(result)} over clients{several}")
    _add_method(table)
    for title in METRICS.values():
        table.add_column(title, justify="right")
    figures = figures_of(result)
    for method in found.methods:
        shown = found[method]
        values = shown.fairness(split)
        cells = [spread(values[metric], figures[metric]) for metric in METRICS]
        stopped = any(member.stopped for member in shown.members)
        table.add_row(method + DIVERGED * stopped, *cells)
    return table


def differences(found: Comparison, split: SplitName = "test") -> Table:
    """Each method minus the baseline, paired by seed, with the 95 % interval."""
    result, compared = found[found.baseline], found.differences(split)
    figures = figures_of(result)
    kind = " ± half the 95 % interval" if len(result) > 1 else ""
    table = ruled(f"Difference to {found.baseline}{kind}")
    _add_method(table)
    for metric in COMPARED:
        table.add_column(METRICS[metric], justify="right")
        table.add_column("", width=2)
    for method in dict.fromkeys(compared["method"].tolist()):
        rows = np.flatnonzero(compared["method"] == method).tolist()
        cells = [_difference(compared, row, figures) for row in rows]
        table.add_row(method, *(part for cell in cells for part in cell))
    return table


def _difference(compared: Columns, row: int, figures: Mapping[str, str]) -> tuple[str, str]:
    """The difference with its interval, which is as wide to both sides, and its mark."""
    form = figures[str(compared["metric"][row])]
    value, half = compared["difference"][row], compared["high"][row] - compared["difference"][row]
    return f"{value:+{form}}" + (f" ±{half:{form}}" if half > 0 else ""), mark(compared, row)


def mark(compared: Columns, row: int) -> str:
    """How a difference that is real is marked."""
    return SURE if compared["sure"][row] else REAL if compared["real"][row] else ""


def settings(found: Comparison) -> Table:
    """The setting that each method is shown with, of how many, and why."""
    table = ruled("Settings, chosen on validation data")
    _add_method(table)
    table.add_column("setting")
    table.add_column("of", justify="right", no_wrap=True)
    table.add_column("chosen for")
    for method, tuned in found.tuned.items():
        setting = ", ".join(f"{n.replace('_', ' ')} {v:g}" for n, v in tuned.hyper.items())
        table.add_row(method, setting, str(tuned.tried), tuned.reason)
    return table


def _add_method(table: Table) -> None:
    table.add_column("method", style="bold", overflow="fold", max_width=WIDEST)
