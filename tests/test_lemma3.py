"""Lemma 3: f^(q+1) / (q+1) has a gradient locally Lipschitz with L f^q + q f^(q-1) |grad f|^2."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oracle import lipschitz_bound

thorough = settings(deadline=None, database=None, max_examples=300)
# Rounding in f and truncation in the difference quotient stay far below this share of the bound.
SLACK = 1e-5


class Row(NamedTuple):
    """A smooth non-negative function of one number, its slope, and a bound of its curvature."""

    value: Callable
    slope: Callable
    curvature: float


def _sigmoid(z):
    return 0.5 * (1 + np.tanh(z / 2))


ROWS = {
    "half-square": Row(lambda z: z**2 / 2, lambda z: z, 1.0),
    "softplus": Row(lambda z: np.logaddexp(0, z), _sigmoid, 0.25),
    "squared-sigmoid": Row(
        lambda z: _sigmoid(z) ** 2, lambda z: 2 * _sigmoid(z) ** 2 * (1 - _sigmoid(z)), 0.16
    ),
    "huber": Row(lambda z: np.sqrt(1 + z**2) - 1, lambda z: z / np.sqrt(1 + z**2), 1.0),
    "cauchy": Row(lambda z: np.log1p(z**2) / 2, lambda z: z / (1 + z**2), 1.0),
    "one-plus-sine": Row(lambda z: 1 + np.sin(z), np.cos, 1.0),
}


class Smooth(NamedTuple):
    """f(w) = c + sum over rows of phi(a.w - b): its gradient is |A|^2 max phi'' - Lipschitz."""

    A: np.ndarray
    b: np.ndarray
    c: float
    row: Row

    def value(self, w):
        return self.c + float(np.sum(self.row.value(self.A @ w - self.b)))

    def gradient(self, w):
        return self.A.T @ self.row.slope(self.A @ w - self.b)

    @property
    def lipschitz(self) -> float:
        return self.row.curvature * float(np.linalg.norm(self.A, 2)) ** 2


def curvature(f: Smooth, w: np.ndarray, direction: np.ndarray, q: float) -> float:
    """|H v| / f(w)^q, H the Hessian of f^(q+1) / (q+1), from differences of its gradient."""

    def relative_gradient(at):
        return (f.value(at) / f.value(w)) ** q * f.gradient(at)

    v = direction / np.linalg.norm(direction)
    # f^q bends on the scale f / (q |grad f|), f itself on that of its rows' arguments.
    bend = (1 + q) * np.linalg.norm(f.gradient(w)) / f.value(w)
    step = 1e-5 / (1 + bend + np.sqrt(f.lipschitz * (1 + q) / f.value(w)) + np.linalg.norm(f.A, 2))
    ahead, behind = relative_gradient(w + step * v), relative_gradient(w - step * v)
    return float(np.linalg.norm(ahead - behind) / (2 * step))


def bound(f: Smooth, w: np.ndarray, q: float) -> float:
    """L_q(w) / f(w)^q."""
    gradient = f.gradient(w)
    return lipschitz_bound(f.value(w), gradient @ gradient, q, f.lipschitz) / f.value(w) ** q


numbers = st.floats(-3, 3, width=32).map(lambda z: z if abs(z) > 1e-3 else 0.0)
exponents = st.sampled_from([0, 0.001, 0.1, 1, 5, 20]) | st.floats(0, 20)


@st.composite
def losses_at_points(draw):
    rows, parameters = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    f = Smooth(
        draw(arrays(float, (rows, parameters), elements=numbers)),
        draw(arrays(float, rows, elements=numbers)),
        draw(st.sampled_from([0.0, 0.01, 1.0])),
        ROWS[draw(st.sampled_from(sorted(ROWS)))],
    )
    return f, draw(arrays(float, parameters, elements=numbers))


def directions(f, w, drawn):
    """The drawn direction, and those in which the bound is tightest."""
    found = [drawn, f.gradient(w), np.linalg.svd(f.A)[2][0]]
    return [v for v in found if np.linalg.norm(v) > 1e-9]


@thorough
@given(losses_at_points(), exponents, arrays(float, 4, elements=numbers))
def test_bound_holds_along_every_sampled_direction(loss, q, drawn):
    f, w = loss
    # At f = 0 and q < 1 the bound itself is infinite.
    assume(f.value(w) > 1e-6)
    limit = bound(f, w, q)
    for v in directions(f, w, drawn[: len(w)]):
        assert curvature(f, w, v, q) <= limit * (1 + SLACK) + SLACK * 1e-3


@pytest.mark.parametrize("q", [0, 0.001, 0.1, 1, 5, 20])
def test_bound_is_reached_by_a_squared_distance_along_its_gradient(q):
    """f = c + |w - b|^2 / 2: in the direction of the gradient nothing smaller would do."""
    f = Smooth(np.eye(3), np.array([1.0, -2.0, 0.5]), 0.25, ROWS["half-square"])
    w = np.array([0.5, 1.0, -1.0])
    assert curvature(f, w, f.gradient(w), q) == pytest.approx(bound(f, w, q), rel=SLACK)


def test_bound_by_hand():
    """F = 4, |grad F|^2 = 9, L = 2: q = 0 -> L; q = 1 -> 9 + 2 4; q = 2 -> 2 4 9 + 2 16."""
    assert [lipschitz_bound(4.0, 9.0, q, 2.0) for q in (0, 1, 2)] == [2, 17, 104]
