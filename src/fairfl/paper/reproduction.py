"""Trains what recipes need, each training once and each a run on disk, and compares."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from fairfl import datasets
from fairfl.metrics import Interval, interval
from fairfl.paper.asked import Asked, absent, plan, size, source, used
from fairfl.paper.measured import per_seed, reached, statistics
from fairfl.paper.published import Published, published
from fairfl.paper.recipe import Number, Panel, Pick, Recipe, Training
from fairfl.paper.trainings import TRAININGS
from fairfl.paper.verdict import Cell, Change, cell
from fairfl.runs import Result, train
from fairfl.runs.keeping import Keeper
from fairfl.runs.request import Plan
from fairfl.simulation.engine import Progress


class Run(NamedTuple):
    """A training as it was run: on which data, and what came out; or why it could not be."""

    training: Training
    data: str | None
    result: Result | None
    missing: str | None = None


class Compared(NamedTuple):
    """A panel with its numbers side by side; `missing` says why there are none, and `data` on what
    they were counted where nothing was trained."""

    panel: Panel
    cells: tuple[Cell, ...]
    missing: str | None = None
    data: str | None = None


OnChunk = Callable[[Progress], None] | None
Watch = Callable[[Training, Plan], AbstractContextManager[OnChunk]]
"""What goes on around a training; gives what is to be called after every chunk of it."""


def trainings(recipes: Sequence[Recipe]) -> list[Training]:
    """What some recipes need, each once and in the order of the list of trainings."""
    needed = {name for recipe in recipes for name in recipe.trainings}
    return [training for name, training in TRAININGS.items() if name in needed]


def run(training: Training, folder: Path, asked: Asked, resume: bool, watch: Watch) -> Run:
    """Train, go on with what an interruption left, or read what is finished."""
    missing = absent(training, asked.data_dir)
    data = used(training, asked.data_dir)
    if missing or data is None:
        return Run(training, None, None, missing)
    asked_for = plan(training, data, asked)
    keeping = Keeper(folder / training.name.replace(":", "-"), resume=resume)
    with keeping as keeper, watch(training, asked_for) as on_chunk:
        result = train(
            asked_for.data,
            asked_for.model,
            asked_for.algorithm,
            rounds=asked_for.rounds,
            cohort=asked_for.cohort,
            seed=asked_for.seeds,
            evaluate_every=asked_for.evaluate_every,
            on_chunk=on_chunk,
            out=keeper,
        )
        keeper.finish(result)
    return Run(training, data, result)


Runs = dict[str, Run]


def compared(recipe: Recipe, runs: Runs, asked: Asked) -> list[Compared]:
    """Every panel of a table, number by number."""
    return [_panel(recipe.name, panel, runs, asked) for panel in recipe.panels]


def _panel(table: str, panel: Panel, runs: Runs, asked: Asked) -> Compared:
    asked_for = [row for row in published(table) if row.dataset == panel.dataset]
    theirs = [row for row in asked_for if row.objective in panel.rows]
    if not any(pick.training for pick in panel.rows.values()):
        return _statistics(panel, theirs, asked)
    for pick in panel.rows.values():
        missing = _unread(runs[pick.training], pick)
        if missing:
            return Compared(panel, (), missing)
    found = {(row.objective, row.metric): _ours(panel, row, runs) for row in theirs}
    first = next(iter(panel.rows))
    plain = {row.metric: row.value for row in theirs if row.objective == first}
    cells = []
    for row in theirs:
        ours = found[row.objective, row.metric]
        change = Change(row.value - plain[row.metric], ours.mean - found[first, row.metric].mean)
        cells.append(cell(row, ours, None if row.objective == first else change))
    return Compared(panel, tuple(cells))


def _unread(run: Run, pick: Pick) -> str | None:
    """Why a pick cannot be read."""
    if run.result is None:
        return run.missing
    if reached(run.result, pick):
        return None
    if pick.after is not None and run.result.rounds < pick.after:
        return f"needs {pick.after:,} rounds, and this budget has {run.result.rounds:,}"
    return "is no part of these settings"


def _ours(panel: Panel, row: Published, runs: Runs) -> Interval:
    pick = panel.rows[row.objective]
    result = runs[pick.training].result
    assert result is not None
    return interval(per_seed(result, pick, row.split, row.metric))  # type: ignore[arg-type]


def _statistics(panel: Panel, theirs: Sequence[Published], asked: Asked) -> Compared:
    training = next(t for t in TRAININGS.values() if t.data == panel.dataset)
    data = used(training, asked.data_dir)
    if data is None:
        return Compared(panel, (), absent(training, asked.data_dir))
    name, options = source(data)
    found = statistics(datasets.load(name, data_dir=asked.data_dir, **options))
    cells = (cell(row, _exactly(found[row.metric])) for row in theirs)
    return Compared(panel, tuple(cells), data=data)


def _exactly(value: Number) -> Interval:
    return Interval(value, math.nan, math.nan, math.nan, 1)


def capped(run: Run, asked: Asked) -> str | None:
    """In words, how much smaller a run is than the paper's, and what all of it would take here."""
    if run.result is None:
        return None
    full, here = run.training.full, size(run.training, asked)
    if here.rounds >= full.rounds and here.seeds >= full.seeds:
        return None
    whole = run.result.seconds * full.rounds * full.seeds / (here.rounds * here.seeds)
    return (
        f"{here.rounds:,} of {full.rounds:,} rounds and {here.seeds} of {full.seeds} seeds; all of "
        f"it would take about {lasting(whole)} here"
    )


def lasting(seconds: Number) -> str:
    """A duration, roughly.

    >>> from fairfl.paper.reproduction import lasting
    >>> lasting(42), lasting(600), lasting(36_000)
    ('42 s', '10 min', '10 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
