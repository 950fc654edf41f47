"""q-FFL: the traps of peers in the paper's own formula."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cohorts import coefficients, cohort, drawn
from fairfl.algorithms.rules import mean, q_ffl


@pytest.mark.parametrize("seed", range(20))
def test_q_zero_is_the_mean_bit_for_bit(seed):
    """Flower's QFedAvg(q=0) is not FedAvg."""
    people = drawn(seed)
    np.testing.assert_array_equal(
        coefficients(q_ffl(), people, q=0)[0], coefficients(mean(), people)[0]
    )


@pytest.mark.parametrize("losses", [[0, 0, 0], [0, 1, 2], [0, 1e-30, 1e30]])
@pytest.mark.parametrize("norms", [[0, 0, 0], [1, 2, 3], [1e30, 0, 1e38]])
def test_q_zero_is_the_mean_also_with_zero_losses(losses, norms):
    """0 * log 0 and 0 / 0 are NaN without a guard."""
    people = cohort(losses, norms)
    a, _, info = coefficients(q_ffl(), people, q=0)
    np.testing.assert_array_equal(a, coefficients(mean(), people)[0])
    assert info["capped"] == 0


def test_q_ffl_is_the_papers_update_by_hand():
    """F = (1, 2), |D|^2 = (.5, 1), q = 1, L = 2: with Delta w = L D,

    h = q F^(q-1) |Delta w|^2 + L F^q = (2 + 2, 4 + 4); Delta = F^q L D, so a = (2, 4) / 12.
    """
    a, _, _ = coefficients(q_ffl(), cohort([1, 2], [0.5, 1]), q=1, L=2)
    np.testing.assert_allclose(a, [2 / 12, 4 / 12], rtol=1e-6)


@pytest.mark.parametrize("scale", [1e3, 1e-6, 1.0, 1e30, 1e-30])
@pytest.mark.parametrize("q", [20, 100, 1000])
def test_no_q_and_no_scale_of_the_loss_overflows(q, scale):
    """F^q overflows float32 at q = 20 with sum-type losses, float64 at q = 100."""
    people = cohort(np.array([1, 2, 3, 2.5]) * scale, np.array([1, 1, 1, 1]) * scale)
    a, _, _ = coefficients(q_ffl(), people, q=q, L=1)
    assert np.isfinite(a).all()
    assert np.argmax(a) == 2
    assert a[2] / np.sum(a) > 0.97


def test_as_q_grows_the_step_shrinks_like_one_over_q():
    people = cohort([1, 2, 3], [1, 1, 1])
    steps = [float(coefficients(q_ffl(), people, q=q, L=1)[0].sum()) for q in (1e3, 1e4, 1e5)]
    np.testing.assert_allclose([steps[0] / steps[1], steps[1] / steps[2]], 10, rtol=0.02)


def test_the_update_is_scale_free():
    """F and |D|^2 both scaled by c leave every a_k as it was."""
    small = coefficients(q_ffl(), cohort([1, 2, 3], [1, 2, 3]), q=2, L=1)[0]
    large = coefficients(q_ffl(), cohort([1e9, 2e9, 3e9], [1e9, 2e9, 3e9]), q=2, L=1)[0]
    np.testing.assert_allclose(small, large, rtol=1e-5)


@pytest.mark.parametrize("q", [0.001, 0.1, 0.5])
@pytest.mark.parametrize("F", [0.0, 1e-12, 1e-7])
def test_a_solved_client_does_not_stall_the_others(q, F):
    """An absolute guard of 1e-10 freezes the federation; a relative one costs hundreds."""
    others, norms = [1.0, 1.5, 2.0], [0.05, 0.05, 0.05]
    without, _, _ = coefficients(q_ffl(), cohort(others, norms), q=q)
    having, _, info = coefficients(q_ffl(), cohort([F, *others], [1e-3, *norms]), q=q)
    assert info["capped"] == 1
    assert having[1:].sum() > without.sum() / 2


def test_the_cap_does_not_act_where_smoothness_already_holds():
    people = cohort([1e-9, 1.0], [1e-11, 0.1])
    a, _, info = coefficients(q_ffl(), people, q=0.1, L=10)
    assert info["capped"] == 0
    assert np.isfinite(a).all()


def test_a_solved_clients_own_weight_is_never_floored():
    """s_k is u_k at q = 0 and (F_k / max F)^q otherwise, with nothing added to F_k."""
    a, _, _ = coefficients(q_ffl(), cohort([1e-8, 1.0], [0, 0]), q=1)
    np.testing.assert_allclose(a[0] / a[1], 1e-8, rtol=1e-4)


@given(
    losses=st.lists(st.floats(0, 1e6, width=32), min_size=1, max_size=12),
    q=st.floats(0, 200, width=32),
    seed=st.integers(0, 1000),
)
@settings(max_examples=200, deadline=None)
def test_q_ffl_is_finite_positive_and_at_most_a_full_step(losses, q, seed):
    norms = np.random.default_rng(seed).gamma(1, 1, len(losses))
    a, _, _ = q_ffl().coefficients(
        {"q": jnp.float32(q), "L": jnp.float32(1)}, (), cohort(losses, norms)
    )
    assert np.isfinite(a).all()
    assert (a >= 0).all()
    assert a.sum() <= 1 + 1e-6


def test_weights_scale_a_clients_say():
    a, _, _ = coefficients(q_ffl(), cohort([1, 1], [0, 0], [1, 3]), q=1)
    np.testing.assert_allclose(a, [0.25, 0.75])
