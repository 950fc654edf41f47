"""TERM: tilted empirical risk minimisation (Li, Beirami, Sanjabi and Smith, 2021)."""

import math

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
    losses,
    present,
    stateless,
)


def term() -> Rule:
    """The gradient of the tilted risk (1/t) log sum_k p_k exp(t F_k), its Lemma 1:

        a_k = u_k exp(t F_k) / sum_j u_j exp(t F_j)

    t = 0 is the mean, bit for bit; t -> inf is the worst client alone, t -> -inf the best. Checked
    against the authors' code, which divides by a running mean of sum_j u_j exp(t F_j), whose
    largest loss changes from round to round, and by K twice.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules import Cohort, term
    >>> cohort = Cohort(jnp.arange(2), jnp.ones(2), jnp.ones(2), losses=jnp.array([0.0, 1.0]))
    >>> term().coefficients({"t": jnp.log(3.0)}, (), cohort)[0].round(4).tolist()
    [0.25, 0.75]
    """
    return TERM


def _coefficients(
    hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " cohort"], State, Info]:
    t, F, here = hyper["t"], losses(cohort), present(cohort)
    # The extreme that t favours, so that no exponent is above 0.
    worst = jnp.max(jnp.where(here, F, -jnp.inf))
    best = jnp.min(jnp.where(here, F, jnp.inf))
    favoured = jnp.where(t < 0, best, worst)
    tilted = cohort.weights * jnp.exp(t * jnp.where(here, F - favoured, 0))
    return divide(tilted, tilted), state, {}


TILT = Parameter("t", least=-math.inf)
TERM = Rule("TERM", stateless, _coefficients, Needs(losses=True), (TILT,))
