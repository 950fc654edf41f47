"""Ditto's work: local SGD for the global model, and beside it a model that the client keeps."""

from typing import NamedTuple

import jax
from jax.lax import optimization_barrier as materialise
from jaxtyping import Array, Float

from fairfl.algorithms.work import Batch, Hyper, Personal, Work, batch_gradient, local_sgd
from fairfl.models.model import Model, Params


class Pair(NamedTuple):
    """The local model w_k, which the server gets, and the client's own v_k."""

    local: Params
    own: Params


def local_and_personal_sgd(epochs: int, batch_size: int) -> Work:
    """w_k by local SGD, and v_k <- v_k - eta (grad F_batch(v_k) + lam (v_k - w)) on its batches.

    v_k begins at the first model of the run and goes on whenever the client takes part.
    """
    plain = local_sgd(epochs, batch_size)

    def start(hyper: Hyper, model: Model, w: Params, v: Personal) -> Pair:
        return Pair(plain.start(hyper, model, w, v), v)

    def step(hyper: Hyper, model: Model, w: Params, pair: Pair, batch: Batch) -> Pair:
        # One after the other: merged products would round w_k otherwise than FedAvg does.
        local, batch = materialise((plain.step(hyper, model, w, pair.local, batch), batch))
        return Pair(local, _towards(hyper, model, w, pair.own, batch))

    def finish(
        hyper: Hyper, model: Model, w: Params, pair: Pair, rows: Float[Array, ""]
    ) -> tuple[Params, Personal]:
        return plain.finish(hyper, model, w, pair.local, rows)[0], pair.own

    return plain._replace(
        name="local and personal SGD",
        start=start,
        step=step,
        finish=finish,
        personal=lambda w: w,
        serves=True,
    )


def _towards(hyper: Hyper, model: Model, w: Params, v: Params, batch: Batch) -> Params:
    """A step on F_batch(v) + lam / 2 |v - w|^2."""
    rate, pull = hyper["learning_rate"], hyper["lam"]
    gradient = batch_gradient(model, v, batch)
    return jax.tree.map(lambda p, g, at: p - rate * (g + pull * (p - at)), v, gradient, w)
