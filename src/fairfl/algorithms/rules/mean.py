"""The weighted mean of FedSGD and FedAvg."""

from jaxtyping import Array, Float

from fairfl.algorithms.rules.rule import Cohort, Hyper, Info, Rule, State, divide, stateless


def mean() -> Rule:
    """a_k = u_k / sum_j u_j (McMahan et al., 2017; the paper's Algorithm FedAvg).

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules import Cohort, mean
    >>> cohort = Cohort(jnp.arange(3), jnp.ones(3), weights=jnp.array([1.0, 3.0, 0.0]))
    >>> mean().coefficients({}, (), cohort)[0].tolist()
    [0.25, 0.75, 0.0]
    """
    return MEAN


def _coefficients(
    hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " cohort"], State, Info]:
    del hyper
    return divide(cohort.weights, cohort.weights), state, {}


MEAN = Rule("mean", stateless, _coefficients)
