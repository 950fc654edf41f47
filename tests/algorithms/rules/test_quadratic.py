"""The quadratic programme: as good as scipy's solver, degenerate matrices included."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from fairfl.algorithms.rules.quadratic import minimiser

ZERO = 1e-12
"""A mixture of unit vectors whose square is below this is 0, and relative to 0 nothing is small."""


def updates(kind, draw, k):
    """Vectors of 16 numbers, degenerate in the way that the name says."""
    X = draw.normal(size=(k, 16))
    if kind == "rank one":
        return np.outer(draw.normal(size=k), X[0])
    if kind == "few dimensions":
        return X[:, :3]
    if kind == "some zero":
        return X * (draw.random((k, 1)) < 0.6)
    if kind == "all zero":
        return 0 * X
    if kind == "duplicates":
        return X[np.arange(k) // 2]
    if kind == "opposites":
        return X[np.arange(k) // 2] * (-1.0) ** np.arange(k)[:, None]
    if kind == "nearly alike":
        return X[:1] + 10.0 ** draw.uniform(-9, -1) * X
    return X * np.exp(draw.normal(0, 3, (k, 1)))


KINDS = (
    "any", "rank one", "few dimensions", "some zero", "all zero", "duplicates", "opposites",
    "nearly alike",
)  # fmt: skip


def problem(n):
    """The n-th of the random problems: the matrix, and the bounds |x - p| <= eps."""
    draw = np.random.default_rng(n)
    k = (10, 3, 6)[n % 3]
    X = updates(KINDS[n % len(KINDS)], draw, k)
    length = np.linalg.norm(X, axis=1, keepdims=True)
    d = X / np.where(length > 0, length, 1)
    p = draw.dirichlet(np.full(k, draw.choice([0.5, 1, 10])))
    eps = draw.choice([0.001, 0.05, 0.1, 0.3, 1])
    return d @ d.T, p, np.maximum(p - eps, 0), np.minimum(p + eps, 1)


def by_scipy(H, p, least, most):
    """What SLSQP finds from p, with all the steps that it wants."""
    return minimize(
        lambda x: x @ H @ x,
        p,
        jac=lambda x: 2 * H @ x,
        bounds=list(zip(least, most, strict=True)),
        constraints=[{"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like}],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    ).x


def lower_bound(H, x, least, most):
    """f(y) >= f(x) + 2 Hx.(y - x) for every y: the least that any mixture could reach.

    The linear function is least where the cheapest places are filled first.
    """
    slope, y, left = H @ x, least.copy(), 1 - least.sum()
    for place in np.argsort(slope):
        y[place] += min(most[place] - least[place], left)
        left -= y[place] - least[place]
    return x @ H @ x + 2 * slope @ (y - x)


@pytest.fixture(scope="module")
def solved():
    """A thousand problems and our answers to them."""
    problems = [problem(n) for n in range(1000)]
    with jax.enable_x64(True):
        found = [np.asarray(minimiser(H, 0 * p, low, high)) for H, p, low, high in problems]
    return list(zip(problems, found, strict=True))


def test_it_reaches_scipys_objective_on_a_thousand_gram_matrices(solved):
    for (H, p, least, most), x in solved:
        other = by_scipy(H, p, least, most)
        feasible = abs(other.sum() - 1) < 1e-9
        if feasible and (other >= least - 1e-9).all() and (other <= most + 1e-9).all():
            assert x @ H @ x <= max(other @ H @ other * (1 + 1e-6), ZERO)


def test_no_mixture_could_be_better(solved):
    """A proof where scipy is no judge: the objective is convex, so its tangent bounds it."""
    for (H, _, least, most), x in solved:
        reached = x @ H @ x
        assert reached - lower_bound(H, x, least, most) <= max(1e-6 * reached, ZERO)


def test_its_answers_are_mixtures_within_their_bounds(solved):
    for (_, _, least, most), x in solved:
        assert abs(x.sum() - 1) < 1e-14
        assert (x >= least).all()
        assert (x <= most + 1e-14).all()


def test_no_room_is_the_lower_bound_bit_for_bit():
    p = jnp.array([0.1, 0.2, 0.7])
    np.testing.assert_array_equal(minimiser(jnp.eye(3), jnp.zeros(3), p, p), p)


def test_what_costs_nothing_is_shared_evenly():
    x = minimiser(jnp.zeros((4, 4)), jnp.zeros(4), jnp.zeros(4), jnp.ones(4))
    np.testing.assert_allclose(x, 0.25, rtol=1e-6)


def test_a_linear_part_by_hand():
    """min (x^2 + y^2) / 2 - c x over x + y = 1: x - c = y, so x = (1 + c) / 2, and 1 at most."""
    x = minimiser(jnp.eye(2), jnp.array([-2.0, 0.0]), jnp.zeros(2), jnp.ones(2))
    np.testing.assert_allclose(x, [1, 0], atol=1e-4)
    x = minimiser(jnp.eye(2), jnp.array([-0.5, 0.0]), jnp.zeros(2), jnp.ones(2))
    np.testing.assert_allclose(x, [0.75, 0.25], atol=1e-5)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_scale_of_the_objective_does_not_matter(scale):
    H, p, least, most = (jnp.asarray(part, jnp.float32) for part in problem(0))
    plain = minimiser(H, 0 * p, least, most)
    np.testing.assert_allclose(minimiser(scale * H, 0 * p, least, most), plain, atol=1e-5)


def test_in_float32_the_objective_is_within_its_digits():
    for n in range(0, 200, 7):
        H, p, least, most = problem(n)
        x = np.asarray(minimiser(*(jnp.asarray(a, jnp.float32) for a in (H, 0 * p, least, most))))
        x = x.astype(float)
        assert x @ H @ x - lower_bound(H, x, least, most) < 3e-5
