"""Server: what becomes of w and sum_k a_k D_k, and which iterate is the answer."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from fairfl.models.model import Params

State = Any
Hyper = Mapping[str, Float[Array, " models"]]


class Server(NamedTuple):
    """init(w) -> state; apply(hyper, state, w, direction) -> w', state'.

    The axis of models is last. `rate` is the usual server_learning_rate of a server that has one.
    """

    name: str
    init: Callable[[Params], State]
    apply: Callable[[Hyper, State, Params, Params], tuple[Params, State]]
    rate: float | None = None


class Answer(NamedTuple):
    """Which iterate the run returns: init(w), update(state, w', t), read(state, w)."""

    name: str
    init: Callable[[Params], State]
    update: Callable[[State, Params, Int[Array, " models"]], State]
    read: Callable[[State, Params], Params]


def plain() -> Server:
    """w' = w - sum_k a_k D_k."""
    return PLAIN


def optimiser(transformation: optax.GradientTransformation) -> Server:
    """Any optax transformation, with sum_k a_k D_k as its gradient (Reddi et al., 2021).

    Every model of a sweep has a state of its own, so that clipping or adapting by a norm never
    mixes experiments.
    """

    def apply(hyper: Hyper, state: State, w: Params, direction: Params) -> tuple[Params, State]:
        del hyper
        change, state = _per_model(transformation.update)(direction, state, w)
        return optax.apply_updates(w, change), state  # type: ignore[return-value]

    return Server("optax", _per_model(transformation.init), apply)


def _scaled(name: str, direction: optax.GradientTransformation, rate: float) -> Server:
    """w' = w - server_learning_rate * direction(sum_k a_k D_k), the rate being one of a sweep."""

    def apply(hyper: Hyper, state: State, w: Params, total: Params) -> tuple[Params, State]:
        change, state = _per_model(direction.update)(total, state, w)
        step = hyper["server_learning_rate"]
        return jax.tree.map(lambda p, c: p - step * c, w, change), state

    return Server(name, _per_model(direction.init), apply, rate)


def _per_model(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.vmap(function, in_axes=-1, out_axes=-1)


def last_iterate() -> Answer:
    return LAST


def mean_iterate() -> Answer:
    """The mean of w^1 ... w^T, the initial model left out."""
    return MEAN


def _no_state(w: Params) -> State:
    del w
    return ()


def _descend(hyper: Hyper, state: State, w: Params, direction: Params) -> tuple[Params, State]:
    del hyper
    return jax.tree.map(jnp.subtract, w, direction), state


def _keep(state: State, w: Params, t: Int[Array, " models"]) -> State:
    del w, t
    return state


def _read_last(state: State, w: Params) -> Params:
    del state
    return w


def _running_mean(state: State, w: Params, t: Int[Array, " models"]) -> State:
    # At t = 0 the mean is w^1 itself, whatever stood there: the initial model never counts.
    return jax.tree.map(
        lambda mean, new: jnp.where(t == 0, new, mean + (new - mean) / (t + 1)), state, w
    )


def _read_mean(state: State, w: Params) -> Params:
    del w
    return state


PLAIN = Server("plain", _no_state, _descend)
LAST = Answer("last iterate", _no_state, _keep, _read_last)
MEAN = Answer("mean iterate", lambda w: w, _running_mean, _read_mean)

ANSWERS = {"last": LAST, "mean": MEAN}

ADAPTIVITY = 1e-3
"""tau of Reddi et al. (2021), their best on most tasks."""

SERVERS = {
    "momentum": _scaled("momentum", optax.trace(decay=0.9), rate=1.0),
    "adam": _scaled("adam", optax.scale_by_adam(b1=0.9, b2=0.99, eps=ADAPTIVITY), rate=0.01),
    "yogi": _scaled(
        "yogi",
        optax.scale_by_yogi(
            b1=0.9, b2=0.99, eps=ADAPTIVITY, initial_accumulator_value=ADAPTIVITY**2
        ),
        rate=0.01,
    ),
}
"""FedAvgM (Hsu et al., 2019), FedAdam and FedYogi (Reddi et al., 2021, Algorithm 2).

Momentum and decay are theirs. optax corrects the bias of the first rounds, which Algorithm 2 does
not; it matters for about 1 / (1 - 0.9) rounds.
"""
