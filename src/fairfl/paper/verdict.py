"""Published and ours, number by number: matches, same direction, or differs."""

import math
from typing import Literal, NamedTuple

from fairfl.metrics import Interval
from fairfl.paper.published import Published

Verdict = Literal["matches", "same direction", "differs"]

DIGITS = {"variance": 0, "kl": 3, "clients": 0, "rows": 0, "mean": 0, "deviation": 0}
"""Decimal places in which the paper prints a metric; one for all others."""


class Cell(NamedTuple):
    """One published number, ours beside it, and how they compare.

    `strictly` is whether the means themselves are within two standard errors of their difference.
    """

    published: Published
    ours: Interval
    verdict: Verdict
    strictly: bool


class Change(NamedTuple):
    """How far a row is from the row that it is compared with: the paper's, and ours."""

    published: float
    ours: float


def digits(metric: str) -> int:
    """Decimal places of a metric as the paper prints it.

    >>> from fairfl.paper.verdict import digits
    >>> digits("average"), digits("variance"), digits("kl")
    (1, 0, 3)
    """
    return DIGITS.get(metric, 1)


def cell(published: Published, ours: Interval, change: Change | None = None) -> Cell:
    """Compare one number; `change` is given for rows that have one to be compared with."""
    return Cell(published, ours, judge(published, ours, change), _near(published, ours, means=True))


def judge(published: Published, ours: Interval, change: Change | None) -> Verdict:
    """matches: |ours - theirs| <= 2 sqrt(s_ours^2 + s_theirs^2), up to half a printed digit, with s
    the deviations over runs; same direction: both rows go the same way from the row that they are
    compared with; differs: neither.

    >>> from fairfl.metrics import interval
    >>> from fairfl.paper.published import Published
    >>> from fairfl.paper.verdict import Change, judge
    >>> theirs = Published("table-1", "synthetic", "q=1", "test", "variance", 472, 14)
    >>> judge(theirs, interval([440, 450, 460]), None)
    'matches'
    >>> judge(theirs, interval([340, 350, 360]), Change(-252, -100))
    'same direction'
    >>> judge(theirs, interval([340, 350, 360]), Change(-252, 5))
    'differs'
    """
    if _near(published, ours, means=False):
        return "matches"
    return "same direction" if change and _same_way(change, published.metric) else "differs"


def _near(published: Published, ours: Interval, means: bool) -> bool:
    theirs = published.deviation or 0.0
    own = 0.0 if math.isnan(ours.deviation) else ours.deviation
    if means:
        theirs, own = theirs / math.sqrt(RUNS), own / math.sqrt(ours.count)
    return abs(ours.mean - published.value) <= 2 * math.hypot(theirs, own) + half(published.metric)


RUNS = 5
"""Runs behind a published number."""


def half(metric: str) -> float:
    """Half of the last digit that the paper prints."""
    return 0.5 * 10.0 ** -digits(metric) + 1e-9


def _same_way(change: Change, metric: str) -> bool:
    return _sign(change.published, metric) == _sign(change.ours, metric)


def _sign(value: float | int, metric: str) -> int:
    """No way at all where the difference is below what the paper prints."""
    return 0 if abs(value) <= half(metric) else (1 if value > 0 else -1)
