"""Work: what a client computes from w, as a fold over its mini-batches.

start(w, v) -> local, then local = step(w, local, batch) for every batch, then
finish(w, local) -> D_k, v_k'. All model copies of a sweep are folded at once with their axis last,
so a numeric hyper-parameter [E] multiplies a leaf [..., E] as the formula reads.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from fairfl.models.model import (
    Model,
    Params,
    penalties,
    penalty_gradient,
    stack,
    width,
)

Hyper = Mapping[str, Float[Array, " models"]]
Local = Any
Personal = Any


class Batch(NamedTuple):
    """A mini-batch: the first `filled` rows are real, the rest is padding with live = 0."""

    x: Shaped[Array, "rows ..."]
    y: Shaped[Array, " rows"]
    live: Float[Array, " rows"]
    filled: Float[Array, ""]
    key: Any


class Adaptation(NamedTuple):
    """How a client makes w its own on its support rows, before its other rows are read.

    w_k = adapt(hyper, model, w, support) takes mini-batches of batch_size rows, on an axis in
    front: `steps` of them when it trains, `evaluated` when it is evaluated. A batch in which
    nothing is live, of a client without support rows, must leave w as it is. F_k is then measured
    at w_k, and the work gets w_k for w; `exact` pulls D_k back through adapt, from w_k to w.
    """

    steps: int
    evaluated: int
    batch_size: int
    adapt: Callable[[Hyper, Model, Params, Batch], Params]
    exact: bool = False


class Work(NamedTuple):
    """What a client does with the model it receives.

    batch_size None means one pass over all rows in their own order (no shuffle, any tile size).
    batches caps the mini-batches of an epoch; F_k is then measured on the rows that are read.
    adaptation is what happens on support rows first, and where F_k is measured; None is at w.
    personal(w) makes the v_k that a client keeps between rounds; None when it keeps nothing.
    serves says that v_k is a model, and the one that serves the client: it is evaluated as well.
    """

    name: str
    start: Callable[[Hyper, Model, Params, Personal], Local]
    step: Callable[[Hyper, Model, Params, Local, Batch], Local]
    finish: Callable[[Hyper, Model, Params, Local, Float[Array, ""]], tuple[Params, Personal]]
    epochs: int = 1
    batch_size: int | None = None
    personal: Callable[[Params], Personal] | None = None
    batches: int | None = None
    adaptation: Adaptation | None = None
    serves: bool = False


def batch_gradient(model: Model, params: Params, batch: Batch) -> Params:
    """The gradient of a batch's objective: its mean or sum, plus the penalty once."""
    weight = batch.live / batch.filled if model.reduction == "mean" else batch.live
    return _plus_penalty(model, params, row_gradients(model, params, batch, weight))


def row_gradients(
    model: Model, params: Params, batch: Batch, weight: Float[Array, " rows"]
) -> Params:
    """sum over rows of weight * grad loss, for every stacked parameter set."""
    models = width(params)
    weights = jnp.broadcast_to(weight[:, None], (weight.shape[0], models))
    return stack(model, models).gradient(params, batch.x, batch.y, weights, batch.key)


def _plus_penalty(model: Model, params: Params, gradient: Params) -> Params:
    if model.penalty is None:
        return gradient
    return jax.tree.map(jnp.add, gradient, penalty_gradient(model, params))


def difference(w: Params, w_k: Params) -> Params:
    """D_k = w - w_k."""
    return jax.tree.map(jnp.subtract, w, w_k)


# Local SGD: E epochs from w with the learning rate eta (Algorithm 2, line 5). ---------------------


def local_sgd(epochs: int, batch_size: int) -> Work:
    """w_k <- w_k - eta grad F_batch(w_k) for E epochs; D_k = w - w_k."""
    return Work("local SGD", _start_at_w, _sgd_step, _travelled, epochs, batch_size)


