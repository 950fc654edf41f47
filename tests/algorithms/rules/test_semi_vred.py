"""Semi-VRed: the gradient of the mean plus beta times the semi-variance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cohorts import coefficients, counted, drawn
from fairfl.algorithms.rules import mean, semi_vred


@pytest.mark.parametrize("seed", range(5))
def test_semi_vred_without_a_penalty_is_fedavg_bit_for_bit(seed):
    people = drawn(seed)
    np.testing.assert_array_equal(
        coefficients(semi_vred(), people, beta=0)[0], coefficients(mean(), people)[0]
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("beta", [0.1, 1, 30])
def test_it_is_the_gradient_of_its_objective_in_the_losses(seed, beta):
    """d/dF of sum p F + beta sum p (F - mean)_+^2, where the mean moves with F too."""
    people = drawn(seed)
    p = people.weights / people.weights.sum()

    def objective(F):
        middle = jnp.sum(p * F)
        return middle + beta * jnp.sum(p * jnp.maximum(F - middle, 0) ** 2)

    wanted = jax.grad(objective)(people.losses)
    a = coefficients(semi_vred(), people, beta=beta)[0]
    np.testing.assert_allclose(a, wanted, rtol=1e-4, atol=1e-5)


def test_semi_vred_by_hand():
    """F = (1, 2, 6), p = 1/3: mean 3, e = (0, 0, 3), beta = .2: (1 - .4, 1 - .4, 1 + .8) / 3."""
    a = counted(semi_vred(), [1, 2, 6], beta=0.2)
    np.testing.assert_allclose(a, [0.2, 0.2, 0.6], rtol=1e-6)


def test_the_coefficients_always_add_up_to_one():
    for seed in range(10):
        a = coefficients(semi_vred(), drawn(seed), beta=5)[0]
        np.testing.assert_allclose(a.sum(), 1, rtol=1e-4)


def test_equal_losses_are_fedavg_whatever_the_penalty():
    np.testing.assert_allclose(counted(semi_vred(), [2, 2, 2], beta=1e3), 1 / 3, rtol=1e-5)


def test_as_beta_grows_the_direction_is_the_semi_variances_own():
    """The step grows with beta; divided by it, only those above average are pulled at."""
    a = counted(semi_vred(), [1, 2, 6], beta=1e6) / 1e6
    np.testing.assert_allclose(a, [-2 / 3, -2 / 3, 4 / 3], rtol=1e-4)
