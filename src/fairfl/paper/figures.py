"""The paper's figures, measured: who gets there first, and how accuracies spread over clients."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from fairfl.metrics import Interval, interval
from fairfl.paper.curves import Line, at_the_end, level, line, rounds_to
from fairfl.paper.measured import accuracies, per_seed, reached
from fairfl.paper.recipe import Pick, Race, Recipe, Spread
from fairfl.paper.reproduction import Runs
from fairfl.paper.verdict import Verdict

EDGES = np.linspace(0, 100, 11)
"""Bins of ten points of accuracy, as a terminal has room for."""


class Raced(NamedTuple):
    """The lines of a race, the level that all of them get to, and after how many rounds."""

    race: Race
    lines: tuple[Line, ...]
    level: float
    rounds: tuple[int, ...]
    verdict: Verdict
    missing: str | None = None

    @property
    def ends(self) -> list[Interval]:
        return [at_the_end(found) for found in self.lines]


class Distribution(NamedTuple):
    """How many clients have an accuracy in each bin, means over the seeds, and the variance."""

    label: str
    clients: Float[np.ndarray, " bins"]
    variance: Interval
    accuracies: Float[np.ndarray, " clients"]


class Spreads(NamedTuple):
    """The distributions of one data set; whether the last is more even than the first."""

    spread: Spread
    rows: tuple[Distribution, ...]
    verdict: Verdict
    missing: str | None = None


def raced(recipe: Recipe, runs: Runs) -> list[Raced]:
    """Every race of a figure."""
    return [_race(race, runs) for race in recipe.races]


def _race(race: Race, runs: Runs) -> Raced:
    missing = _missing([curve.pick for curve in race.curves], runs)
    if missing:
        return Raced(race, (), np.nan, (), "differs", missing)
    lines = tuple(line(_result(runs, curve.pick), curve) for curve in race.curves)
    common = level(lines)
    rounds = tuple(rounds_to(found, common) for found in lines)
    return Raced(race, lines, common, rounds, kept(rounds, race.slack))


def kept(rounds: tuple[int, ...], slack: float | int) -> Verdict:
    """Whether the first line is there no later than the second, within the slack.

    >>> from fairfl.paper.figures import kept
    >>> kept((100, 300), 1.0), kept((400, 300), 1.0), kept((400, 300), 1.5)
    ('same direction', 'differs', 'same direction')
    """
    return "same direction" if rounds[0] <= slack * rounds[1] else "differs"


def spreads(recipe: Recipe, runs: Runs) -> list[Spreads]:
    """Every data set of a figure of distributions."""
    return [_spread(spread, runs) for spread in recipe.spreads]


def _spread(spread: Spread, runs: Runs) -> Spreads:
    missing = _missing(list(spread.rows.values()), runs)
    if missing:
        return Spreads(spread, (), "differs", missing)
    rows = tuple(_row(label, pick, spread, runs) for label, pick in spread.rows.items())
    fairer = rows[-1].variance.mean < rows[0].variance.mean
    return Spreads(spread, rows, "same direction" if fairer else "differs")


def _row(label: str, pick: Pick, spread: Spread, runs: Runs) -> Distribution:
    result = _result(runs, pick)
    found = accuracies(result, pick, spread.split)
    return Distribution(
        label,
        counted(found),
        interval(per_seed(result, pick, spread.split, "variance")),
        np.concatenate(found),
    )


def counted(found: list[Float[np.ndarray, " clients"]]) -> Float[np.ndarray, " bins"]:
    """Clients per bin of ten points, as a mean over the seeds; 100 belongs to the last bin.

    >>> import numpy as np
    >>> from fairfl.paper.figures import counted
    >>> counted([np.array([5.0, 95.0, 100.0]), np.array([15.0, 95.0, 95.0])])[[0, 1, 9]].tolist()
    [0.5, 0.5, 2.0]
    """
    return np.mean([np.histogram(one, EDGES)[0] for one in found], axis=0)


def _result(runs: Runs, pick: Pick):
    result = runs[pick.training].result
    assert result is not None
    return result


def _missing(picks: list[Pick], runs: Runs) -> str | None:
    for pick in picks:
        run = runs[pick.training]
        if run.result is None:
            return run.missing
        if not reached(run.result, pick):
            return "is no part of these settings"
    return None
