"""A long short-term memory layer whose gradient is three products over all time steps.

Reverse-mode differentiation of a loop adds to the weights' gradients once per step. Here a step of
the way back only yields the error of the gates; the products that turn those errors into gradients
of weights, biases and inputs are done once for all steps (measured: see benchmarks/models.py).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from fairfl.models.layers import Layer, glorot

Sequence = Float[Array, "steps rows features"]
Hidden = Float[Array, "steps rows hidden"]
Gates = Float[Array, "steps rows gates"]

FORGET = 1.0
"""First bias of the forget gate, as in the reference's cell: remember until told otherwise."""


def layer(key: PRNGKeyArray, features: int, hidden: int) -> Layer:
    """First weights of a layer: Glorot-uniform over input and state together, gates i, f, g, o."""
    weights = glorot(key, (features + hidden, 4 * hidden), features + hidden + 4 * hidden)
    bias = jnp.zeros(4 * hidden).at[hidden : 2 * hidden].set(FORGET)
    return {"bias": bias, "input": weights[:features], "state": weights[features:]}


@jax.custom_vjp
def lstm(params: Layer, x: Sequence) -> Hidden:
    """The state after every step, from a state of zeros.

    i, f, g, o = x_t W + h_{t-1} U + b;  c_t = s(f) c_{t-1} + s(i) tanh(g);  h_t = s(o) tanh(c_t)

    >>> import jax, jax.numpy as jnp
    >>> from fairfl.models.recurrent import layer, lstm
    >>> lstm(layer(jax.random.key(0), features=3, hidden=2), jnp.ones((5, 1, 3))).shape
    (5, 1, 2)
    """
    return _forward(params, x)[0]


Kept = tuple[Layer, Sequence, Gates, Hidden, Hidden]


def _forward(params: Layer, x: Sequence) -> tuple[Hidden, Kept]:
    """The states; and what the way back needs: open gates, cells and states."""
    projected = x @ params["input"] + params["bias"]
    rest = jnp.zeros((x.shape[1], params["state"].shape[0]), projected.dtype)

    def step(state: tuple[Array, Array], from_x: Array) -> tuple[tuple[Array, Array], tuple]:
        h, c = state
        i, f, g, o = jnp.split(from_x + h @ params["state"], 4, axis=-1)
        i, f, g, o = jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o)
        c = f * c + i * g
        h = o * jnp.tanh(c)
        return (h, c), (jnp.concatenate([i, f, g, o], axis=-1), c, h)

    _, (gates, cells, states) = jax.lax.scan(step, (rest, rest), projected)
    return states, (params, x, gates, cells, states)


def _backward(kept: Kept, error: Hidden) -> tuple[Layer, Sequence]:
    params, x, gates, cells, states = kept
    before = lambda sequence: jnp.concatenate([jnp.zeros_like(sequence[:1]), sequence[:-1]])  # noqa: E731

    def step(later: tuple[Array, Array], now: tuple) -> tuple[tuple[Array, Array], Array]:
        dh, dc = later
        error, open, c, c_before = now
        i, f, g, o = jnp.split(open, 4, axis=-1)
        dh, squashed = dh + error, jnp.tanh(c)
        dc = dc + dh * o * (1 - squashed**2)
        di, df = dc * g * i * (1 - i), dc * c_before * f * (1 - f)
        dg, do = dc * i * (1 - g**2), dh * squashed * o * (1 - o)
        dz = jnp.concatenate([di, df, dg, do], axis=-1)
        return (dz @ params["state"].T, dc * f), dz

    rest = jnp.zeros_like(error[0])
    now = (error, gates, cells, before(cells))
    dz = jax.lax.scan(step, (rest, rest), now, reverse=True)[1]
    gradient = {
        "bias": dz.sum(axis=(0, 1)),
        "input": jnp.einsum("tbd,tbz->dz", x, dz),
        "state": jnp.einsum("tbh,tbz->hz", before(states), dz),
    }
    return gradient, dz @ params["input"].T


lstm.defvjp(_forward, _backward)
