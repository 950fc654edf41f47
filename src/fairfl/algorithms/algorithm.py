"""Algorithm: a sampler, a work, a rule and a server, with their numeric hyper-parameters."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
import optax

from fairfl.algorithms.rules import Rule
from fairfl.algorithms.samplers import Sampler, Weights, sampler
from fairfl.algorithms.server import LAST, PLAIN, Answer, Server, optimiser
from fairfl.algorithms.work import Work

Numbers = float | int | Sequence[float | int] | np.ndarray


@dataclass(frozen=True)
class Algorithm:
    """The four parts of one loop; every entry of `hyper` lists the values of a sweep.

    w' = server(w, sum_k a_k D_k) with a = rule(F, n, u, <D, D>), D = work(w, data), u = sampler.
    """

    name: str
    sampler: Sampler
    work: Work
    rule: Rule
    hyper: Mapping[str, tuple[float, ...]] = field(hash=False)
    server: Server = PLAIN
    answer: Answer = LAST
    weights: Weights = "size"

    @property
    def experiments(self) -> list[dict[str, float]]:
        """The product of all hyper-parameter lists, the first one outermost."""
        return [
            dict(zip(self.hyper, values, strict=True))
            for values in itertools.product(*self.hyper.values())
        ]


def assemble(
    name: str,
    work: Work,
    rule: Rule,
    hyper: Mapping[str, Numbers | None],
    sampler_name: str,
    weights: str,
    server: Server | optax.GradientTransformation | None,
) -> Algorithm:
    """An Algorithm from what a user typed, or a sentence about what cannot be."""
    if weights not in get_args(Weights):
        raise ValueError(f"weights={weights!r} is neither 'size' nor 'equal'; choose one")
    return Algorithm(
        name=name,
        sampler=sampler(sampler_name),
        work=work,
        rule=rule,
        hyper={
            name: numbers(name, value)
            for name, value in hyper.items()
            if value is not None or name not in OPTIONAL
        },
        server=_server(server),
        weights=weights,  # type: ignore[arg-type]
    )


def _server(server: object) -> Server:
    if server is None:
        return PLAIN
    if isinstance(server, Server):
        return server
    if not isinstance(server, optax.GradientTransformation):
        raise ValueError(
            f"server={server!r} is no optax transformation; call one, for example optax.adam(0.01)"
        )
    return optimiser(server)


POSITIVE = frozenset({"learning_rate", "L"})
OPTIONAL = frozenset({"L"})


def listed(value: Any) -> list[Any]:
    """A list as it is, one value as a list of one; text and scalar arrays are one value."""
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return list(value) if several and getattr(value, "ndim", 1) else [value]


def numbers(name: str, value: Numbers | None) -> tuple[float, ...]:
    """One value or a list of them, as floats in the range that the name allows."""
    values = tuple(map(_number(name), listed(value)))
    if not values:
        raise ValueError(f"{name} is an empty list; give at least one value")
    if len(set(values)) < len(values):
        raise ValueError(f"{name}={list(values)} names a value twice; list each value once")
    return values


def _number(name: str):
    def check(value: object) -> float:
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(f"{name}={value!r} is not a number") from None
        if not np.isfinite(number) or number < 0 or (number == 0 and name in POSITIVE):
            least = "greater than 0" if name in POSITIVE else "0 or greater"
            raise ValueError(f"{name}={value} must be a finite number {least}")
        return number

    return check


LARGEST_SEED = 2**64 - 1
"""What a Philox key holds."""


def structural(name: str, value: object) -> int:
    """A structural hyper-parameter: it shapes the program, so it takes no list."""
    try:
        return whole(name, value)
    except ValueError as error:
        lists = "only numeric hyper-parameters such as q or learning_rate take lists"
        raise ValueError(f"{error}; {lists}") from None


def whole(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """One whole number, never a list: a count or a seed."""
    fits = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not fits or value < least or (most is not None and value > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name}={value!r} must be one whole number {bounds}")
    return int(value)


def with_lipschitz(hyper: Mapping[str, float]) -> dict[str, float]:
    """L defaults to 1 / learning rate: one estimate at q = 0, reused for every q."""
    return {"L": 1 / hyper["learning_rate"], **hyper} if "learning_rate" in hyper else {**hyper}


def with_hyper(algorithm: Algorithm, **values: Numbers) -> Algorithm:
    """The same algorithm with other numeric hyper-parameters."""
    changed = {name: numbers(name, value) for name, value in values.items()}
    return replace(algorithm, hyper={**algorithm.hyper, **changed})
