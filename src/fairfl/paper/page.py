"""A reproduction as a page of Markdown: docs/reproduction.md is one."""

from collections.abc import Iterator, Sequence

from fairfl.paper import texts
from fairfl.paper.asked import Asked
from fairfl.paper.figures import Raced, Spreads
from fairfl.paper.found import Reproduced, Reproduction, Theory
from fairfl.paper.reproduction import Compared, Runs

Lines = Iterator[str]

EXPLAINED = """
Every number of the paper's tables beside ours, and what its figures claim. A verdict compares the
means over runs: **matches** when they are within 2 sqrt(s² + s'²) of each other, s and s' being the
deviations of one run of theirs and of ours (and half of the last printed digit); **same direction**
when both go the same way from the first row of their data set; **differs** otherwise. Intervals are
Student's 95 % intervals of our mean over the seeds.
"""


def markdown(found: Reproduction, command: str) -> str:
    """The whole page."""
    return "\n".join(_lines(found, command)).replace("\n\n\n", "\n\n").rstrip() + "\n"


def _lines(found: Reproduction, command: str) -> Lines:
    yield "# The paper, reproduced"
    yield ""
    yield f"Written by `{command}`."
    yield EXPLAINED
    yield texts.summary(found)
    for one in found.reproduced:
        yield from _recipe(one, found)
    if found.theory:
        yield from _theory(found.theory)
    yield from _settings(found)


def _recipe(one: Reproduced, found: Reproduction) -> Lines:
    yield ""
    yield f"## {one.recipe.name}: {one.recipe.title}"
    yield ""
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
    yield f"### {texts.heading(panel)}"
    yield ""
    if panel.missing:
        yield f"Not run: {panel.missing}."
        return
    yield from _paragraphs(texts.panel_labels(panel, runs, asked))
    yield from _table(texts.COLUMNS, [texts.row(cell) for cell in panel.cells])
    yield from _paragraphs([texts.lesson(panel), texts.differing(panel, runs, asked)])


def _race(race: Raced, runs: Runs, asked: Asked) -> Lines:
    yield ""
    yield f"### {race.race.dataset}"
    yield ""
    if race.missing:
        yield f"Not run: {race.missing}."
        return
    yield from _paragraphs(texts.labels([c.pick for c in race.race.curves], runs, asked))
    yield from _table(texts.RACE, texts.race_rows(race))
    yield from _paragraphs([texts.raced(race)])


def _spread(spread: Spreads, runs: Runs, asked: Asked) -> Lines:
    yield ""
    yield f"### {spread.spread.dataset}: clients per ten points of {spread.spread.split} accuracy"
    yield ""
    if spread.missing:
        yield f"Not run: {spread.missing}."
        return
    yield from _paragraphs(texts.labels(list(spread.spread.rows.values()), runs, asked))
    yield from _table(texts.BINS, texts.spread_rows(spread))
    yield from _paragraphs([texts.spread_claim(spread)])


def _theory(theory: Theory) -> Lines:
    yield ""
    yield f"## {texts.THEORY}"
    yield ""
    yield from _table(texts.CHECKS, [texts.check(found) for found in theory.checks])
    yield from _paragraphs([f"{texts.GENERALISES}:"])
    yield from _table(texts.BOUNDS, [texts.bounded(found) for found in theory.bounds])


def _settings(found: Reproduction) -> Lines:
    ran = list(texts.trained(found))
    if not ran:
        return
    yield ""
    yield "## How it was trained"
    yield ""
    for training in ran:
        yield f"- {training.name}: {training.how}; {training.size}"


def _paragraphs(sentences: Sequence[str | None]) -> Lines:
    for sentence in sentences:
        if sentence:
            yield sentence
            yield ""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""
