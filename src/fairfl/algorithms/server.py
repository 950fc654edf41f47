"""Server: what becomes of w and sum_k a_k D_k, and which iterate is the answer."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int

from fairfl.models.model import Params

State = Any


class Server(NamedTuple):
    """init(w) -> state; apply(state, w, direction) -> w', state'. The axis of models is last."""

    name: str
    init: Callable[[Params], State]
    apply: Callable[[State, Params, Params], tuple[Params, State]]


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

    def apply(state: State, w: Params, direction: Params) -> tuple[Params, State]:
        update = jax.vmap(transformation.update, in_axes=-1, out_axes=-1)
        change, state = update(direction, state, w)
        return optax.apply_updates(w, change), state  # type: ignore[return-value]

    return Server("optax", jax.vmap(transformation.init, in_axes=-1, out_axes=-1), apply)


def last_iterate() -> Answer:
    return LAST


def mean_iterate() -> Answer:
    """The mean of w^1 ... w^T, the initial model left out."""
    return MEAN


def _no_state(w: Params) -> State:
    del w
    return ()


def _descend(state: State, w: Params, direction: Params) -> tuple[Params, State]:
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
