"""The contract of a rule: how much each client's update counts, from losses and inner products.

A rule never sees the model. It is a pure function of one experiment's cohort, so the same object
runs in the compiled simulator, under vmap in a sweep, and on a server.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num

Hyper = Mapping[str, Float[Array, ""]]
State = Any
Info = Mapping[str, Array]


class Needs(NamedTuple):
    """What a rule reads beyond weights, sizes and ids; the engine computes no more.

    losses    F_k(w^t), which then must be non-negative
    norms     |D_k|^2
    gram      <D_i, D_j>
    history   the updates of so many past rounds are appended to the Gram matrix and coefficients
    """

    losses: bool = False
    norms: bool = False
    gram: bool = False
    history: int = 0


class Parameter(NamedTuple):
    """A numeric hyper-parameter and the range it may have, both ends included.

    `above` leaves out the lower end. Values are checked where an algorithm is made.
    """

    name: str
    least: float = 0.0
    most: float = math.inf
    above: bool = False


class Cohort(NamedTuple):
    """One round's clients as a rule sees them; a client with weight 0 is absent.

    `past_ids` and `past_ages` describe the rows that `history` appended (age 1 is last round);
    an empty place has id -1.
    """

    ids: Int[Array, " cohort"]
    sizes: Float[Array, " cohort"]
    weights: Float[Array, " cohort"]
    losses: Float[Array, " cohort"] | None = None
    norms: Float[Array, " cohort"] | None = None
    gram: Float[Array, "updates updates"] | None = None
    past_ids: Int[Array, " past"] | None = None
    past_ages: Int[Array, " past"] | None = None


class Rule(NamedTuple):
    """init(hyper, clients) -> state; coefficients(hyper, state, cohort) -> a, state', info.

    `parameters` are the numbers that it reads from `hyper`, beside those of the work.
    """

    name: str
    init: Callable[[Hyper, int], State]
    coefficients: Callable[[Hyper, State, Cohort], tuple[Float[Array, " updates"], State, Info]]
    needs: Needs = Needs()
    parameters: tuple[Parameter, ...] = ()


def stateless(hyper: Hyper, clients: int) -> State:
    """The state of a rule that remembers nothing."""
    del hyper, clients
    return ()


def present(cohort: Cohort) -> Bool[Array, " cohort"]:
    return cohort.weights > 0


def required(quantity: Array | None) -> Array:
    """A quantity that the rule declared it needs."""
    if quantity is None:
        raise ValueError("a rule read a quantity that its `needs` does not declare; declare it")
    return quantity


def losses(cohort: Cohort) -> Float[Array, " cohort"]:
    """F_k, and 0 where a client is absent."""
    return jnp.where(present(cohort), required(cohort.losses), 0)


def shares(cohort: Cohort) -> Float[Array, " cohort"]:
    """p_k over the cohort: u_k / sum_j u_j."""
    return divide(cohort.weights, cohort.weights)


def below_worst(cohort: Cohort) -> Float[Array, " cohort"]:
    """F_k - max_j F_j, so that what is exponentiated or projected never overflows."""
    F = losses(cohort)
    worst = jnp.max(jnp.where(present(cohort), F, -jnp.inf))
    return jnp.where(present(cohort), F - worst, 0)


def recall(state: Num[Array, " clients"], cohort: Cohort) -> Num[Array, " cohort"]:
    """What a state with one entry per client of the population holds for this cohort."""
    return jnp.asarray(state)[cohort.ids]


def remember(
    state: Num[Array, " clients"], cohort: Cohort, values: Num[Array, " cohort"]
) -> Num[Array, " clients"]:
    """The state with the cohort's new entries; an absent client's entry stays."""
    nowhere = len(state)
    place = jnp.where(present(cohort), cohort.ids, nowhere)
    return jnp.asarray(state).at[place].set(values, mode="drop")


def divide(weight: Float[Array, " cohort"], share: Float[Array, " cohort"]) -> Array:
    """a_k = weight_k / sum_j share_j: the one path that the mean and q-FFL take to their result."""
    return weight / jnp.sum(share)
