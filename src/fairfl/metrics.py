"""How evenly a model serves its clients, and how sure a few seeds make us of it.

The metrics are those of Table 4 of the q-FFL paper (Uniformity 1, 2 and 3 of its appendix A.1),
with Jain's index and Gini's coefficient beside them because readers from networking and from
economics ask for those.
"""

import math
import warnings
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

__all__ = [
    "Fairness",
    "FairnessWarning",
    "Interval",
    "fairness",
    "fairness_of_losses",
    "interval",
    "paired_interval",
]

Values = Float[np.ndarray, "values"]
PerClient = Float[np.ndarray, "clients"]

# Accuracies computed in float32 overshoot 100 by up to 1e-5.
_PERCENT_SLACK = 100 * 1e-6
_NAMES_SHOWN = 5


class FairnessWarning(UserWarning):
    """A fairness number could not be computed, because a client's own number is NaN.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     found = fairness([80, float("nan")], client=["ward", "lab"])
    >>> print(caught[0].category.__name__, found.average)
    FairnessWarning nan
    """


class Fairness(NamedTuple):
    """How evenly m clients are served; a_k is client k's accuracy in percent, n_k its size.

    average          sum_k n_k a_k / sum_k n_k: the accuracy over data points
    average_clients  mu = sum_k a_k / m
    worst10          mean over the max(1, floor(m / 10)) clients with the lowest accuracy
    best10           the same over the clients with the highest accuracy
    variance         sum_k (a_k - mu)^2 / m, in squared percent (Uniformity 1)
    angle            between a and the all-ones vector 1, in degrees (Uniformity 2):
                     arccos(sum_k a_k / (sqrt(m) ||a||))
    kl               KL(p || uniform) = sum_k p_k log(m p_k) in nats, p_k = a_k / sum_j a_j
    entropy          -sum_k p_k log p_k = log m - kl, in nats (Uniformity 3)
    jain             (sum_k a_k)^2 / (m sum_k a_k^2) = cos(angle)^2, from 1 / m to 1 (even)
    gini             sum_j sum_k |a_j - a_k| / (2 m^2 mu), from 0 (even) to 1 - 1 / m
    worst, best      min_k a_k and max_k a_k

    `fairness_of_losses` puts losses in the place of a_k; worst and worst10 are then the largest.

    >>> fairness([60, 80])._fields[:4]
    ('average', 'average_clients', 'worst10', 'best10')
    """

    average: float
    average_clients: float
    worst10: float
    best10: float
    variance: float
    angle: float
    kl: float
    entropy: float
    jain: float
    gini: float
    worst: float
    best: float


class Interval(NamedTuple):
    """A mean over seeds and where the true mean lies.

    mean = sum_i x_i / n, deviation = sqrt(sum_i (x_i - mean)^2 / (n - 1)), count = n, and
    low, high = mean -+ t deviation / sqrt(n) with t Student's quantile for n - 1 degrees of
    freedom.

    >>> Interval(mean=80.0, low=79.0, high=81.0, deviation=0.8, count=5).mean
    80.0
    """

    mean: float
    low: float
    high: float
    deviation: float
    # A NamedTuple field hides the method tuple.count, which no one calls on an interval.
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]


def fairness(
    accuracy: ArrayLike, size: ArrayLike | None = None, client: Iterable[object] | None = None
) -> Fairness:
    """Measure how evenly accuracies, one per client and in percent, are spread (see `Fairness`).

    `size` is each client's number of data points, equal when left out, and matters to `average`
    alone. `client` names the clients in messages; without it they are numbered from 0. A NaN
    accuracy makes every metric NaN and warns. Accuracies that are all 0 count as perfectly even.

    >>> found = fairness([60, 80, 100], size=[10, 10, 20])
    >>> found.average, found.average_clients, found.worst10, found.best
    (85.0, 80.0, 60.0, 100.0)
    >>> round(found.variance, 1), round(found.angle, 2), round(found.kl, 4)
    (266.7, 11.54, 0.0211)
    """
    values = _one_dimensional(accuracy, "accuracy", "client")
    names = _names(client, values)
    outside = (values < -_PERCENT_SLACK) | (values > 100 + _PERCENT_SLACK)
    _refuse(outside, values, names, "accuracy", "give percent from 0 to 100")
    _warn_of_nan(values, names, "accuracy")
    return _measure(np.clip(values, 0, 100), _sizes(size, names))


