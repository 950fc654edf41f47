"""What a figure shows over the rounds, and how many rounds a line needs to get somewhere."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fairfl.choice import choose_rate
from fairfl.metrics import Interval, interval
from fairfl.paper.measured import members
from fairfl.paper.recipe import Curve, Pick, Quantity
from fairfl.runs import Result
from fairfl.runs.convergence import objective
from fairfl.runs.result import Experiment


class Line(NamedTuple):
    """One line of a figure: a row of values per seed, at the rounds that were evaluated."""

    label: str
    rounds: Int[np.ndarray, " evaluations"]
    values: Float[np.ndarray, "seeds evaluations"]
    falls: bool
    learning_rate: float

    @property
    def mean(self) -> Float[np.ndarray, " evaluations"]:
        return self.values.mean(axis=0)


def line(result: Result, curve: Curve) -> Line:
    """The values of a curve, at the learning rate that its tuning picks from the grid."""
    rate = _rate(result, curve)
    tuned = Pick(curve.pick.training, (*curve.pick.hyper, ("learning_rate", rate)))
    found = members(result, tuned)
    return Line(
        label=curve.label,
        rounds=np.array(sorted(found[0].evaluations)),
        values=np.stack([values(member, curve.quantity) for member in found]),
        falls=curve.quantity == "objective",
        learning_rate=rate,
    )


def _rate(result: Result, curve: Curve) -> float:
    """The curve's learning rate: chosen at q = 0, or the one with the lowest objective at the end.

    A rate whose loss is no number at the end is never the lowest.
    """
    rates = sorted({member.hyper["learning_rate"] for member in members(result, curve.pick)})
    if len(rates) == 1:
        return rates[0]
    if curve.tuned == "plain":
        return choose_rate(result)
    ends = [_end(result, Pick("", (*curve.pick.hyper, ("learning_rate", r)))) for r in rates]
    return rates[int(np.argmin(np.where(np.isnan(ends), np.inf, ends)))]


def _end(result: Result, pick: Pick) -> float:
    return float(np.mean([objective(member)[-1] for member in members(result, pick)]))


def values(member: Experiment, quantity: Quantity) -> Float[np.ndarray, " evaluations"]:
    """One experiment's values at its evaluations."""
    if quantity == "objective":
        return objective(member)
    field = "average" if quantity == "average" else "worst"
    found = [member.fairness[done]["test"] for done in sorted(member.fairness)]
    return np.array([getattr(fairness, field) for fairness in found])


def level(lines: Sequence[Line]) -> float:
    """The level that every line gets to: the least good of the best values of their means.

    >>> import numpy as np
    >>> from fairfl.paper.curves import Line, level
    >>> rounds = np.array([10, 20])
    >>> a = Line("a", rounds, np.array([[70.0, 80.0]]), falls=False, learning_rate=0.1)
    >>> level([a, a._replace(values=np.array([[60.0, 75.0]]))])
    75.0
    """
    best = [line.mean.min() if line.falls else line.mean.max() for line in lines]
    return float(max(best) if lines[0].falls else min(best))


def rounds_to(line: Line, level: float | int) -> int:
    """The first evaluated round at which the mean over the seeds is there.

    >>> import numpy as np
    >>> from fairfl.paper.curves import Line, rounds_to
    >>> values = np.array([[70.0, 80.0], [72.0, 82.0]])
    >>> rounds_to(Line("a", np.array([10, 20]), values, falls=False, learning_rate=0.1), 75.0)
    20
    """
    there = line.mean <= level if line.falls else line.mean >= level
    return int(line.rounds[np.argmax(there)])


def at_the_end(line: Line) -> Interval:
    """The last value, over the seeds."""
    return interval(line.values[:, -1])
