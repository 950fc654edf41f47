"""AFL: agnostic federated learning, the worst mixture of the clients (Mohri et al., 2019)."""

import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Float

from fairfl.algorithms.rules.rule import (
    Cohort,
    Hyper,
    Info,
    Needs,
    Parameter,
    Rule,
    State,
    below_worst,
    divide,
    present,
    recall,
    remember,
)
from fairfl.algorithms.rules.simplex import on_simplex


def afl(ascent: str = "projected") -> Rule:
    """min_w max_lambda sum_k lambda_k F_k, lambda in the simplex: the paper's Algorithm 1.

        a_k     = lambda_k
        lambda' = projection of lambda + gamma F on the simplex         "projected"
        lambda' = lambda exp(gamma F) / sum_j lambda_j exp(gamma F_j)   "exponentiated"

    lambda starts at p, so gamma = 0 is FedSGD; gamma -> inf steps to the last round's worst client.
    The state is lambda_k / p_k, its logarithm if exponentiated. A cohort that is not everyone holds
    sum_cohort lambda_k of the mass, keeps it, and steps along the mean weighed by lambda. Checked
    against the code of q-FFL's and PropFair's authors; the latter step by lambda', not by lambda.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules import Cohort, afl
    >>> F = jnp.array([1.0, 2.0])
    >>> cohort = Cohort(jnp.arange(2), jnp.ones(2), jnp.ones(2), losses=F)
    >>> rule, hyper = afl(), {"gamma": jnp.array(0.5)}
    >>> a, state, _ = rule.coefficients(hyper, rule.init(hyper, 2), cohort)
    >>> a.tolist(), rule.coefficients(hyper, state, cohort)[0].tolist()
    ([0.5, 0.5], [0.25, 0.75])
    """
    if ascent not in RULES:
        raise ValueError(f"ascent={ascent!r} is neither of {' and '.join(RULES)}")
    return RULES[ascent]


def _ones(hyper: Hyper, clients: int) -> State:
    del hyper
    return jnp.ones(clients, jnp.result_type(float))


def _projected(
    hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " cohort"], State, Info]:
    here = present(cohort)
    mass = jnp.where(here, recall(state, cohort) * cohort.weights, 0)
    total = jnp.sum(mass)
    a = divide(mass, jnp.where(total > 0, mass, 1))
    ascended = on_simplex(a + hyper["gamma"] * below_worst(cohort), here)
    ratio = ascended * total / jnp.where(here, cohort.weights, 1)
    return a, remember(state, cohort, ratio), {}


def _zeros(hyper: Hyper, clients: int) -> State:
    del hyper
    return jnp.zeros(clients, jnp.result_type(float))


def _exponentiated(
    hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " cohort"], State, Info]:
    here = present(cohort)
    ratio = recall(state, cohort)
    top = jnp.max(jnp.where(here, ratio, -jnp.inf))
    mass = jnp.where(here, cohort.weights * jnp.exp(ratio - top), 0)
    before = ratio + jnp.log(jnp.where(here, cohort.weights, 1))
    ascent = jnp.maximum(hyper["gamma"] * below_worst(cohort), LOWEST)
    gained = logsumexp(before + ascent, where=here) - logsumexp(before, where=here)
    return divide(mass, mass), remember(state, cohort, ratio + ascent - gained), {}


LOWEST = -1e30
"""What one ascent may take off log lambda: nobody's lambda becomes 0 for good."""

NEEDS, STEP = Needs(losses=True), (Parameter("gamma"),)
RULES = {
    "projected": Rule("AFL", _ones, _projected, NEEDS, STEP),
    "exponentiated": Rule("AFL (exponentiated)", _zeros, _exponentiated, NEEDS, STEP),
}