def fairness_of_losses(
    loss: ArrayLike, size: ArrayLike | None = None, client: Iterable[object] | None = None
) -> Fairness:
    """Measure how evenly losses, one per client, are spread: `fairness` for regression.

    Losses are finite, zero or more, in any unit. The largest loss is the worst: worst = max_k F_k,
    and worst10 is the mean over the max(1, floor(m / 10)) clients with the largest losses.

    >>> found = fairness_of_losses([0.5, 1.5, 4.0])
    >>> found.average, found.worst, found.worst10, found.best
    (2.0, 4.0, 4.0, 0.5)
    """
    values = _one_dimensional(loss, "loss", "client")
    names = _names(client, values)
    outside = (values < 0) | np.isinf(values)
    _refuse(outside, values, names, "loss", "give finite losses, zero or more (NaN if diverged)")
    _warn_of_nan(values, names, "loss")
    rising = _measure(values, _sizes(size, names))
    return rising._replace(
        worst10=rising.best10, best10=rising.worst10, worst=rising.best, best=rising.worst
    )


def interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Student's t interval of the mean of `values`, one per seed (see `Interval`).

    One value has a mean and no interval: low, high and deviation are NaN. A value that is NaN or
    infinite is a run that failed, and makes the mean NaN too: it is never dropped.

    >>> found = interval([79.0, 80.0, 81.0])
    >>> found.mean, found.deviation, found.count
    (80.0, 1.0, 3)
    >>> round(found.low, 3), round(found.high, 3)
    (77.516, 82.484)
    """
    if not 0 < confidence < 1:
        raise ValueError(
            f"confidence is {confidence}: give a probability between 0 and 1, such as 0.95."
        )
    ordered = np.sort(_one_dimensional(values, "values", "seed"))
    count = ordered.size
    if not np.isfinite(ordered).all():
        return Interval(math.nan, math.nan, math.nan, math.nan, count)
    mean = _mean(ordered)
    deviation = _sample_deviation(ordered, mean)
    half = _t_quantile(confidence, count - 1) * deviation / math.sqrt(count)
    return Interval(mean, mean - half, mean + half, deviation, count)


def paired_interval(a: ArrayLike, b: ArrayLike, confidence: float = 0.95) -> Interval:
    """Student's t interval of the mean of a_i - b_i, where run i of both had the same seed.

    Sharing seeds takes the luck of the split out of the comparison, so it is tighter than the
    intervals of a and b side by side.

    >>> found = paired_interval([71.0, 82.0, 93.0], [70.0, 80.0, 90.0])
    >>> found.mean, round(found.low, 3), round(found.high, 3)
    (2.0, -0.484, 4.484)
    """
    first = _one_dimensional(a, "a", "seed")
    second = _one_dimensional(b, "b", "seed")
    if first.size != second.size:
        raise ValueError(
            f"a has {first.size} values but b has {second.size}: "
            "give both methods' values for the same seeds, in the same order."
        )
    with np.errstate(invalid="ignore"):
        return interval(first - second, confidence)


def _one_dimensional(given: ArrayLike, what: str, each: str) -> Values:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{what} is not a list of numbers ({error}): give one number per {each}."
        ) from error
    if values.ndim != 1:
        raise ValueError(f"{what} has shape {values.shape}: give one number per {each}, in a list.")
    if values.size == 0:
        raise ValueError(f"{what} is empty: give the number of at least one {each}.")
    return values


def _names(client: Iterable[object] | None, values: PerClient) -> list[str]:
    names = [str(name) for name in (range(values.size) if client is None else client)]
    if len(names) != values.size:
        raise ValueError(
            f"client has {len(names)} names for {values.size} clients: give one name per client."
        )
    return names


def _sizes(size: ArrayLike | None, names: list[str]) -> PerClient:
    if size is None:
        return np.ones(len(names))
    sizes = _one_dimensional(size, "size", "client")
    if sizes.size != len(names):
        raise ValueError(
            f"size has {sizes.size} entries for {len(names)} clients: give one size per client."
        )
    wrong = ~np.isfinite(sizes) | (sizes < 0)
    _refuse(wrong, sizes, names, "size", "give its number of data points, zero or more")
    if not sizes.any():
        raise ValueError(
            f"size is 0 for all {sizes.size} clients: give at least one client data points, "
            "or leave size out to weigh clients equally."
        )
    return sizes


def _refuse(wrong: np.ndarray, values: PerClient, names: list[str], what: str, remedy: str) -> None:
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ValueError(f"{what} of client {names[first]} is {values[first]}: {remedy}.")


def _warn_of_nan(values: PerClient, names: list[str], what: str) -> None:
    missing = [name for name, value in zip(names, values, strict=True) if math.isnan(value)]
    if not missing:
        return
    more = len(missing) - _NAMES_SHOWN
    shown = ", ".join(missing[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
    warnings.warn(
        f"{what} is NaN for client {shown}, so every fairness metric is NaN: "
        "leave these clients out yourself if they should not count.",
        FairnessWarning,
        stacklevel=3,
    )


def _measure(values: PerClient, size: PerClient) -> Fairness:
    """Every metric, with the lowest value called the worst."""
    if np.isnan(values).any():
        return Fairness._make([math.nan] * len(Fairness._fields))
    # Sorted first, so that the order of clients does not change even the last bit.
    order = np.lexsort((size, values))
    scaled, exponent = _scale(values[order])
    weight, _ = _scale(size[order])
    mean = _mean(scaled)
    tenth = max(1, scaled.size // 10)
    levels = (_mean(scaled, weight), mean, _mean(scaled[:tenth]), _mean(scaled[-tenth:]))
    # Losses beyond 1e154 have a variance beyond the largest float: infinity says so.
    with np.errstate(over="ignore"):
        variance = np.ldexp(np.mean((scaled - mean) ** 2), 2 * exponent)
    uniformity = _uniformity(scaled / mean if mean > 0 else np.ones_like(scaled))
    ends = values[order[0]], values[order[-1]]
    # Clipped, because beside a loss of 1e308 a scaled loss of 1e-300 is 0, and 0 is below the best.
    means = np.clip(np.ldexp(levels, exponent), *ends)
    return Fairness._make(map(float, (*means, variance, *uniformity, *ends)))


def _uniformity(ratio: PerClient) -> tuple[float, float, float, float, float]:
    """Angle, kl, entropy, jain and gini of ascending r_k = a_k / mu, whose mean is 1.

    tan(angle)^2 = sum_k (r_k - 1)^2 / m, and kl = sum_k (r_k log r_k - (r_k - 1)) / m, whose terms
    are each zero or more: neither loses its digits when the clients are nearly equal.
    """
    count = ratio.size
    excess = ratio - 1
    tangent = math.sqrt(np.mean(excess**2))
    logarithm = np.log(ratio, out=np.zeros_like(ratio), where=ratio > 0)
    kl = max(0.0, float(np.mean(ratio * logarithm - excess)))
    entropy = max(0.0, math.log(count) - kl)
    # sum_j sum_k |r_j - r_k| = 2 sum_i (2 i - m - 1) r_(i), where r_(1) <= ... <= r_(m).
    gini = float(np.mean(np.arange(1 - count, count, 2) * excess)) / count
    return math.degrees(math.atan(tangent)), kl, entropy, 1 / (1 + tangent**2), gini


def _scale(values: PerClient) -> tuple[PerClient, int]:
    """Bring the largest value into [1/2, 1) by a power of two, so that no square underflows.

    A power of two, because dividing by it rounds nothing: 80 percent stays 80 percent.
    """
    exponent = int(np.frexp(values.max())[1])
    return np.ldexp(values, -exponent), exponent


def _mean(ascending: Values, weight: Values | None = None) -> float:
    mean = np.average(ascending, weights=weight)
    # Rounding can carry a mean past all its values: (.1 + .1 + .1) / 3 > .1.
    return float(np.clip(mean, ascending[0], ascending[-1]))


def _sample_deviation(values: Values, mean: float) -> float:
    if values.size == 1:
        return math.nan
    return math.sqrt(np.sum((values - mean) ** 2) / (values.size - 1))


def _t_quantile(confidence: float, freedom: int) -> float:
    """The t with P(|T| <= t) = confidence, by bisection until no float lies between."""
    if freedom == 0:
        return math.nan
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        if _t_probability(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(middle)


def _t_probability(theta: float, freedom: int) -> float:
    """P(|T| <= sqrt(freedom) tan theta), a finite sum (Abramowitz and Stegun 26.7.3, 26.7.4).

    even: sin (1 + 1/2 cos^2 + (1 3)/(2 4) cos^4 + ... up to cos^(freedom - 2))
    odd:  2/pi (theta + sin cos (1 + 2/3 cos^2 + (2 4)/(3 5) cos^4 + ... up to cos^(freedom - 3)))
    """
    if freedom == 1:
        return 2 * theta / math.pi
    sine, cosine = math.sin(theta), math.cos(theta)
    odd = freedom % 2
    numerator = np.arange(1 + odd, freedom - 2, 2)
    series = 1 + float(np.sum(np.cumprod(numerator / (numerator + 1) * cosine**2)))
    return 2 / math.pi * (theta + sine * cosine * series) if odd else sine * series
