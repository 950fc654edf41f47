"""TERM: its tilt, with no division too many."""

import numpy as np
import pytest

import fairfl
from cohorts import coefficients, counted, drawn
from fairfl.algorithms.rules import mean, term


@pytest.mark.parametrize("seed", range(5))
def test_term_at_zero_is_fedavg_bit_for_bit(seed):
    people = drawn(seed)
    np.testing.assert_array_equal(
        coefficients(term(), people, t=0)[0], coefficients(mean(), people)[0]
    )


def test_term_at_zero_trains_as_fedavg_bit_for_bit(data, model):
    tilted = fairfl.train(data, model, fairfl.term(t=0), rounds=4, cohort=4)
    plain = fairfl.train(data, model, fairfl.fedavg(), rounds=4, cohort=4)
    np.testing.assert_array_equal(tilted.params["weights"], plain.params["weights"])


@pytest.mark.parametrize("t", [0, 0.5, 10, -3])
def test_term_does_not_divide_by_k_twice(t):
    """The reference's weights sum to 1 and are then averaged: its steps are K times too short."""
    np.testing.assert_allclose(coefficients(term(), drawn(1), t=t)[0].sum(), 1, rtol=1e-6)


def test_term_tilts_by_the_loss_by_hand():
    """F = (0, log 3), u = (2, 1), t = 2: 2 and 9 parts of 11."""
    a = counted(term(), [0, np.log(3)], [2, 1], t=2)
    np.testing.assert_allclose(a, [2 / 11, 9 / 11], rtol=1e-6)


@pytest.mark.parametrize("t", [1e4, 1e30])
def test_as_t_grows_term_is_the_worst_client(t):
    np.testing.assert_allclose(counted(term(), [1, 3, 2], t=t), [0, 1, 0], atol=1e-6)


def test_as_t_falls_term_is_the_best_client():
    np.testing.assert_allclose(counted(term(), [1, 3, 2], t=-1e30), [1, 0, 0], atol=1e-6)


@pytest.mark.parametrize("scale", [1e3, 1e30])
@pytest.mark.parametrize("t", [20, -20])
def test_no_tilt_overflows(t, scale):
    """exp(t F) overflows float32 at t F = 88, which a sum-type loss passes at once."""
    a = counted(term(), np.array([1, 2, 3]) * scale, t=t)
    assert np.isfinite(a).all()
    assert np.argmax(a) == (2 if t > 0 else 0)
