"""A convex quadratic programme on the simplex with bounds, by interior points, in fixed steps.

Sums run over elements in order, and what has no room takes part in none of them, so that a client
who is absent changes no bit; no LAPACK, so that it runs on any device, all models at once.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

STEPS = 20
"""Predictor-corrector steps; nearly always 12 reach the last digit that there is."""

BACK = 0.995
"""Of the way to the boundary, so that every slack stays positive."""


@jax.jit
def minimiser(
    H: Float[Array, "k k"],
    c: Float[Array, " k"],
    least: Float[Array, " k"],
    most: Float[Array, " k"],
) -> Float[Array, " k"]:
    """argmin x.Hx / 2 + c.x  over  least <= x <= most,  sum x = 1; where several, the middle one.

    Mehrotra's predictor-corrector method on x = least + y (most - least), 0 <= y <= 1: what may not
    move is `least` exactly, and a singular H is no obstacle, as the barrier adds a diagonal.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules.quadratic import minimiser
    >>> H = jnp.array([[1.0, 0.0], [0.0, 3.0]])
    >>> minimiser(H, jnp.zeros(2), jnp.zeros(2), jnp.ones(2)).round(4).tolist()
    [0.75, 0.25]
    """
    room = most - least
    problem = _in_unit_box(H, c, least, room)
    y = jax.lax.fori_loop(0, STEPS, lambda _, point: _step(problem, point), _first(room)).y
    # The last digits: exactly what there is to hand out is handed out.
    share = room * jnp.clip(y, 0, 1)
    return least + share * _over(1 - jnp.sum(least), jnp.sum(share))


class Problem(NamedTuple):
    """min y.Qy / 2 + q.y  with  r.y = b  and  0 <= y <= 1, scaled so that slopes are about 1."""

    Q: Float[Array, "k k"]
    q: Float[Array, " k"]
    r: Float[Array, " k"]
    b: Float[Array, ""]
    free: Bool[Array, " k"]


class Point(NamedTuple):
    """y, the slack s = 1 - y, the multipliers of y >= 0 and s >= 0, and that of r.y = b."""

    y: Float[Array, " k"]
    s: Float[Array, " k"]
    z: Float[Array, " k"]
    t: Float[Array, " k"]
    v: Float[Array, ""]


def _in_unit_box(H: Array, c: Array, least: Array, room: Array) -> Problem:
    """The widest room is the unit of x, and the steepest slope that of the objective."""
    widest = jnp.max(room)
    unit = jnp.where(widest > 0, widest, 1)
    r = room / unit
    Q = r[:, None] * H * r[None, :] * unit
    q = r * (c + jnp.sum(H * least[None, :], axis=1))
    steepest = jnp.maximum(jnp.max(jnp.abs(q)), jnp.max(jnp.abs(Q)))
    scale = jnp.where(steepest > 0, steepest, 1)
    return Problem(Q / scale, q / scale, r, (1 - jnp.sum(least)) / unit, room > 0)


def _first(room: Array) -> Point:
    half, one = jnp.full_like(room, 0.5), jnp.ones_like(room)
    return Point(half, half, one, one, jnp.zeros_like(room[0]))


def _step(problem: Problem, at: Point) -> Point:
    """One Newton step towards the central path: predicted, corrected, and not to the boundary."""
    Q, q, r, b, free = problem
    y, s, z, t, v = at
    slope = _times(Q, y) + q - z + t + v * r
    lack, gap = b - jnp.sum(r * y), 1 - y - s
    factor = _factored(Q + jnp.diag(z / y + t / s))
    solved = _solved(factor, r)
    curvature = jnp.sum(r * solved)

    def towards(zy: Array, ts: Array) -> Point:
        """The Newton direction that changes the products z y and t s so."""
        base = _solved(factor, -slope + zy / y - (ts - t * gap) / s)
        dv = _over(jnp.sum(r * base) - lack, curvature)
        dy = base - dv * solved
        ds = gap - dy
        return Point(dy, ds, (zy - z * dy) / y, (ts - t * ds) / s, dv)

    mean = _complementarity(at, free)
    guess = towards(-z * y, -t * s)
    ahead = _moved(at, guess, _longest(at, guess, free))
    centre = mean * _over(_complementarity(ahead, free), mean) ** 3
    way = towards(centre - z * y - guess.z * guess.y, centre - t * s - guess.t * guess.s)
    new = _moved(at, way, BACK * _longest(at, way, free))
    # Where the numbers end, and where nothing is free, the point before stands.
    sound = [jnp.all(jnp.isfinite(part) | ~free) for part in new]
    sound.append(jnp.all((jnp.diag(factor) > 0) | ~free))
    goes_on = jnp.all(jnp.stack(sound)) & (mean > jnp.finfo(mean.dtype).eps)
    return jax.tree.map(lambda after, before: jnp.where(goes_on, after, before), new, at)


def _times(A: Float[Array, "k k"], x: Float[Array, " k"]) -> Float[Array, " k"]:
    return jnp.sum(A * x[None, :], axis=1)


def _factored(A: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """A = L D L^T in one square: D on the diagonal, the unit triangle L below it."""
    place = jnp.arange(len(A))

    def eliminate(n: Array, A: Array) -> Array:
        below = place > n
        ratio = jnp.where(below, A[:, n] / A[n, n], 0)
        rest = A - ratio[:, None] * jnp.where(below, A[n], 0)[None, :]
        return jnp.where(below[:, None] & (place == n)[None, :], ratio[:, None], rest)

    return jax.lax.fori_loop(0, len(A), eliminate, A)


def _solved(factor: Float[Array, "k k"], b: Float[Array, " k"]) -> Float[Array, " k"]:
    """x with L D L^T x = b."""
    last, place = len(factor) - 1, jnp.arange(len(factor))

    def forward(n: Array, x: Array) -> Array:
        return x - jnp.where(place > n, factor[:, n], 0) * x[n]

    def backward(n: Array, x: Array) -> Array:
        return x - jnp.where(place < last - n, factor[last - n], 0) * x[last - n]

    x = jax.lax.fori_loop(0, last, forward, b) / jnp.diag(factor)
    return jax.lax.fori_loop(0, last, backward, x)


def _over(part: Float[Array, ""], whole: Float[Array, ""]) -> Float[Array, ""]:
    """part / whole, and 0 of nothing."""
    return jnp.where(whole > 0, part / jnp.where(whole > 0, whole, 1), 0)


def _complementarity(at: Point, free: Bool[Array, " k"]) -> Float[Array, ""]:
    products = jnp.where(free, at.y * at.z + at.s * at.t, 0)
    return _over(jnp.sum(products), 2.0 * jnp.sum(free))


def _moved(at: Point, way: Point, length: Array) -> Point:
    return jax.tree.map(lambda here, change: here + length * change, at, way)


def _longest(at: Point, way: Point, free: Bool[Array, " k"]) -> Float[Array, ""]:
    """How far the way can be gone, 1 at most, before a slack or a multiplier is negative."""
    pairs = zip(at[:4], way[:4], strict=True)
    limits = [jnp.where(free & (dx < 0), -x / jnp.where(dx < 0, dx, 1), 1) for x, dx in pairs]
    return jnp.minimum(jnp.min(jnp.stack(limits)), 1)
