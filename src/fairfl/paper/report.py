"""A reproduction as one self-contained page: published and ours, curves and distributions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairfl.paper import texts
from fairfl.paper.asked import Asked
from fairfl.paper.figures import EDGES, Raced, Spreads
from fairfl.paper.found import Reproduced, Reproduction, Theory, tally
from fairfl.paper.page import EXPLAINED
from fairfl.paper.reproduction import Compared, Runs
from fairfl.report import charts
from fairfl.report.page import Block, Code, Figure, Page, Section, Tile, Tiles
from fairfl.report.sheets import Column, Sheet

Blocks = Iterator[Block]


def page(found: Reproduction, command: str) -> Page:
    """Everything that was found, in the paper's order.

    >>> from fairfl.paper.asked import Asked
    >>> from fairfl.paper.found import Reproduction
    >>> from fairfl.paper.report import page
    >>> page(Reproduction(Asked(), (), None, {}, 0.0), "fairfl reproduce all").title
    'The paper, reproduced: budget quick'
    """
    sections = [Section(_title(one), [*_recipe(one, found)]) for one in found.reproduced]
    if found.theory:
        sections.append(Section(texts.THEORY, [*_theory(found.theory)]))
    explained = " ".join(EXPLAINED.replace("**", "").split())
    return Page(
        title=f"The paper, reproduced: budget {found.asked.budget}",
        headline=texts.verdicts(found),
        blocks=[_tiles(found), explained],
        sections=[*sections, Section("How it was trained", [_trained(found), Code(command)])],
    )


def _title(one: Reproduced) -> str:
    return f"{one.recipe.name}: {one.recipe.title}"


def _tiles(found: Reproduction) -> Tiles:
    count = tally(found)
    return Tiles([Tile(name, f"{count[name]:,}") for name in texts.VERDICTS])


def _recipe(one: Reproduced, found: Reproduction) -> Blocks:
    if one.recipe.note:
        yield one.recipe.note
    for place, panel in enumerate(one.panels, 1):
        yield from _panel(f"{one.recipe.name}-{place}", panel, found.runs, found.asked)
    for race in one.races:
        yield from _race(f"{one.recipe.name}-{race.race.dataset}", race, found.runs, found.asked)
    for spread in one.spreads:
        name = f"{one.recipe.name}-{spread.spread.dataset}"
        yield from _spread(name, spread, found.runs, found.asked)


def _panel(name: str, panel: Compared, runs: Runs, asked: Asked) -> Blocks:
    title = texts.heading(panel)
    if panel.missing:
        yield f"{title}: not run, {panel.missing}."
        return
    rows = [texts.row(cell) for cell in panel.cells]
    yield _sheet(name, title, texts.COLUMNS, rows, words=(0, 1, 5))
    yield from texts.panel_labels(panel, runs, asked)
    yield from _said(texts.lesson(panel), texts.differing(panel, runs, asked))


def _race(name: str, race: Raced, runs: Runs, asked: Asked) -> Blocks:
    if race.missing:
        yield f"{race.race.dataset}: not run, {race.missing}."
        return
    title = f"{race.race.dataset}: {texts.QUANTITIES[race.race.curves[0].quantity]}"
    yield Figure(name, _curves(race), texts.raced(race))
    yield _sheet(name, title, texts.RACE, texts.race_rows(race))
    yield from texts.labels([curve.pick for curve in race.race.curves], runs, asked)


def _curves(race: Raced) -> charts.Chart:
    rows: list[Mapping[str, Any]] = [
        {"model": line.label, "round": int(round), "value": float(value)}
        for line in race.lines
        for round, value in zip(line.rounds, line.mean, strict=True)
    ]
    quantity = texts.QUANTITIES[race.race.curves[0].quantity]
    return charts.lines(rows, charts.palette([line.label for line in race.lines]), quantity)


def _spread(name: str, spread: Spreads, runs: Runs, asked: Asked) -> Blocks:
    if spread.missing:
        yield f"{spread.spread.dataset}: not run, {spread.missing}."
        return
    title = f"{spread.spread.dataset}, {spread.spread.split} data"
    yield Figure(name, _histogram(spread), f"{title}: {texts.spread_claim(spread)}")
    yield from texts.labels(list(spread.spread.rows.values()), runs, asked)


def _histogram(spread: Spreads) -> charts.Chart:
    rows: list[Mapping[str, Any]] = [
        {"model": row.label, "value": float(low), "to": float(high), "clients": float(count)}
        for row in spread.rows
        for low, high, count in zip(EDGES[:-1], EDGES[1:], row.clients, strict=True)
    ]
    return charts.histogram(
        rows, charts.palette([row.label for row in spread.rows]), "accuracy (%)"
    )


def _theory(theory: Theory) -> Blocks:
    checks = [texts.check(found) for found in theory.checks]
    yield _sheet("lemmas", "Cases tried", texts.CHECKS, checks, words=(0, 1))
    rows = [texts.bounded(found) for found in theory.bounds]
    yield _sheet("bound", texts.GENERALISES, texts.BOUNDS, rows)


def _trained(found: Reproduction) -> Sheet:
    rows = [(said.name, said.how, said.size) for said in texts.trained(found)]
    return _sheet("trainings", "Every training", ("name", "how", "size"), rows, words=(0, 1, 2))


def _sheet(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Sequence[int] = (0,),
) -> Sheet:
    """A table of cells that are text already; the columns that are not words stand to the right."""
    heads = [Column(column, "" if i in words else "s") for i, column in enumerate(columns)]
    return Sheet(name, title, heads, rows)


def _said(*sentences: str | None) -> Blocks:
    yield from (sentence for sentence in sentences if sentence)
