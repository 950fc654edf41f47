"""Layers that several models have: first weights, and the dense layer."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Layer = dict[str, Array]


def glorot(key: PRNGKeyArray, shape: Sequence[int], fans: int) -> Array:
    """Uniform within sqrt(6 / fans), the numbers of inputs and outputs together.

    >>> import jax
    >>> from fairfl.models.layers import glorot
    >>> bool((abs(glorot(jax.random.key(0), (50, 100), fans=150)) <= 0.2).all())
    True
    """
    bound = math.sqrt(6 / fans)
    return jax.random.uniform(key, tuple(shape), minval=-bound, maxval=bound)


def dense_layer(key: PRNGKeyArray, inputs: int, outputs: int) -> Layer:
    """Glorot-uniform weights and zero biases.

    >>> import jax
    >>> from fairfl.models.layers import dense_layer
    >>> {name: leaf.shape for name, leaf in dense_layer(jax.random.key(0), 4, 3).items()}
    {'bias': (3,), 'weights': (4, 3)}
    """
    weights = glorot(key, (inputs, outputs), inputs + outputs)
    return {"bias": jnp.zeros(outputs), "weights": weights}


def dense(layer: Layer, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
    """x W + b."""
    return x @ layer["weights"] + layer["bias"]
