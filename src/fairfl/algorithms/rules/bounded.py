"""Bounded losses: a client that reports a larger loss than it has buys no more weight with it."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fairfl.algorithms.rules.rule import (
    Cohort,
    Hyper,
    Info,
    Parameter,
    Rule,
    State,
    losses,
    present,
    recall,
    remember,
)

NORMAL = 1.4826
"""The deviation of normal numbers over their median absolute deviation."""

LEAST_DEVIATION = 0.1
"""Of the median: a cohort whose losses agree more closely than this is given this spread."""


class BoundedState(NamedTuple):
    """The inner rule's state; each client's last accepted loss, 0 before its first; and in how many
    rounds its loss was clipped."""

    inner: State
    accepted: Float[Array, " clients"]
    clipped: Int[Array, " clients"]


def bounded(rule: Rule) -> Rule:
    """The same rule on losses that are clipped before it reads them:

        F_k <- min(F_k, m + spread * d, max(m, growth * F_k'))

    m is the cohort's median loss, d its robust deviation (1.4826 times the median absolute
    deviation, and at least m / 10), and F_k' what was accepted of the client the last time it took
    part. A loss up to the median is never touched. q-FFL weighs by F^q, so one inflated loss would
    own the round; clipped, it counts as much as a badly served client of this cohort could.

    It costs a truly badly served client weight too, once its loss lies outside the spread: with
    spread and growth both large the rule is the inner one, bit for bit.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules import Cohort, bounded, q_ffl
    >>> rule = bounded(q_ffl())
    >>> cohort = Cohort(
    ...     ids=jnp.arange(3), sizes=jnp.ones(3), weights=jnp.ones(3),
    ...     losses=jnp.array([1.0, 1.0, 1e30]), norms=jnp.ones(3),
    ... )
    >>> hyper = {name: jnp.array(v) for name, v in {"q": 5.0, "L": 1.0}.items()}
    >>> hyper |= {"spread": jnp.array(3.0), "growth": jnp.array(2.0)}
    >>> a, state, info = rule.coefficients(hyper, rule.init(hyper, 3), cohort)
    >>> round(float(state.accepted[2]), 2), state.clipped.tolist(), info["clipped"].item()
    (1.3, [0, 0, 1], 1)
    """

    def init(hyper: Hyper, clients: int) -> BoundedState:
        unseen = jnp.zeros(clients)
        return BoundedState(rule.init(hyper, clients), unseen, jnp.zeros(clients, jnp.int32))

    def coefficients(
        hyper: Hyper, state: BoundedState, cohort: Cohort
    ) -> tuple[Float[Array, " updates"], BoundedState, Info]:
        F, exceeds = _clipped(hyper, state.accepted, cohort)
        a, inner, info = rule.coefficients(hyper, state.inner, cohort._replace(losses=F))
        counts = remember(state.clipped, cohort, recall(state.clipped, cohort) + exceeds)
        after = BoundedState(inner, remember(state.accepted, cohort, F), counts)
        return a, after, {**info, "clipped": jnp.sum(exceeds)}

    return Rule(
        f"bounded {rule.name}",
        init,
        coefficients,
        rule.needs._replace(losses=True),
        (*rule.parameters, SPREAD, GROWTH),
    )


def _clipped(
    hyper: Hyper, accepted: Float[Array, " clients"], cohort: Cohort
) -> tuple[Float[Array, " cohort"], Bool[Array, " cohort"]]:
    """The losses within their bounds, and where a bound acted."""
    F, here = losses(cohort), present(cohort)
    middle = _median(F, here)
    deviation = jnp.maximum(NORMAL * _median(jnp.abs(F - middle), here), LEAST_DEVIATION * middle)
    before = recall(accepted, cohort)
    own = jnp.where(before > 0, jnp.maximum(middle, hyper["growth"] * before), jnp.inf)
    most = jnp.minimum(middle + hyper["spread"] * deviation, own)
    return jnp.minimum(F, most), here & (most < F)


def _median(values: Float[Array, " cohort"], here: Bool[Array, " cohort"]) -> Float[Array, ""]:
    """The median over those who are present; 0 when nobody is."""
    return jnp.where(here.any(), jnp.nanmedian(jnp.where(here, values, jnp.nan)), 0)


SPREAD = Parameter("spread")
GROWTH = Parameter("growth", least=1.0)
