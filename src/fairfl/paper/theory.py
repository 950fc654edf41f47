"""The paper's theory as functions and as checks: appendix A, and Lemma 3.

    f_q(w) = (sum_k F_k(w)^(q+1) / m)^(1/(q+1)),        w_q = argmin f_q

The lemmas speak of w_q exactly, so `solve` finds it by Newton's method on problems whose losses are
strongly convex and positive.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

Vector = Float[np.ndarray, " dimensions"]
Losses = Float[np.ndarray, " clients"]
Number = float | int


def lipschitz(loss: Number, gradient_norm: Number, q: Number, L: Number) -> float:
    """Lemma 3: L F^q + q F^(q-1) |grad F|^2 bounds the curvature of F^(q+1) / (q+1) at a point.

    L is the Lipschitz constant of grad F: one estimate at q = 0 gives the step of every q.

    >>> lipschitz(2.0, 3.0, q=1, L=10)
    29.0
    """
    steepness = q * loss ** (q - 1) * gradient_norm**2 if q > 0 else 0
    return float(L * loss**q + steepness)


def bound(
    losses: ArrayLike,
    sizes: ArrayLike,
    q: Number,
    *,
    delta: Number = 0.05,
    largest: Number = 1.0,
    weights: ArrayLike | None = None,
    complexity: Number = 0.0,
) -> float:
    """With probability 1 - delta the true loss under client weights lambda is at most this.

        |lambda|_p (sum_k F_k^(q+1))^(1/(q+1)) + complexity
            + M sqrt(sum_k lambda_k^2 / (2 n_k) log(1 / delta)),      1/p + 1/(q+1) = 1

    Lemma 8 for given `weights`; without them Theorem 9, which holds for all of the simplex at once:
    each term at its largest, |lambda|_p = 1 and lambda on the smallest client. Losses lie between 0
    and `largest` (M): errors 1 - accuracy / 100 do with M = 1. `complexity` is the paper's
    E max_h (L_lambda(h) - empirical L_lambda(h)); it is 0 for losses on rows that training never
    saw, because then h is fixed before they are drawn.

    >>> round(bound([0.1, 0.3], [100, 100], q=0, weights=[0.5, 0.5]), 3)
    0.287
    >>> bound([0.1, 0.3], [100, 100], q=5) > bound([0.1, 0.3], [100, 100], q=5, weights=[0.5, 0.5])
    True
    """
    F, n = np.asarray(losses, float), np.asarray(sizes, float)
    _check_bound(F, n, q, delta, largest)
    top = F.max()
    norm = top * np.sum((F / top) ** (q + 1)) ** (1 / (q + 1)) if top > 0 else 0.0
    if weights is None:
        share, spread = 1.0, 1 / n.min()
    else:
        simplex = _simplex(weights, len(F))
        share, spread = _p_norm(simplex, q), float(np.sum(simplex**2 / n))
    chance = largest * math.sqrt(spread / 2 * math.log(1 / delta))
    return float(share * norm + complexity + chance)


def _check_bound(F: np.ndarray, n: np.ndarray, q: Number, delta: Number, largest: Number) -> None:
    if F.shape != n.shape or F.ndim != 1 or not len(F):
        raise ValueError(
            f"losses have shape {F.shape} and sizes {n.shape}; give one of each per client"
        )
    if not (np.all(F >= 0) and np.all(largest >= F)):
        raise ValueError(
            f"losses lie between {F.min():g} and {F.max():g}, but the bound needs them between 0 "
            f"and largest={largest:g}; give errors (1 - accuracy / 100) or another `largest`"
        )
    if not np.all(n > 0):
        raise ValueError("a client has no rows; leave out clients without rows")
    if q < 0 or not 0 < delta < 1:
        raise ValueError(f"q={q} must be 0 or greater and delta={delta} between 0 and 1")


def _simplex(weights: ArrayLike, clients: int) -> Losses:
    given = np.asarray(weights, float)
    if given.shape != (clients,) or np.any(given < 0) or not math.isclose(given.sum(), 1):
        raise ValueError(f"weights must be {clients} numbers of 0 or more that add up to 1")
    return given


def _p_norm(simplex: Losses, q: Number) -> float:
    """|lambda|_p with p = (q + 1) / q, which is infinite at q = 0."""
    if q == 0:
        return float(simplex.max())
    p = (q + 1) / q
    return float(np.sum(simplex**p) ** (1 / p))


# Random convex problems, solved to optimality -----------------------------------------------------


class Quadratics(NamedTuple):
    """F_k(w) = least_k + (w - centre_k)' A_k (w - centre_k) / 2, with A_k positive definite."""

    curvature: Float[np.ndarray, "clients dimensions dimensions"]
    centre: Float[np.ndarray, "clients dimensions"]
    least: Losses

    def losses(self, w: Vector) -> Losses:
        away = w - self.centre
        return self.least + 0.5 * np.einsum("ki,kij,kj->k", away, self.curvature, away)

    def gradients(self, w: Vector) -> Float[np.ndarray, "clients dimensions"]:
        return np.einsum("kij,kj->ki", self.curvature, w - self.centre)


