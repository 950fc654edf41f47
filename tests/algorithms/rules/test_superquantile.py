"""The superquantile: exactly the worst theta of the weight counts, no more and no less."""

import numpy as np
import pytest
from scipy.optimize import linprog

from cohorts import coefficients, counted, drawn
from fairfl.algorithms.rules import mean, superquantile


@pytest.mark.parametrize("seed", range(5))
def test_the_whole_tail_is_fedavg_bit_for_bit(seed):
    people = drawn(seed)
    np.testing.assert_array_equal(
        coefficients(superquantile(), people, theta=1)[0], coefficients(mean(), people)[0]
    )


@pytest.mark.parametrize("theta", [0.2, 1e-3, 1e-30])
def test_a_short_tail_is_the_worst_client(theta):
    np.testing.assert_allclose(counted(superquantile(), [1, 3, 2], theta=theta), [0, 1, 0])


def test_the_client_at_the_quantile_counts_in_part():
    """The reference takes it whole, so that its tail is longer than theta.

    theta = 3/8 of four equal clients is one and a half of them: 2/3 and 1/3.
    """
    a = counted(superquantile(), [4, 1, 3, 2], theta=0.375)
    np.testing.assert_allclose(a, [2 / 3, 0, 1 / 3, 0], rtol=1e-6)


def test_equal_losses_share_the_tail_in_proportion_to_their_weight():
    a = counted(superquantile(), [2, 2, 1], [1, 3, 4], theta=0.25)
    np.testing.assert_allclose(a, [0.25, 0.75, 0], rtol=1e-6)


@pytest.mark.parametrize("theta", [0.05, 0.3, 0.77, 1])
@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_worst_mixture_with_no_weight_above_p_over_theta(seed, theta):
    """Against scipy's linear programme: max a.F with 0 <= a <= p / theta and sum a = 1."""
    people = drawn(seed)
    a = np.asarray(coefficients(superquantile(), people, theta=theta)[0], float)
    F, u = np.asarray(people.losses, float), np.asarray(people.weights, float)
    bounds = [(0, p / theta) for p in u / u.sum()]
    best = linprog(-F, A_eq=np.ones((1, len(F))), b_eq=[1], bounds=bounds).x
    np.testing.assert_allclose(a, best, atol=1e-5)
