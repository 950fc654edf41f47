"""Convolution as one matrix product, so that its gradient is one as well.

XLA's own convolution is slow on a CPU where it matters: the gradient of a kernel inside a loop took
15 times as long as outside. Here the patches under the kernel are laid side by side, and both the
convolution and the gradient of its kernel are plain products.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from fairfl.models.layers import Layer, glorot

Images = Float[Array, "rows height width channels"]


def convolution_layer(key: PRNGKeyArray, side: int, channels: int, filters: int) -> Layer:
    """Glorot-uniform kernels of side x side and zero biases.

    >>> import jax
    >>> from fairfl.models.convolution import convolution_layer
    >>> convolution_layer(jax.random.key(0), side=5, channels=1, filters=32)["weights"].shape
    (5, 5, 1, 32)
    """
    weights = glorot(key, (side, side, channels, filters), side * side * (channels + filters))
    return {"bias": jnp.zeros(filters), "weights": weights}


def convolution(layer: Layer, x: Images) -> Float[Array, "rows height width filters"]:
    """z[i, j] = sum over a, b of x[i + a - s, j + b - s] W[a, b] + bias.

    with s = (side - 1) // 2. Outside the image x is zero, so the result is as large as the image.

    >>> import jax.numpy as jnp
    >>> from fairfl.models.convolution import convolution
    >>> blur = {"bias": jnp.zeros(1), "weights": jnp.ones((3, 3, 1, 1))}
    >>> convolution(blur, jnp.ones((1, 3, 3, 1)))[0, :, :, 0].tolist()
    [[4.0, 6.0, 4.0], [6.0, 9.0, 6.0], [4.0, 6.0, 4.0]]
    """
    weights = layer["weights"]
    return _patches(x, len(weights)) @ weights.reshape(-1, weights.shape[-1]) + layer["bias"]


def _patches(x: Images, side: int) -> Float[Array, "rows height width patch"]:
    """What lies under the kernel at every place of the image, row after row of the kernel."""
    before, after = (side - 1) // 2, side // 2
    padded = jnp.pad(x, ((0, 0), (before, after), (before, after), (0, 0)))
    height, width = x.shape[1:3]
    under = [padded[:, a : a + height, b : b + width] for a in range(side) for b in range(side)]
    return jnp.concatenate(under, axis=-1)


def max_pool(x: Images) -> Float[Array, "rows half_height half_width channels"]:
    """The largest of every two by two; an odd last line is left out.

    >>> import jax.numpy as jnp
    >>> from fairfl.models.convolution import max_pool
    >>> max_pool(jnp.arange(16.0).reshape(1, 4, 4, 1))[0, :, :, 0].tolist()
    [[5.0, 7.0], [13.0, 15.0]]
    """
    height, width = x.shape[1] // 2, x.shape[2] // 2
    blocks = x[:, : 2 * height, : 2 * width].reshape(-1, height, 2, width, 2, x.shape[-1])
    return blocks.max(axis=(2, 4))
