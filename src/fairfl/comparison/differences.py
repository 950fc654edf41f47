"""Differences between methods that had the same seeds, and which of them are real."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fairfl.clients.federated import SplitName
from fairfl.metrics import Interval, paired_interval
from fairfl.runs import Result

COMPARED = ("average", "worst10", "variance")
"""The metrics whose differences are tested."""

CONFIDENCE = 0.95


class Difference(NamedTuple):
    """A method's metric minus the baseline's, mean over the pairs of a seed.

    `real` says that the 95 % interval leaves out 0; `sure` that it still does at
    1 - 5 % / comparisons, so that all that are sure are so together (Bonferroni). Neither can be
    said where the seeds changed nothing, or where there is one.
    """

    method: str
    metric: str
    difference: float
    low: float
    high: float
    deviation: float
    seeds: int
    real: bool
    sure: bool


def differences(
    method: str, mine: Result, plain: Result, comparisons: int, split: SplitName = "test"
) -> list[Difference]:
    """One method beside the baseline, each at one setting, where `comparisons` are made in all.

    >>> import fairfl
    >>> from fairfl.comparison.differences import differences
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> how = {"rounds": 3, "cohort": 5, "seed": [0, 1, 2]}
    >>> plain = fairfl.train(data, model, fairfl.fedavg(), **how)
    >>> found = differences("again", plain, plain, comparisons=3)
    >>> [(one.metric, one.difference, one.real) for one in found]
    [('average', 0.0, False), ('worst10', 0.0, False), ('variance', 0.0, False)]
    """
    if seeds(mine) != seeds(plain):
        raise ValueError(f"{method} has other seeds than the baseline, so nothing can be paired")
    a, b = mine.fairness(split), plain.fairness(split)
    strict = 1 - (1 - CONFIDENCE) / comparisons
    found = []
    for metric in COMPARED:
        usual = paired_interval(a[metric], b[metric], CONFIDENCE)
        corrected = paired_interval(a[metric], b[metric], strict)
        found.append(
            Difference(
                method=method,
                metric=metric,
                difference=usual.mean,
                low=usual.low,
                high=usual.high,
                deviation=usual.deviation,
                seeds=usual.count,
                real=_leaves_out_zero(usual),
                sure=_leaves_out_zero(corrected),
            )
        )
    return found


def seeds(result: Result) -> Sequence[int]:
    return [member.seed for member in result.members]


def _leaves_out_zero(found: Interval) -> bool:
    # Without deviation the seeds had no say, and an interval of no width shows nothing.
    if not np.isfinite(found.deviation) or found.deviation == 0:
        return False
    return found.low > 0 or found.high < 0
