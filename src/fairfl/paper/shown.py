"""A reproduction on a terminal of 80 columns."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.table import Table

from fairfl.paper import texts
from fairfl.paper.asked import Asked
from fairfl.paper.figures import Raced, Spreads
from fairfl.paper.found import Reproduced, Reproduction, Theory
from fairfl.paper.reproduction import Compared, Runs

Lines = Iterator[Any]

STYLES = {"matches": "green", "same direction": "yellow", "differs": "red"}


def lines(found: Reproduction) -> Lines:
    """Everything that was found, table by table."""
    for one in found.reproduced:
        yield from _recipe(one, found)
    if found.theory:
        yield from _theory(found.theory)
    if any(one.panels for one in found.reproduced):
        yield ""
        yield texts.summary(found)


def _recipe(one: Reproduced, found: Reproduction) -> Lines:
    yield ""
    yield f"{one.recipe.name}: {one.recipe.title}"
    if one.recipe.note:
        yield one.recipe.note
    for panel in one.panels:
        yield from _panel(panel, found.runs, found.asked)
    for race in one.races:
        yield from _race(race, found.runs, found.asked)
    for spread in one.spreads:
        yield from _spread(spread, found.runs, found.asked)


def _panel(panel: Compared, runs: Runs, asked: Asked) -> Lines:
    yield ""
    title = texts.heading(panel)
    if panel.missing:
        yield f"{title}: {panel.missing}"
        return
    yield title
    yield from texts.panel_labels(panel, runs, asked)
    table = _table(texts.COLUMNS, left=(0, 1, 5))
    before = None
    for cell in panel.cells:
        objective, *rest = texts.row(cell)
        table.add_row("" if objective == before else objective, *rest, style=STYLES[cell.verdict])
        before = objective
    yield table
    for sentence in (texts.lesson(panel), texts.differing(panel, runs, asked)):
        if sentence:
            yield sentence


def _race(race: Raced, runs: Runs, asked: Asked) -> Lines:
    yield ""
    if race.missing:
        yield f"{race.race.dataset}: {race.missing}"
        return
    yield race.race.dataset
    yield from texts.labels([curve.pick for curve in race.race.curves], runs, asked)
    yield _filled(texts.RACE, texts.race_rows(race))
    yield texts.raced(race)


def _spread(spread: Spreads, runs: Runs, asked: Asked) -> Lines:
    yield ""
    if spread.missing:
        yield f"{spread.spread.dataset}: {spread.missing}"
        return
    yield f"{spread.spread.dataset}: clients per ten points of {spread.spread.split} accuracy"
    yield from texts.labels(list(spread.spread.rows.values()), runs, asked)
    yield _filled(texts.BINS, texts.spread_rows(spread))
    yield texts.spread_claim(spread)


def _theory(theory: Theory) -> Lines:
    yield ""
    yield texts.THEORY
    yield _filled(texts.CHECKS, [texts.check(found) for found in theory.checks], left=(0, 1))
    yield texts.GENERALISES
    yield _filled(texts.BOUNDS, [texts.bounded(found) for found in theory.bounds])


def _filled(
    columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)
) -> Table:
    table = _table(columns, left)
    for row in rows:
        table.add_row(*row)
    return table


def _table(columns: Sequence[str], left: Sequence[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place in left else "right")
    return table
