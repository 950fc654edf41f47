"""The fixed step: the q-objective's gradient as it is."""

import numpy as np

from cohorts import coefficients, cohort
from fairfl.algorithms.rules import fixed_step, mean


def test_the_fixed_step_is_the_gradient_of_the_q_objective():
    """a_k = u_k F_k^q / sum u: F = (1, 3), q = 2, u = (1, 3) gives (.25, 6.75)."""
    a, _, _ = coefficients(fixed_step(), cohort([1, 3], [0, 0], [1, 3]), q=2)
    np.testing.assert_allclose(a, [0.25, 6.75], rtol=1e-5)


def test_the_fixed_step_at_q_zero_is_the_mean_also_at_zero_loss():
    people = cohort([0, 1], [1, 1])
    np.testing.assert_array_equal(
        coefficients(fixed_step(), people, q=0)[0], coefficients(mean(), people)[0]
    )


def test_the_fixed_step_overflows_audibly():
    a, _, _ = coefficients(fixed_step(), cohort([1e3, 1], [0, 0]), q=100)
    assert np.isinf(a[0])
