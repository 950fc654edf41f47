"""Model: what a client evaluates and differentiates, as a handful of pure functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree, Shaped

Params = PyTree[Array | np.ndarray]
Reduction = Literal["mean", "sum"]
Task = Literal["binary", "multiclass", "regression"]
Batch = Shaped[Array, "rows ..."]
Labels = Shaped[Array, " rows"]


def _as_it_is(params: Params) -> Params:
    return params


class Stacked(NamedTuple):
    """The same model for E parameter sets at once, their axis last on every leaf.

    With the experiments last, the models of a sweep sit next to the classes inside one matrix
    product and every element-wise operation runs along them.

    losses(params, x, y) -> [rows, E]
    correct(params, x, y) -> [rows, E]
    gradient(params, x, y, weight[rows, E], key) -> gradient of sum_rows weight * loss, like params

    `pack` puts the other axes of stacked parameters where these functions want them, `unpack` back.
    """

    losses: Callable[[Params, Batch, Labels], Float[Array, "rows models"]]
    correct: Callable[[Params, Batch, Labels], Bool[Array, "rows models"]]
    gradient: Callable[[Params, Batch, Labels, Float[Array, "rows models"], Any], Params]
    pack: Callable[[Params], Params] = _as_it_is
    unpack: Callable[[Params], Params] = _as_it_is


@dataclass(frozen=True)
class Model:
    """A model as pure functions of its parameters.

    F_k(w) = mean or sum over the client's rows of loss(w, x, y) + penalty(w), by `reduction`.

    init(key)              the first parameters
    loss(params, x, y, key)  one loss per row of the batch; key is None when it is evaluated
    predict(params, x)     a class number, or a value for regression, per row
    penalty(params)        added once to F_k and once to every batch; None for no penalty
    outputs(params, x)     the scores behind a prediction, one per class, where the model has them
    stochastic             whether the loss uses its key: dropout and the like
    stacked(models)        optional fast path for that many parameter sets; None derives it by vmap
    alone                  whether it trains fastest alone: one experiment to a program, one lane
    built_in               by which name `models.built_in` makes it again; None for one of yours
    """

    init: Callable[[PRNGKeyArray], Params]
    loss: Callable[[Params, Batch, Labels, PRNGKeyArray | None], Float[Array, " rows"]]
    predict: Callable[[Params, Batch], Shaped[Array, " rows"]]
    penalty: Callable[[Params], Float[Array, ""]] | None = None
    reduction: Reduction = "mean"
    task: Task = "multiclass"
    outputs: Callable[[Params, Batch], Float[Array, "rows outputs"]] | None = None
    stochastic: bool = False
    stacked: Callable[[int], Stacked] | None = None
    alone: bool = False
    name: str = "model"
    built_in: str | None = None


def stack(model: Model, models: int) -> Stacked:
    """The model's own fast path, or the one that vmap derives from its loss."""
    if model.stacked is not None:
        return model.stacked(models)
    return Stacked(
        losses=lambda params, x, y: _over_models(lambda p: model.loss(p, x, y, None), params),
        correct=lambda params, x, y: _over_models(lambda p: model.predict(p, x) == y, params),
        gradient=lambda params, x, y, weight, key: jax.vmap(
            lambda p, u: jax.grad(lambda p: weighted(u, model.loss(p, x, y, key)))(p),
            in_axes=-1,
            out_axes=-1,
        )(params, weight),
    )


def as_trained(params: Params) -> Params:
    """Parameters as wide as floats are now: 32 bits, or 64 within `jax.enable_x64`."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(float)), params)


def width(params: Params) -> int:
    """How many parameter sets are stacked."""
    return jax.tree.leaves(params)[0].shape[-1]


def penalties(model: Model, params: Params) -> Float[Array, " models"]:
    """The penalty of every stacked parameter set, 0 without one."""
    if model.penalty is None:
        return jnp.zeros(width(params))
    return _over_models(model.penalty, stack(model, width(params)).unpack(params))


def penalty_gradient(model: Model, params: Params) -> Params:
    """The gradient of the penalty of every stacked parameter set."""
    if model.penalty is None:
        return jax.tree.map(jnp.zeros_like, params)
    stacked = stack(model, width(params))
    gradient = jax.vmap(jax.grad(model.penalty), in_axes=-1, out_axes=-1)
    return stacked.pack(gradient(stacked.unpack(params)))


def _over_models(function: Callable[[Params], Array], params: Params) -> Array:
    return jax.vmap(function, in_axes=-1, out_axes=-1)(params)


def weighted(weight: Float[Array, " rows"], loss: Float[Array, " rows"]) -> Float[Array, ""]:
    """sum_rows weight * loss."""
    # An absent row weighs nothing even where its loss is infinite: never 0 * inf.
    return jnp.sum(jnp.where(weight == 0, 0, weight * loss))
