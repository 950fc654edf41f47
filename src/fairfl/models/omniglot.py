"""The paper's model for Omniglot: two convolutions and two dense layers."""

import math
from functools import lru_cache, partial
from typing import Any

import jax
from jax.lax import optimization_barrier as materialise
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from fairfl.clients import FederatedData
from fairfl.models.alone import alone
from fairfl.models.convolution import convolution, convolution_layer, max_pool
from fairfl.models.functions import from_functions
from fairfl.models.layers import dense, dense_layer
from fairfl.models.model import Model

SIDE, FILTERS, HIDDEN = 5, (32, 64), 2048
"""Kernels, filters and dense layer of the reference code; the paper counts the layers only."""

Weights = dict[str, Any]


def omniglot_cnn(data: FederatedData) -> Model:
    """A small convolutional network for square grey images, as the paper uses on Omniglot.

    Two convolutions of 5 x 5 with 32 and 64 filters, each with ReLU and a 2 x 2 maximum after it,
    a dense layer of 2,048 with ReLU, and one output per class. A row is an image [28, 28], one with
    a channel [28, 28, 1], or its 784 numbers.

    >>> import numpy as np, fairfl
    >>> data = fairfl.from_arrays({"task": (np.ones((10, 28, 28)), np.arange(10) % 5)})
    >>> fairfl.models.omniglot_cnn(data).name
    'CNN 28x28-32-64-2048-5'
    """
    if data.classes is None:
        raise ValueError("omniglot_cnn is a classifier but the labels are real numbers; use an mlp")
    return _cnn(_side(data.x.shape[1:]), len(data.classes))


def _side(shape: tuple[int, ...]) -> int:
    """The side of a square image of one channel, whichever way its row is shaped."""
    side = math.isqrt(math.prod(shape))
    if shape not in ((side**2,), (side, side), (side, side, 1)) or side < 4:
        raise ValueError(
            f"omniglot_cnn reads square images of one channel, at least 4 x 4, but a row of x has "
            f"shape {shape}; give for example (28, 28)"
        )
    return side


@lru_cache
def _cnn(side: int, classes: int) -> Model:
    model = from_functions(
        partial(_init, side=side, classes=classes),
        partial(_apply, side),
        task="binary" if classes == 2 else "multiclass",
        name=f"CNN {side}x{side}-{FILTERS[0]}-{FILTERS[1]}-{HIDDEN}-{classes}",
    )
    return alone(model)


def _init(key: PRNGKeyArray, side: int, classes: int) -> Weights:
    keys = jax.random.split(key, 4)
    flat = (side // 4) ** 2 * FILTERS[1]
    return {
        "convolutions": [
            convolution_layer(keys[0], SIDE, 1, FILTERS[0]),
            convolution_layer(keys[1], SIDE, *FILTERS),
        ],
        "dense": [dense_layer(keys[2], flat, HIDDEN), dense_layer(keys[3], HIDDEN, classes)],
    }


def _apply(
    side: int, params: Weights, x: Shaped[Array, "rows ..."]
) -> Float[Array, "rows classes"]:
    z = x.reshape(-1, side, side, 1).astype(params["dense"][0]["bias"].dtype)
    for layer in params["convolutions"]:
        z = max_pool(jax.nn.relu(convolution(layer, z)))
    hidden, last = params["dense"]
    # Without the barrier XLA makes one slow kernel of the second convolution and all after it.
    return dense(last, jax.nn.relu(dense(hidden, materialise(z.reshape(len(z), -1)))))
