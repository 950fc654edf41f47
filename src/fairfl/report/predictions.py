"""What a model said of the rows of a table, in words and numbers."""

from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from fairfl.runs.json import SCHEMA
from fairfl.runs.prediction import Prediction


def lines(found: Prediction) -> list[Any]:
    """Which model scored, what it said how often, and how right it was where that is known."""
    labels = ", ".join(
        f"{name.replace('_', ' ')} {value:g}" for name, value in found.experiment.items()
    )
    said: list[Any] = [f"Scored with {found.algorithm}: {labels}", "", _counts(found)]
    if found.fairness is not None:
        said.append(
            f"Against the labels of the table: {found.fairness.average:.1f} % accurate over rows, "
            f"{found.fairness.worst10:.1f} % for the worst tenth of the clients and "
            f"{found.fairness.best10:.1f} % for the best."
        )
    return [*said, *(f"Note: {note}" for note in found.notes)]


def _counts(found: Prediction) -> Table:
    """How often each class is predicted; for a regression what the values are like."""
    shown = Table(
        title=f"Predictions for {len(found.label):,} rows",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    if found.classes is None:
        for name in ("mean", "least", "most"):
            shown.add_column(name, justify="right")
        values = (np.mean(found.label), np.min(found.label), np.max(found.label))
        shown.add_row(*(f"{value:.4g}" for value in values))
        return shown
    shown.add_column("prediction", style="bold")
    for name in ("rows", "share"):
        shown.add_column(name, justify="right")
    for name in found.classes:
        count = int(np.count_nonzero(found.label == name))
        shown.add_row(str(name), f"{count:,}", f"{100 * count / len(found.label):.1f} %")
    return shown


def as_object(found: Prediction) -> dict[str, Any]:
    """The same for programs, with every row's prediction in the table's order."""
    return {
        "schema": SCHEMA,
        "algorithm": found.algorithm,
        "experiment": found.experiment,
        "rows": len(found.label),
        "columns": found.columns,
        "fairness": None if found.fairness is None else found.fairness._asdict(),
        "notes": list(found.notes),
    }
