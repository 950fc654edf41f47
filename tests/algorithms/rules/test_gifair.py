"""GIFAIR: ranks, the largest penalty, and FedAvg without one."""

import numpy as np
import pytest

from cohorts import coefficients, counted, drawn
from fairfl.algorithms.rules import gifair, mean


@pytest.mark.parametrize("seed", range(5))
def test_gifair_without_a_penalty_is_fedavg_bit_for_bit(seed):
    people = drawn(seed)
    np.testing.assert_array_equal(
        coefficients(gifair(), people, c=0)[0], coefficients(mean(), people)[0]
    )


def test_gifair_by_hand():
    """Ranks of F = (3, 1, 2) are (2, -2, 0); p = (1/2, 1/4, 1/4), lambda = c / 4 / 2."""
    a = counted(gifair(), [3, 1, 2], [2, 1, 1], c=0.8)
    np.testing.assert_allclose(a, [0.5 + 0.2, 0.25 - 0.2, 0.25], rtol=1e-6)


def test_the_largest_penalty_leaves_the_best_client_nothing():
    a = counted(gifair(), [1, 2, 3, 4, 5], c=1)
    np.testing.assert_allclose(a, [0, 0.1, 0.2, 0.3, 0.4], atol=1e-7)


def test_clients_with_equal_losses_have_equal_ranks():
    """A sort gives them different ones, by their place in the cohort."""
    a = counted(gifair(), [2, 2, 2, 5], c=1)
    np.testing.assert_allclose(a[:3], a[0])
    assert counted(gifair(), [3, 3, 3], c=1) == pytest.approx(1 / 3)


@pytest.mark.parametrize("c", [0, 0.3, 1])
def test_no_client_counts_less_than_nothing_and_all_together_one(c):
    """Beyond c = 1 the penalty pushes the best client's loss up, which the paper rules out."""
    for seed in range(20):
        a = coefficients(gifair(), drawn(seed), c=c)[0]
        assert (a >= -1e-7).all()
        np.testing.assert_allclose(a.sum(), 1, rtol=1e-5)
