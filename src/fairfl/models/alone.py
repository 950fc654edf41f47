"""Deep models on a CPU: one model at a time, in pieces that fit the cache.

Side by side in one program, deep models share nothing but the launch of a step, which costs them
nothing; their products only fall out of the cache. So the engine gives every experiment a program
of its own (`Model.alone`), and the axis of models, of length one, is dropped here: XLA would carry
it through every product.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
from jaxtyping import Array, PRNGKeyArray

from fairfl.models.model import Batch, Labels, Model, Params, Stacked, stack, weighted

PIECE = 128
"""Rows that are evaluated at a time: what a layer keeps of them stays in the cache."""


def alone(model: Model) -> Model:
    """The same model, told to train alone.

    >>> import numpy as np, fairfl
    >>> from fairfl.models.alone import alone
    >>> data = fairfl.from_arrays({"a": (np.ones((10, 4)), np.arange(10) % 3)})
    >>> alone(fairfl.models.mlp(data)).alone
    True
    """
    return replace(model, alone=True, stacked=partial(_kernel, model))


def _kernel(model: Model, models: int) -> Stacked:
    """The kernel for one model; several, where somebody asks for them, are left to vmap."""
    if models > 1:
        return stack(model, models)

    def losses(params: Params, x: Batch, y: Labels) -> Array:
        own = _only(params)
        return _in_pieces(lambda x, y: model.loss(own, x, y, None), x, y)[:, None]

    def correct(params: Params, x: Batch, y: Labels) -> Array:
        own = _only(params)
        return _in_pieces(lambda x, y: model.predict(own, x) == y, x, y)[:, None]

    def gradient(
        params: Params, x: Batch, y: Labels, weight: Array, key: PRNGKeyArray | None
    ) -> Params:
        def objective(own: Params) -> Array:
            return weighted(weight[:, 0], model.loss(own, x, y, key))

        return jax.tree.map(lambda leaf: leaf[..., None], jax.grad(objective)(_only(params)))

    return Stacked(losses, correct, gradient)


def _only(params: Params) -> Params:
    return jax.tree.map(lambda leaf: leaf[..., 0], params)


def _in_pieces(function: Callable[[Batch, Labels], Array], x: Batch, y: Labels) -> Array:
    """The function of all rows, PIECE rows at a time where they come in many whole pieces."""
    rows = x.shape[0]
    if rows <= PIECE or rows % PIECE:
        return function(x, y)
    pieces = (x.reshape(-1, PIECE, *x.shape[1:]), y.reshape(-1, PIECE))
    return jax.lax.map(lambda piece: function(*piece), pieces).reshape(rows)
