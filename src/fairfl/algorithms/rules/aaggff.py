"""AAggFF: the server's weights as a sequence of decisions (Hahn, Kim and Lee, 2024)."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairfl.algorithms.rules.quadratic import minimiser
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
    recall,
    remember,
    shares,
)

RESPONSES: dict[str, Callable[[Array], Array]] = {
    "weibull": lambda x: -jnp.expm1(-(x**2)),
    "exponential": lambda x: -jnp.expm1(-x),
    "frechet": lambda x: jnp.where(x > 0, jnp.exp(-1 / jnp.where(x > 0, x, 1)), 0),
    "gumbel": lambda x: jnp.exp(-jnp.exp(1 - x)),
    "logistic": lambda x: jax.nn.sigmoid(x - 1),
    "normal": lambda x: jax.scipy.stats.norm.cdf(x - 1),
}
"""The distribution functions that turn F_k / mean F into a response between 0 and 1."""


@lru_cache
def aaggff(setting: str = "device", response: str = "weibull") -> Rule:
    """Clients count by what an online learner with the regret -log(1 + <a, r>) decides:

        r_k = CDF(F_k / mean F), for example 1 - exp(-x^2)

    "silo" hears all m clients every round and takes an online Newton step, by r / m:

        g_s = -r / (1 + <a_s, r>)
        a   = argmin eta sum_s (<g_s, x> + (m / 8) <g_s, x - a_s>^2) + 2 |x - p|^2  on the simplex

    "device" hears the share C, and follows the regularised leader, by C r:

        G_k <- G_k + (r_k - mean r) / (1 + C mean r)
        a_k = u_k exp(eta h G_k) / sum_j u_j exp(eta h G_j)
        h   = (log m / (t + 1))^(1/2) / (2 + C)   in round t = 1, 2, ...

    eta = 0 is the mean, eta = 1 the paper's rate. Its regulariser starts from equal weights; ours
    from p, which is the same where these are equal. As eta grows only the worst served count.

    Checked against the authors' code. G is its gradient without what all clients have in common,
    which moves no decision, and with the doubly robust estimate of the paper, of which the code
    drops the mean for the clients it heard. It also drops the a_s of the Newton step.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules import Cohort, aaggff
    >>> cohort = Cohort(jnp.arange(2), jnp.ones(2), jnp.ones(2), losses=jnp.array([1.0, 3.0]))
    >>> rule, hyper = aaggff(), {"eta": jnp.array(1.0)}
    >>> a, state, _ = rule.coefficients(hyper, rule.init(hyper, 2), cohort)
    >>> [round(float(a_k), 4) for a_k in a]
    [0.4788, 0.5212]
    """
    if setting not in SETTINGS:
        raise ValueError(f"setting={setting!r} is neither of {' and '.join(SETTINGS)}")
    if response not in RESPONSES:
        raise ValueError(f"there is no response {response!r}; choose one of {', '.join(RESPONSES)}")
    init, coefficients = SETTINGS[setting]
    answer = partial(coefficients, RESPONSES[response])
    return Rule(f"AAggFF ({setting})", init, answer, Needs(losses=True), (Parameter("eta"),))


def _response(cdf: Callable[[Array], Array], cohort: Cohort) -> Float[Array, " cohort"]:
    """CDF(F_k / mean F), 0 for who is absent."""
    F, here = losses(cohort), present(cohort)
    worst = jnp.max(F)
    scaled = F / jnp.where(worst > 0, worst, 1)
    mean = _mean(scaled, cohort)
    return jnp.where(here, cdf(jnp.where(mean > 0, scaled / jnp.where(mean > 0, mean, 1), 1)), 0)


def _mean(values: Float[Array, " cohort"], cohort: Cohort) -> Float[Array, ""]:
    return jnp.sum(values) / jnp.maximum(jnp.sum(present(cohort)), 1)


# Device: the entropic regulariser, whose leader is known in closed form. --------------------------


class Gained(NamedTuple):
    """What speaks for each client so far, and the rounds that were decided."""

    gain: Float[Array, " clients"]
    rounds: Int[Array, ""]


def _nothing_gained(hyper: Hyper, clients: int) -> Gained:
    del hyper
    return Gained(jnp.zeros(clients), jnp.zeros((), jnp.int32))


def _leader(
    cdf: Callable[[Array], Array], hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " cohort"], State, Info]:
    here, r, clients = present(cohort), _response(cdf, cohort), len(state.gain)
    heard = jnp.sum(here) / clients
    mean = _mean(r, cohort)
    gain = recall(state.gain, cohort) + (r - mean) / (1 + heard * mean)
    rounds = state.rounds + 1
    rate = jnp.sqrt(jnp.log(clients) / (rounds + 1)) / (2 + heard)
    most = jnp.max(jnp.where(here, gain, -jnp.inf))
    # The exponent is 0 at eta = 0, and never above it.
    favoured = cohort.weights * jnp.exp(hyper["eta"] * rate * jnp.where(here, gain - most, 0))
    return divide(favoured, favoured), Gained(remember(state.gain, cohort, gain), rounds), {}


# Silo: the quadratic regulariser, an online Newton step. ------------------------------------------


class Decided(NamedTuple):
    """The sum over rounds as <linear, x> + (m / 8) x.square x, and the last decision."""

    linear: Float[Array, " clients"]
    square: Float[Array, "clients clients"]
    decision: Float[Array, " clients"]


def _nothing_decided(hyper: Hyper, clients: int) -> Decided:
    del hyper
    return Decided(jnp.zeros(clients), jnp.zeros((clients, clients)), jnp.zeros(clients))


def _newton_step(
    cdf: Callable[[Array], Array], hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " cohort"], State, Info]:
    here, p, clients = present(cohort), shares(cohort), len(state.decision)
    last = _last_decision(state, cohort)
    r = _response(cdf, cohort) / clients
    g = -r / (1 + jnp.sum(last * r))
    curvature = clients / 4
    linear = recall(state.linear, cohort) + g * (1 - curvature * jnp.sum(g * last))
    both = here[:, None] & here[None, :]
    square = jnp.asarray(state.square)[cohort.ids][:, cohort.ids] + g[:, None] * g[None, :]
    H = jnp.where(both, hyper["eta"] * curvature * square, 0) + RIDGE * jnp.eye(len(p))
    c = jnp.where(here, hyper["eta"] * linear, 0) - RIDGE * p
    a = minimiser(H, c, jnp.zeros_like(p), jnp.where(here, 1, jnp.zeros_like(p)))
    place = jnp.where(here, cohort.ids, clients)
    whole = jnp.asarray(state.square).at[place[:, None], place[None, :]].set(square, mode="drop")
    decided = remember(state.decision, cohort, a)
    return a, Decided(remember(state.linear, cohort, linear), whole, decided), {}


def _last_decision(state: Decided, cohort: Cohort) -> Float[Array, " cohort"]:
    """What was decided of those who are here, p where nothing was."""
    mass = jnp.where(present(cohort), recall(state.decision, cohort), 0)
    decided = jnp.sum(mass) > 0
    return jnp.where(decided, mass / jnp.where(decided, jnp.sum(mass), 1), shares(cohort))


RIDGE = 4.0
"""The paper's alpha = 4 K L, where L = 1 / K bounds the gradient."""

SETTINGS = {"device": (_nothing_gained, _leader), "silo": (_nothing_decided, _newton_step)}
