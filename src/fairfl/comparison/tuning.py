"""Which of its settings a method is shown with: one protocol for all, on validation data."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fairfl.choice.means import Mean, means
from fairfl.choice.protocol import WITHIN, cost, measure_of
from fairfl.clients.federated import SplitName
from fairfl.runs import Result


class Tuned(NamedTuple):
    """The setting that a method is shown with, of how many, and why."""

    hyper: Mapping[str, float]
    tried: int
    reason: str


def tuned(
    result: Result, name: str, plain: Mean | None, split: SplitName = "validation"
) -> tuple[Tuned, Mean | None]:
    """The paper's protocol for any method, on means over the seeds of a split:

        argmin { variance(s) : average(s) >= average(baseline) - 1 }   over its settings s

    averages in percentage points, or percent of a regression's loss. Where no setting is that
    close, and for the baseline itself (`plain` None; `name` is its name), the best average
    decides. A setting that stopped early for any seed is out, unless all did.

    >>> import fairfl
    >>> from fairfl.comparison.tuning import tuned
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> rates = fairfl.fedavg(learning_rate=[1e-9, 0.1])
    >>> result = fairfl.train(data, model, rates, rounds=9, cohort=5)
    >>> tuned(result, "fedavg", None)[0].hyper
    {'learning_rate': 0.1}
    """
    if len(result.members) == len({member.seed for member in result.members}):
        only = means(result, split)[0] if _has(result, split) else None
        return Tuned(dict(result.members[0].hyper), 1, "the only one"), only
    found = means(result, split)
    whole = [mean for mean in found if not mean.stopped and np.isfinite(mean.average)]
    best, reason = _best(whole or found, result.data.task, name, plain)
    if not whole:
        reason = "all diverged for some seed"
    return Tuned(dict(best.hyper), len(found), reason), best


def _has(result: Result, split: SplitName) -> bool:
    return len(result.missing(split)) < result.data.clients


def _best(offered: list[Mean], task: str, name: str, plain: Mean | None) -> tuple[Mean, str]:
    """The setting, and why it is the one; the first of those that are equally good."""
    measure = measure_of(task)
    highest = max(offered, key=lambda mean: measure.sign * _number(mean.average))
    average = f"best average {measure.noun}"
    if plain is None:
        return highest, average
    near = [mean for mean in offered if cost(mean, plain, measure) <= WITHIN]
    close = f"within {WITHIN:g} {measure.unit} of {name}"
    if not near:
        return highest, f"{average}: none is {close}"
    return min(near, key=lambda mean: mean.variance), f"lowest variance {close}"


def _number(average: float) -> float:
    return average if np.isfinite(average) else -np.inf
