"""Superquantile: the mean over the worst tail of the clients (Delta-FL; Laguel et al., 2021)."""

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


def superquantile() -> Rule:
    """The gradient of the superquantile, the mean loss of the worst theta of the cohort:

        a = argmax sum_k a_k F_k   with   0 <= a_k <= p_k / theta,   sum_k a_k = 1

    Clients above the (1 - theta)-quantile of F get p_k / theta, clients at it share what is left.
    theta = 1 is the mean, bit for bit; theta -> 0 is the worst client alone. Checked against the
    authors' code, which takes a client at the quantile whole, so that its tail is longer.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules import Cohort, superquantile
    >>> F = jnp.array([4.0, 1.0, 3.0, 2.0])
    >>> cohort = Cohort(jnp.arange(4), jnp.ones(4), jnp.ones(4), losses=F)
    >>> a, _, _ = superquantile().coefficients({"theta": jnp.array(0.375)}, (), cohort)
    >>> [round(float(a_k), 4) for a_k in a]
    [0.6667, 0.0, 0.3333, 0.0]
    """
    return SUPERQUANTILE


def _coefficients(
    hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " cohort"], State, Info]:
    theta, F, p = hyper["theta"], losses(cohort), shares(cohort)
    above = jnp.sum(jnp.where(F[None, :] > F[:, None], p, 0), axis=1)
    equal = jnp.sum(jnp.where(F[None, :] == F[:, None], p, 0), axis=1)
    # Equal losses fill the tail together, in proportion to p, so that no order decides.
    inside = jnp.clip((theta - above) / jnp.where(present(cohort), equal, 1), 0, 1)
    whole = jnp.where(theta >= 1, 1, inside)
    return p * whole / theta, state, {}


TAIL = Parameter("theta", above=True, most=1.0)
SUPERQUANTILE = Rule("superquantile", stateless, _coefficients, Needs(losses=True), (TAIL,))
