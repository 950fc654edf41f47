"""Algorithm: a sampler, a work, a rule and a server, with their numeric hyper-parameters."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
import optax

from fairfl.algorithms.rules import Parameter, Rule
from fairfl.algorithms.samplers import Sampler, Weights, sampler
from fairfl.algorithms.server import LAST, PLAIN, SERVERS, Answer, Server, optimiser
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
    answer: Answer = LAST,
) -> Algorithm:
    """An Algorithm from what a user typed, or a sentence about what cannot be."""
    known = {parameter.name: parameter for parameter in rule.parameters}
    if weights not in get_args(Weights):
        raise ValueError(f"weights={weights!r} is neither 'size' nor 'equal'; choose one")
    return Algorithm(
        name=name,
        sampler=sampler(sampler_name),
        work=work,
        rule=rule,
        hyper={
            name: numbers(name, value, known.get(name))
            for name, value in hyper.items()
            if value is not None or name not in OPTIONAL
        },
        server=_server(server),
        answer=answer,
        weights=weights,  # type: ignore[arg-type]
    )


def _server(server: object) -> Server:
    if server is None:
        return PLAIN
    if isinstance(server, Server):
        return server
    if not isinstance(server, optax.GradientTransformation):
        raise ValueError(
            f"server={server!r} is no optax transformation; call one, for example "
            "optax.adam(0.01), or use fairfl.with_server(algorithm, 'adam')"
        )
    return optimiser(server)


POSITIVE = frozenset({"learning_rate", "L", "server_learning_rate", "M", "eps"})
OPTIONAL = frozenset({"L"})


def listed(value: Any) -> list[Any]:
    """A list as it is, one value as a list of one; text and scalar arrays are one value."""
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return list(value) if several and getattr(value, "ndim", 1) else [value]


def numbers(name: str, value: Numbers | None, range: Parameter | None = None) -> tuple[float, ...]:
    """One value or a list of them, as floats in their range; 0 or greater if it is not given."""
    allowed = range or Parameter(name, above=name in POSITIVE)
    values = tuple(_number(name, one, allowed) for one in listed(value))
    if not values:
        raise ValueError(f"{name} is an empty list; give at least one value")
    if len(set(values)) < len(values):
        raise ValueError(f"{name}={list(values)} names a value twice; list each value once")
    return values


def _number(name: str, value: object, allowed: Parameter) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r} is not a number") from None
    low = number <= allowed.least if allowed.above else number < allowed.least
    if not math.isfinite(number) or low or number > allowed.most:
        raise ValueError(f"{name}={value} must be a finite number{_in_words(allowed)}")
    return number


def _in_words(allowed: Parameter) -> str:
    """The range as it ends a sentence."""
    least = most = ""
    if math.isfinite(allowed.least):
        least = (
            f" greater than {allowed.least:g}"
            if allowed.above
            else f" {allowed.least:g} or greater"
        )
    if math.isfinite(allowed.most):
        most = f"{' and' if least else ''} at most {allowed.most:g}"
    return least + most


LARGEST_SEED = 2**64 - 1
"""What a Philox key holds."""


def structural(name: str, value: object, least: int = 1) -> int:
    """A structural hyper-parameter: it shapes the program, so it takes no list."""
    try:
        return whole(name, value, least)
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
    known = {parameter.name: parameter for parameter in algorithm.rule.parameters}
    changed = {name: numbers(name, value, known.get(name)) for name, value in values.items()}
    return replace(algorithm, hyper={**algorithm.hyper, **changed})


def with_server(
    algorithm: Algorithm, server: str, server_learning_rate: Numbers | None = None
) -> Algorithm:
    """The same algorithm with another step on the server: "momentum", "adam" or "yogi".

    w' = w - server_learning_rate * step(sum_k a_k D_k); the rate takes a list. `server=` of an
    algorithm takes any optax transformation instead.

    >>> import fairfl
    >>> family = fairfl.with_server(fairfl.fedavg(), "adam", server_learning_rate=[0.01, 0.1])
    >>> family.experiments[1]
    {'learning_rate': 0.1, 'server_learning_rate': 0.1}
    """
    if server not in SERVERS:
        raise ValueError(
            f"there is no server {server!r}; choose one of {', '.join(SERVERS)}, or give the "
            "algorithm any optax transformation as server="
        )
    if algorithm.server is not PLAIN:
        raise ValueError(
            f"{algorithm.name} has the server {algorithm.server.name!r} already; leave one out"
        )
    rate = SERVERS[server].rate if server_learning_rate is None else server_learning_rate
    hyper = {**algorithm.hyper, "server_learning_rate": numbers("server_learning_rate", rate)}
    return replace(algorithm, server=SERVERS[server], hyper=hyper)
