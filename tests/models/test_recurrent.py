"""The recurrent layer equals an independent NumPy one, and its own way back plain autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairfl.models import recurrent
from fairfl.models.recurrent import layer, lstm

STEPS, ROWS, FEATURES, HIDDEN = 6, 4, 3, 5


@pytest.fixture
def params():
    first = layer(jax.random.key(0), FEATURES, HIDDEN)
    return first | {"bias": first["bias"] + jnp.linspace(-1, 1, 4 * HIDDEN)}


@pytest.fixture
def x():
    return jax.random.normal(jax.random.key(1), (STEPS, ROWS, FEATURES))


def by_hand(params, x):
    """One row and one step after another, in float64."""
    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    W, U, b = (np.asarray(params[name], np.float64) for name in ("input", "state", "bias"))
    states = np.zeros((STEPS, ROWS, HIDDEN))
    for row in range(ROWS):
        h, c = np.zeros(HIDDEN), np.zeros(HIDDEN)
        for t in range(STEPS):
            i, f, g, o = np.split(np.asarray(x, np.float64)[t, row] @ W + h @ U + b, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            states[t, row] = h
    return states


def plain(params, x):
    """The same states with nothing but XLA's own derivatives."""
    return recurrent._forward(params, x)[0]


def objective(function):
    """Every state counts, each differently."""
    weight = jax.random.normal(jax.random.key(2), (STEPS, ROWS, HIDDEN))
    return lambda params, x: jnp.sum(weight * function(params, x) ** 2)


def equal(found, expected, **tolerance):
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    for left, right in pairs:
        np.testing.assert_allclose(left, right, **tolerance)


def test_states_are_those_of_the_formula(params, x):
    np.testing.assert_allclose(lstm(params, x), by_hand(params, x), rtol=1e-5, atol=1e-6)


def test_gradient_is_that_of_plain_autodiff(params, x):
    with jax.enable_x64(True):
        params, x = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), (params, x))
        found, expected = (
            jax.jit(jax.grad(objective(function), argnums=(0, 1)))(params, x)
            for function in (lstm, plain)
        )
        equal(found, expected, rtol=1e-9, atol=1e-12)


def test_gradient_is_the_slope_of_the_loss(params, x):
    """Central differences of the float64 formula, in a random direction."""
    directions = jax.tree.map(lambda leaf: jax.random.normal(jax.random.key(3), leaf.shape), params)
    weight = np.asarray(jax.random.normal(jax.random.key(2), (STEPS, ROWS, HIDDEN)), np.float64)

    def moved(step):
        at = {
            name: np.asarray(params[name]) + step * np.asarray(directions[name], np.float64)
            for name in params
        }
        return float((weight * by_hand(at, x) ** 2).sum())

    slope = (moved(1e-5) - moved(-1e-5)) / 2e-5
    gradient = jax.jit(jax.grad(objective(lstm)))(params, x)
    along = sum(float((gradient[name] * directions[name]).sum()) for name in params)
    np.testing.assert_allclose(along, slope, rtol=1e-4)


@pytest.mark.parametrize("mode", ["reverse over reverse", "forward over reverse"])
def test_second_derivatives_are_exact(params, x, mode):
    """Meta-learning differentiates through a gradient step."""
    along = jax.tree.map(jnp.ones_like, params)

    def curvature(function):
        gradient = jax.grad(objective(function))
        if mode == "forward over reverse":
            return jax.jvp(lambda p: gradient(p, x), (params,), (along,))[1]
        return jax.grad(lambda p: sum(map(jnp.sum, jax.tree.leaves(gradient(p, x)))))(params)

    with jax.enable_x64(True):
        params, x, along = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), (params, x, along))
        equal(
            jax.jit(curvature, static_argnums=0)(lstm),
            jax.jit(curvature, static_argnums=0)(plain),
            rtol=1e-9,
            atol=1e-12,
        )


def test_the_forget_gate_starts_open():
    bias = layer(jax.random.key(0), FEATURES, HIDDEN)["bias"].reshape(4, HIDDEN)
    np.testing.assert_array_equal(bias, np.array([0, 1, 0, 0])[:, None] * np.ones(HIDDEN))
