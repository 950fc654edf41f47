"""Semi-VRed: a penalty on the losses above average (Malekmohammadi and Yu, 2024)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from fairfl.algorithms.rules.rule import (
    Cohort,
    Hyper,
    Info,
    Needs,
    Parameter,
    Rule,
    State,
    losses,
    shares,
    stateless,
)


def semi_vred() -> Rule:
    """The gradient of sum_k p_k F_k + beta sum_k p_k (F_k - mean)_+^2, mean = sum_k p_k F_k:

        e_k = (F_k - mean)_+
        a_k = p_k (1 + 2 beta (e_k - sum_j p_j e_j))

    The coefficients add up to 1. beta = 0 is the mean, bit for bit. As beta grows the direction
    tends to sum_k p_k (e_k - sum_j p_j e_j) D_k, away from the clients that are served well: their
    coefficients are negative once 2 beta sum_j p_j e_j > 1, and the step grows with beta. The
    authors published no code; it is the gradient of their objective, which the tests differentiate.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules import Cohort, semi_vred
    >>> F = jnp.array([1.0, 3.0])
    >>> cohort = Cohort(jnp.arange(2), jnp.ones(2), jnp.ones(2), losses=F)
    >>> semi_vred().coefficients({"beta": jnp.array(0.5)}, (), cohort)[0].tolist()
    [0.25, 0.75]
    """
    return SEMI_VRED


def _coefficients(
    hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " cohort"], State, Info]:
    F, p = losses(cohort), shares(cohort)
    excess = jnp.maximum(F - jnp.sum(p * F), 0)
    return p * (1 + 2 * hyper["beta"] * (excess - jnp.sum(p * excess))), state, {}


RISK = Parameter("beta")
SEMI_VRED = Rule("Semi-VRed", stateless, _coefficients, Needs(losses=True), (RISK,))
