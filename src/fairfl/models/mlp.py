"""A multi-layer perceptron, for rows of numbers; classifies or regresses as the data asks."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from fairfl.clients import FederatedData
from fairfl.models.functions import from_functions
from fairfl.models.layers import Layer, dense, dense_layer
from fairfl.models.model import Model, Task

Layers = list[Layer]


def mlp(data: FederatedData, hidden: Sequence[int] = (128,)) -> Model:
    """Fully connected layers with ReLU between them; Glorot-uniform weights from the seed.

    >>> import numpy as np, fairfl
    >>> data = fairfl.from_arrays({"a": (np.ones((10, 4)), np.arange(10) % 3)})
    >>> model = fairfl.models.mlp(data, hidden=(8,))
    >>> model.name
    'MLP 4-8-3'
    """
    if data.x.ndim != 2:
        raise ValueError(
            f"mlp needs rows of numbers but a row of x has shape {data.x.shape[1:]}; flatten it"
        )
    if not all(width > 0 for width in hidden):
        raise ValueError(f"hidden={tuple(hidden)} must be positive layer widths such as (128,)")
    outputs = 1 if data.classes is None else len(data.classes)
    return mlp_of((data.x.shape[1], *hidden, outputs), data.task)


@lru_cache
def mlp_of(widths: tuple[int, ...], task: Task) -> Model:
    name = "MLP " + "-".join(map(str, widths))
    model = from_functions(partial(_init, widths=widths), _apply, task=task, name=name)
    return replace(model, built_in="mlp")


def _init(key: PRNGKeyArray, widths: tuple[int, ...]) -> Layers:
    keys = jax.random.split(key, len(widths) - 1)
    return [dense_layer(k, i, o) for k, i, o in zip(keys, widths, widths[1:], strict=False)]


def _apply(params: Layers, x: Float[Array, "rows features"]) -> Float[Array, "rows outputs"]:
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(dense(layer, x))
    return dense(last, x)
