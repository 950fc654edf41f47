"""What a server believes of a reply: faults that put it aside, and bounds on what it claims."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Shaped

from fairfl.algorithms import Algorithm
from fairfl.algorithms.algorithm import numbers
from fairfl.algorithms.rules import bounded

Leaves = Sequence[Shaped[np.ndarray, "..."]]


@dataclass(frozen=True)
class Trust:
    """How far the server believes its clients; None switches a bound off.

    loss_spread    a loss above the cohort's median by so many robust deviations is clipped there
    loss_growth    and one above so many times what was accepted of the client before, there
    update_ratio   an update longer than so many times the cohort's median length is put aside

    Replies that are empty, misshapen or not finite are put aside whatever is set here. The bounds
    on losses cost a truly badly served client weight too, once it lies outside them.

    >>> from fairfl.flower.trust import Trust
    >>> Trust(update_ratio=None).loss_spread
    3.0
    """

    loss_spread: float | int | None = 3.0
    loss_growth: float | int | None = 2.0
    update_ratio: float | int | None = 100.0

    def __post_init__(self) -> None:
        least = {"loss_spread": 0.0, "loss_growth": 1.0, "update_ratio": 1.0}
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= low):
                raise ValueError(
                    f"{name}={value} must be a finite number of at least {low:g}, "
                    "or None to switch it off"
                )


BELIEVE_ALL = Trust(loss_spread=None, loss_growth=None, update_ratio=None)
"""No bounds: only replies that no arithmetic could use are put aside."""

OFF = float(np.finfo(np.float32).max)
"""A bound that never acts."""


def bounding(algorithm: Algorithm, trust: Trust) -> Algorithm:
    """The algorithm with its rule behind the bounds on losses; the same where both are off.

    A rule that reads no losses, as the mean, has none to bound.

    >>> import fairfl
    >>> from fairfl.flower.trust import Trust, bounding
    >>> bounding(fairfl.q_fedavg(q=5), Trust()).rule.name
    'bounded q-FFL'
    """
    spread, growth = trust.loss_spread, trust.loss_growth
    if not algorithm.rule.needs.losses or (spread is None and growth is None):
        return algorithm
    rule = bounded(algorithm.rule)
    limits = {"spread": spread, "growth": growth}
    known = {parameter.name: parameter for parameter in rule.parameters}
    hyper = {
        name: numbers(name, OFF if value is None else value, known[name])
        for name, value in limits.items()
    }
    return replace(algorithm, rule=rule, hyper={**algorithm.hyper, **hyper})


def fault(update: Leaves, loss: float, like: Leaves) -> str | None:
    """Why a reply cannot be used, in words; None where it can.

    `like` is the model that was sent: as many arrays, each of that shape.

    >>> import numpy as np
    >>> from fairfl.flower.trust import fault
    >>> model = [np.zeros(3, np.float32)]
    >>> fault([np.ones(3, np.float32)], 0.5, model) is None
    True
    >>> fault([np.ones(2, np.float32)], 0.5, model)
    'array 1 has the shape (2,) but the model has (3,)'
    >>> fault([np.ones(3, np.float32)], -1.0, model)
    'its loss is -1, which is no loss'
    """
    found = misfit(update, loss, like)
    if found:
        return found
    places = enumerate(update, start=1)
    wrong = [place for place, array in places if not finite(array)]
    return f"array {wrong[0]} holds values that are not finite" if wrong else None


def misfit(update: Leaves, loss: float, like: Leaves) -> str | None:
    """Why a reply has not the form of an answer; its numbers are not read.

    >>> import numpy as np
    >>> from fairfl.flower.trust import misfit
    >>> misfit([np.full(3, np.nan)], 0.5, [np.zeros(3)]) is None
    True
    """
    if not update:
        return "the reply is empty"
    if len(update) != len(like):
        return f"it has {len(update)} arrays but the model has {len(like)}"
    for place, (array, model) in enumerate(zip(update, like, strict=True), start=1):
        found = _array_misfit(array, model)
        if found:
            return f"array {place} {found}"
    if not 0 <= loss <= OFF:
        return f"its loss is {loss:g}, which is no loss"
    return None


def _array_misfit(array: np.ndarray, model: np.ndarray) -> str | None:
    if array.shape != model.shape:
        return f"has the shape {array.shape} but the model has {model.shape}"
    if array.dtype.kind not in "fiub":
        return f"holds {array.dtype} values, which are no numbers"
    return None


def finite(array: Shaped[np.ndarray, "..."]) -> bool:
    """Whether every number is finite, without an array of truths beside a large one.

    A NaN makes the sum NaN and an infinity makes it infinite or NaN; only a sum of finite numbers
    that overflows needs the longer look.
    """
    if array.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum(dtype=np.float64)) or np.isfinite(array).all())


def oversized(squares: Float[np.ndarray, " cohort"], trust: Trust) -> Bool[np.ndarray, " cohort"]:
    """Whose update is longer than `update_ratio` times the cohort's median length.

    >>> import numpy as np
    >>> from fairfl.flower.trust import Trust, oversized
    >>> oversized(np.array([1.0, 4.0, 1e8]), Trust(update_ratio=100)).tolist()
    [False, False, True]
    """
    if trust.update_ratio is None or not len(squares):
        return np.zeros(len(squares), bool)
    return squares > np.median(squares) * trust.update_ratio**2
