"""Gradient descent on the q-objective with one fixed step, the baseline that q-FedSGD replaces."""

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
    divide,
    present,
    required,
    stateless,
)


def fixed_step() -> Rule:
    """a_k = u_k F_k^q / sum_j u_j: the gradient of sum_k u_k F_k^(q+1) / (q+1), unscaled.

    The step grows like F^q, so the learning rate must be tuned anew for every q.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules import Cohort, fixed_step
    >>> cohort = Cohort(jnp.arange(2), jnp.ones(2), jnp.ones(2), losses=jnp.array([1.0, 3.0]))
    >>> fixed_step().coefficients({"q": jnp.array(2.0)}, (), cohort)[0].round(4).tolist()
    [0.5, 4.5]
    """
    return FIXED_STEP


def _coefficients(
    hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " cohort"], State, Info]:
    q, here = hyper["q"], present(cohort)
    log_F = jnp.log(jnp.where(here, required(cohort.losses), 1))
    power = jnp.exp(jnp.where(q == 0, 0, q * log_F))
    return divide(cohort.weights, cohort.weights) * power, state, {}


FIXED_STEP = Rule("fixed step", stateless, _coefficients, Needs(losses=True), (Parameter("q"),))
