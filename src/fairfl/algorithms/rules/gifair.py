"""GIFAIR-FL: a penalty on the spread of the losses (Yue, Nouiehed and Al Kontar, 2021)."""

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
    present,
    shares,
    stateless,
)


def gifair() -> Rule:
    """The gradient of sum_k p_k F_k + lambda sum_(i<j) |F_i - F_j|, every client its own group:

        r_k = sum_j sign(F_k - F_j)                  from -(K - 1) to K - 1
        a_k = p_k + lambda r_k,    lambda = c min_j p_j / (K - 1)

    lambda is given as the share c of the largest that leaves no coefficient negative. c = 0 is the
    mean, bit for bit; at c = 1, with equal p_k, the best client counts 0 and the worst 2 / K.
    Checked against PropFair's code, which ranks equal losses by their place.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules import Cohort, gifair
    >>> F = jnp.array([0.5, 3.0])
    >>> cohort = Cohort(jnp.arange(2), jnp.ones(2), jnp.ones(2), losses=F)
    >>> gifair().coefficients({"c": jnp.array(0.5)}, (), cohort)[0].tolist()
    [0.25, 0.75]
    """
    return GIFAIR


def _coefficients(
    hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " cohort"], State, Info]:
    F, p, here = losses(cohort), shares(cohort), present(cohort)
    rank = jnp.sum(jnp.where(here, jnp.sign(F[:, None] - F[None, :]), 0), axis=1)
    rivals = jnp.maximum(jnp.sum(here) - 1, 1)
    penalty = hyper["c"] * jnp.min(jnp.where(here, p, jnp.inf)) / rivals
    return jnp.where(here, p + penalty * rank, 0), state, {}


PENALTY = Parameter("c", most=1.0)
GIFAIR = Rule("GIFAIR", stateless, _coefficients, Needs(losses=True), (PENALTY,))