def random_problem(seed: int, clients: int = 5, dimensions: int = 3) -> Quadratics:
    """Clients that disagree about the centre, the curvature and how low a loss can get.

    >>> random_problem(0).losses(np.zeros(3)).shape
    (5,)
    """
    draw = np.random.default_rng(seed)
    factor = draw.normal(size=(clients, dimensions, dimensions))
    curvature = factor @ factor.swapaxes(1, 2) + 0.1 * np.eye(dimensions)
    return Quadratics(
        curvature, draw.normal(size=(clients, dimensions)), draw.uniform(0.05, 0.5, clients)
    )


def solve(problem: Quadratics, q: Number) -> Vector:
    """w_q = argmin sum_k F_k^(q+1), by Newton's method with halved steps.

    >>> problem = random_problem(0)
    >>> w = solve(problem, q=2)
    >>> F = problem.losses(w)
    >>> bool(np.abs(F**2 @ problem.gradients(w)).max() < 1e-9)
    True
    """
    w = problem.centre.mean(axis=0)
    for _ in range(200):
        slope, hessian = _derivatives(problem, w, q)
        step = np.linalg.solve(hessian, slope)
        decrease = float(slope @ step)
        if decrease < 1e-26 * abs(_value(problem, w, q)):
            break
        w = w - _length(problem, w, step, decrease, q) * step
    return w


def _value(problem: Quadratics, w: Vector, q: Number) -> float:
    return float(np.sum(problem.losses(w) ** (q + 1)) / (q + 1))


def _derivatives(problem: Quadratics, w: Vector, q: Number) -> tuple[Vector, np.ndarray]:
    F, g = problem.losses(w), problem.gradients(w)
    hessian = np.einsum("k,kij->ij", F**q, problem.curvature)
    return F**q @ g, hessian + q * np.einsum("k,ki,kj->ij", F ** (q - 1), g, g)


def _length(problem: Quadratics, w: Vector, step: Vector, decrease: Number, q: Number) -> float:
    """The longest of 1, 1/2, 1/4 ... that goes down as far as a slope promises."""
    length, here = 1.0, _value(problem, w, q)
    if decrease < 1e-9 * here:
        # So near the end rounding decides how values compare, and the whole step is right.
        return length
    while _value(problem, w - length * step, q) > here - 1e-4 * length * decrease:
        length /= 2
        if length < 1e-12:
            return 0.0
    return length


def cosine(values: Losses) -> float:
    """Uniformity 2: the cosine of the angle between the values and the all-ones vector.

    >>> cosine(np.array([1.0, 1.0]))
    1.0
    """
    return float(values.mean() / np.sqrt(np.mean(values**2)))


def entropy(values: Losses) -> float:
    """Uniformity 3: the entropy, in nats, of the values divided by their sum.

    >>> round(entropy(np.array([1.0, 1.0])), 4)
    0.6931
    """
    share = values / values.sum()
    return float(-np.sum(share * np.log(share)))


def entropy_slope(problem: Quadratics, q: Number, power: Number, step: Number = 1e-4) -> float:
    """d/dp H(F^power(w_p)) at p = q, by central differences.

    Lemma 6 says that it is not negative at power = q + 1. (The paper's proof indexes w_p by the
    power of the objective that it minimises, which is q + 1 for f_q.)

    >>> entropy_slope(random_problem(0), q=1, power=2) >= 0
    True
    """
    after, before = (
        entropy(problem.losses(solve(problem, q + side)) ** power) for side in (step, -step)
    )
    return (after - before) / (2 * step)
