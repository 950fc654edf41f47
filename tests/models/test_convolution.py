"""Convolution as a product equals XLA's own, and so do its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairfl.models.convolution import convolution, convolution_layer, max_pool


def xla(layer, x):
    form = ("NHWC", "HWIO", "NHWC")
    z = jax.lax.conv_general_dilated(x, layer["weights"], (1, 1), "SAME", dimension_numbers=form)
    return z + layer["bias"]


def built(side, channels):
    keys = jax.random.split(jax.random.key(side), 3)
    layer = convolution_layer(keys[0], side, channels, filters=4)
    layer["bias"] = jax.random.normal(keys[1], (4,))
    return layer, jax.random.normal(keys[2], (3, 7, 6, channels))


@pytest.mark.parametrize(("side", "channels"), [(5, 1), (3, 2), (4, 3)])
def test_convolution_and_its_gradient_are_those_of_xla(side, channels):
    layer, x = built(side, channels)
    np.testing.assert_allclose(convolution(layer, x), xla(layer, x), rtol=1e-4, atol=1e-5)

    def gradient(function):
        return jax.grad(lambda p, x: jnp.sum(jnp.sin(function(p, x))), argnums=(0, 1))(layer, x)

    found, expected = gradient(convolution), gradient(xla)
    for left, right in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)


def test_second_derivatives_of_a_convolution_are_those_of_xla():
    layer, x = built(5, 2)

    def curvature(function):
        loss = lambda p: jnp.sum(jnp.sin(function(p, x)))  # noqa: E731
        slope = lambda p: sum(jnp.sum(g**2) for g in jax.tree.leaves(jax.grad(loss)(p)))  # noqa: E731
        return jax.grad(slope)(layer)

    found, expected = curvature(convolution), curvature(xla)
    for name in layer:
        scale = np.abs(expected[name]).max()
        np.testing.assert_allclose(found[name] / scale, expected[name] / scale, atol=1e-5)


def test_the_largest_of_every_two_by_two_and_an_odd_last_line_left_out():
    x = jnp.arange(2 * 5 * 4 * 3.0).reshape(2, 5, 4, 3)
    expected = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    np.testing.assert_array_equal(max_pool(x), expected)
