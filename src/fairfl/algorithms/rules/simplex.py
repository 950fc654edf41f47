"""The Euclidean projection on the simplex, exact and without sorting."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def on_simplex(v: Float[Array, " k"], here: Bool[Array, " k"]) -> Float[Array, " k"]:
    """argmin |x - v|^2 over x >= 0 with sum x = 1, where entries that are not `here` stay 0.

    x = (v - tau)_+ with sum x = 1 (Michelot, 1986): tau is the mean excess over the support, and
    whoever lies below it leaves the support, until nobody does, after at most k turns.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules.simplex import on_simplex
    >>> on_simplex(jnp.array([1.25, 0.25]), jnp.array([True, True])).tolist()
    [1.0, 0.0]
    """
    # The projection of v + c is that of v: from the top, no scale of v loses the 1.
    v = jnp.where(here, v - jnp.max(jnp.where(here, v, -jnp.inf)), 0)

    def threshold(support: Bool[Array, " k"]) -> Float[Array, ""]:
        return (jnp.sum(jnp.where(support, v, 0)) - 1) / jnp.maximum(jnp.sum(support), 1)

    def shrinks(state: tuple[Array, Array]) -> Bool[Array, ""]:
        before, support = state
        return jnp.any(before != support)

    def shrink(state: tuple[Array, Array]) -> tuple[Array, Array]:
        _, support = state
        return support, support & (v > threshold(support))

    _, support = jax.lax.while_loop(shrinks, shrink, (jnp.zeros_like(here), here))
    return jnp.where(support, v - threshold(support), 0)
