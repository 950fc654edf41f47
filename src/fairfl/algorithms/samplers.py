"""Samplers: who takes part in a round, and the weight u_k that makes the objective p_k = n_k / n.

| sampler                       | weights="size" | weights="equal" |
|-------------------------------|----------------|-----------------|
| by-size-with-replacement      | 1              | 1 / p_k         |
| by-size (without replacement) | 1              | 1 / p_k         |
| uniform                       | p_k            | 1               |
| everyone                      | p_k            | 1               |

A client drawn in proportion to its size already counts n_k / n on average; a uniform draw or a full
cohort leaves that to the weight. By size without replacement (the reference's draw) is close to its
column only while the cohort is small against the population; a cohort of everyone is `everyone`.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float, Int

SamplerName = Literal["by-size", "by-size-with-replacement", "uniform", "everyone"]
Weights = Literal["size", "equal"]
Ids = Int[np.ndarray, " cohort"]


class Population(NamedTuple):
    """The training rows of every client; clients without any are never drawn."""

    sizes: Int[np.ndarray, " clients"]
    cumulative: Int[np.ndarray, " clients"]
    trainable: Int[np.ndarray, " trainable"]


class Sampler(NamedTuple):
    """A draw of client ids, and whether the draw itself favours large clients."""

    name: SamplerName
    draw: Callable[[np.random.Generator, Population, int], Ids]
    by_size: bool


def population(sizes: Int[np.ndarray, " clients"]) -> Population:
    return Population(sizes, np.cumsum(sizes), np.flatnonzero(sizes))


def sampler(name: str) -> Sampler:
    """The sampler of a name, or a sentence that lists the names.

    >>> from fairfl.algorithms.samplers import sampler
    >>> sampler("uniform").by_size
    False
    """
    if name not in SAMPLERS:
        raise ValueError(f"there is no sampler {name!r}; choose one of {', '.join(SAMPLERS)}")
    return SAMPLERS[name]


def weights(kind: Weights, by_size: bool, people: Population, ids: Ids) -> Float[np.ndarray, " k"]:
    """The cohort's u_k, from the table above."""
    if by_size == (kind == "size"):
        return np.ones(len(ids))
    share = people.sizes[ids] / people.cumulative[-1]
    return 1 / share if by_size else share


def effective(chosen: Sampler, people: Population, cohort: int) -> Sampler:
    """A draw without replacement of as many clients as there are is everyone."""
    full = cohort >= len(people.trainable) and chosen.name != "by-size-with-replacement"
    return SAMPLERS["everyone"] if full else chosen


def _everyone(draw: np.random.Generator, people: Population, cohort: int) -> Ids:
    del draw, cohort
    return people.trainable


def _uniform(draw: np.random.Generator, people: Population, cohort: int) -> Ids:
    return people.trainable[draw.choice(len(people.trainable), cohort, replace=False)]


def _with_replacement(draw: np.random.Generator, people: Population, cohort: int) -> Ids:
    rows = draw.integers(people.cumulative[-1], size=cohort)
    return np.searchsorted(people.cumulative, rows, side="right")


def _by_size(draw: np.random.Generator, people: Population, cohort: int) -> Ids:
    """Successive sampling: the first occurrences of independent draws, flat in the population.

    When 20 cohorts of draws have not found enough clients (a few own nearly all rows), an
    exponential race over the rest finishes with the same distribution.
    """
    chosen = np.empty(0, np.int64)
    for _ in range(5):
        chosen = _first_occurrences(
            np.concatenate([chosen, _with_replacement(draw, people, 4 * cohort)])
        )
        if len(chosen) >= cohort:
            return chosen[:cohort]
    rest = np.setdiff1d(people.trainable, chosen)
    arrival = draw.exponential(size=len(rest)) / people.sizes[rest]
    return np.concatenate([chosen, rest[np.argsort(arrival)]])[:cohort]


def _first_occurrences(values: np.ndarray) -> np.ndarray:
    _, first = np.unique(values, return_index=True)
    return values[np.sort(first)]


SAMPLERS: dict[str, Sampler] = {
    "by-size": Sampler("by-size", _by_size, by_size=True),
    "by-size-with-replacement": Sampler("by-size-with-replacement", _with_replacement, True),
    "uniform": Sampler("uniform", _uniform, by_size=False),
    "everyone": Sampler("everyone", _everyone, by_size=False),
}
assert tuple(SAMPLERS) == get_args(SamplerName)
