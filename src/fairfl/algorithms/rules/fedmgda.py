"""FedMGDA+: a common descent direction of the clients (Hu et al., 2022)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from fairfl.algorithms.rules.quadratic import minimiser
from fairfl.algorithms.rules.rule import (
    Cohort,
    Hyper,
    Info,
    Needs,
    Parameter,
    Rule,
    State,
    present,
    required,
    shares,
    stateless,
)


def fedmgda() -> Rule:
    """The shortest mixture of the clients' directions, not far from their weights:

        d_k     = D_k / |D_k|
        lambda* = argmin |sum_k lambda_k d_k|^2   over the simplex, |lambda_k - p_k| <= eps
        a_k     = eta lambda*_k / |D_k|

    which is the paper's Algorithm 1. eps = 0 is FedAvg on normalised updates; eps = 1 leaves lambda
    free (MGDA), so that every client of the cohort descends, or the step is 0. A client that has
    nothing to send has the direction 0. Checked against the code of FedFV's and PropFair's authors.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules import Cohort, fedmgda
    >>> gram = jnp.array([[4.0, 0.0], [0.0, 1.0]])
    >>> cohort = Cohort(jnp.arange(2), jnp.ones(2), jnp.array([3.0, 1.0]), gram=gram)
    >>> hyper = {"eps": jnp.array(0.1), "eta": jnp.array(1.0)}
    >>> a = fedmgda().coefficients(hyper, (), cohort)[0]
    >>> [round(float(a_k), 4) for a_k in a]
    [0.325, 0.35]
    """
    return FEDMGDA


def _coefficients(
    hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " cohort"], State, Info]:
    gram, here, p = required(cohort.gram), present(cohort), shares(cohort)
    square = jnp.where(here, jnp.diag(gram), 0)
    moves = square > 0
    length = jnp.sqrt(jnp.where(moves, square, 1))
    both = moves[:, None] & moves[None, :]
    cosine = jnp.where(both, gram / length[:, None] / length[None, :], 0)
    eps = jnp.where(here, hyper["eps"], 0)
    least, most = jnp.maximum(p - eps, 0), jnp.minimum(p + eps, 1)
    mixture = minimiser(cosine, jnp.zeros_like(p), least, most)
    a = jnp.where(moves, hyper["eta"] * mixture / length, 0)
    shortest = jnp.sqrt(jnp.maximum(mixture @ jnp.where(both, cosine, 0) @ mixture, 0))
    return a, state, {"common_descent": shortest}


PARAMETERS = (Parameter("eps", most=1.0), Parameter("eta", above=True))
FEDMGDA = Rule("FedMGDA+", stateless, _coefficients, Needs(gram=True), PARAMETERS)