def _start_at_w(hyper: Hyper, model: Model, w: Params, v: Personal) -> Params:
    del hyper, model, v
    return w


def _sgd_step(hyper: Hyper, model: Model, w: Params, w_k: Params, batch: Batch) -> Params:
    del w
    rate = hyper["learning_rate"]
    return jax.tree.map(lambda p, g: p - rate * g, w_k, batch_gradient(model, w_k, batch))


def _travelled(
    hyper: Hyper, model: Model, w: Params, w_k: Params, rows: Float[Array, ""]
) -> tuple[Params, Personal]:
    del hyper, model, rows
    return difference(w, w_k), None


# Proximal SGD: local SGD that is held near w (FedProx; Li et al., 2020, Algorithm 2). ------------


def proximal_sgd(epochs: int, batch_size: int) -> Work:
    """w_k <- w_k - eta (grad F_batch(w_k) + mu (w_k - w)); mu = 0 is local SGD bit for bit."""
    return Work("proximal SGD", _start_at_w, _proximal_step, _travelled, epochs, batch_size)


def _proximal_step(hyper: Hyper, model: Model, w: Params, w_k: Params, batch: Batch) -> Params:
    rate, mu = hyper["learning_rate"], hyper["mu"]
    gradient = batch_gradient(model, w_k, batch)
    return jax.tree.map(lambda p, g, start: p - rate * (g + mu * (p - start)), w_k, gradient, w)


# Proportional SGD: local SGD on a loss that grows steeper towards M (PropFair, 2023). -------------


def proportional_sgd(epochs: int, batch_size: int) -> Work:
    """w_k <- w_k - eta phi'(l) grad l, where l = F_batch(w_k), measured without dropout:

    phi(l) = -log(1 - l / M) where M - l >= eps, else l / M.
    """
    return Work("proportional SGD", _start_at_w, _proportional_step, _travelled, epochs, batch_size)


def _proportional_step(hyper: Hyper, model: Model, w: Params, w_k: Params, batch: Batch) -> Params:
    del w
    M = hyper["M"]
    room = M - batch_loss(model, w_k, batch)
    rate = hyper["learning_rate"] / jnp.where(room >= hyper["eps"], room, M)
    return jax.tree.map(lambda p, g: p - rate * g, w_k, batch_gradient(model, w_k, batch))


def batch_loss(model: Model, params: Params, batch: Batch) -> Float[Array, " models"]:
    """A batch's objective for every stacked parameter set: its mean or sum, plus the penalty."""
    weight = batch.live / batch.filled if model.reduction == "mean" else batch.live
    rows = stack(model, width(params)).losses(params, batch.x, batch.y)
    # An absent row weighs nothing even where its loss is infinite: never 0 * inf.
    total = jnp.sum(jnp.where(weight[:, None] == 0, 0, weight[:, None] * rows), axis=0)
    return total + penalties(model, params)


# Full gradient: one pass at w (Algorithm 1, line 5). ---------------------------------------------


def full_gradient() -> Work:
    """D_k = grad F_k(w) / L, so that gradient work speaks the currency of local work."""
    return Work("full gradient", _no_gradient_yet, _add_rows, _over_lipschitz)


def _no_gradient_yet(hyper: Hyper, model: Model, w: Params, v: Personal) -> Params:
    del hyper, model, v
    return jax.tree.map(jnp.zeros_like, w)


def _add_rows(hyper: Hyper, model: Model, w: Params, total: Params, batch: Batch) -> Params:
    del hyper
    return jax.tree.map(jnp.add, total, row_gradients(model, w, batch, batch.live))


def _over_lipschitz(
    hyper: Hyper, model: Model, w: Params, total: Params, rows: Float[Array, ""]
) -> tuple[Params, Personal]:
    if model.reduction == "mean":
        total = jax.tree.map(lambda g: g / rows, total)
    gradient = _plus_penalty(model, w, total)
    return jax.tree.map(lambda g: g / hyper["L"], gradient), None
