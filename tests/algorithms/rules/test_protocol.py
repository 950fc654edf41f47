"""The check of a rule of one's own: it passes what is sound, and names what is not."""

import jax.numpy as jnp
import pytest

import fairfl
from cohorts import HYPER
from fairfl.algorithms.rules import Needs, Rule, losses, remember, required, shares, stateless

RULES = [
    fairfl.rules.mean(),
    fairfl.rules.q_ffl(),
    fairfl.rules.superquantile(),
    fairfl.rules.afl(),
    fairfl.rules.fedmgda(),
    fairfl.rules.fedfv(history=2),
    fairfl.rules.aaggff(),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_sound_rule_passes(rule):
    values = {parameter.name: HYPER[parameter.name] for parameter in rule.parameters}
    assert fairfl.rules.checked(rule, **values) is rule


def one_number(hyper, state, cohort):
    return jnp.sum(shares(cohort)), state, {}


def more_every_round(hyper, state, cohort):
    return shares(cohort), jnp.append(state, 0.0), {}


def by_place(hyper, state, cohort):
    p = shares(cohort)
    return p * jnp.cumsum(p > 0), state, {}


def sum_with_nan(hyper, state, cohort):
    F = required(cohort.losses)
    return F / jnp.sum(F), state, {}


def forgets_who_is_absent(hyper, state, cohort):
    return shares(cohort), state.at[cohort.ids].set(cohort.weights), {}


def remembers_well(hyper, state, cohort):
    return shares(cohort), remember(state, cohort, cohort.weights), {}


def divides_by_zero(hyper, state, cohort):
    F = losses(cohort)
    return F / jnp.sum(F), state, {}


def zeros(hyper, clients):
    return jnp.zeros(clients)


@pytest.mark.parametrize(
    ("coefficients", "init", "sentence"),
    [
        (one_number, stateless, "gives coefficients of shape"),
        (more_every_round, zeros, "changes the shapes or types of its state"),
        (sum_with_nan, stateless, "differently where a client is absent"),
        (forgets_who_is_absent, zeros, "differently where a client is absent"),
        (by_place, stateless, "by their place in the cohort"),
        (divides_by_zero, stateless, "is not finite where losses are"),
    ],
)
def test_a_broken_promise_is_named(coefficients, init, sentence):
    rule = Rule("mine", init, coefficients, Needs(losses=True))
    with pytest.raises(ValueError, match=sentence):
        fairfl.rules.checked(rule)


def test_a_memory_is_allowed():
    fairfl.rules.checked(Rule("mine", zeros, remembers_well))
