"""Bounded losses: what is clipped, by how much, and what is left alone."""

import jax
import numpy as np
import pytest

import fairfl
from cohorts import CLIENTS, cohort, drawn, hyper_of
from fairfl.algorithms.rules import bounded, mean, q_ffl

RULE = bounded(q_ffl())


def rounds(rule, *cohorts, **changed):
    """Coefficients, state and info after each round."""
    hyper, found = hyper_of(**changed), []
    state = rule.init(hyper, CLIENTS)
    for people in cohorts:
        a, state, info = jax.jit(rule.coefficients)(hyper, state, people)
        found.append((np.asarray(a), state, info))
    return found


def test_wide_bounds_are_the_inner_rule_bit_for_bit():
    people = drawn(3)
    a, state, info = rounds(RULE, people, spread=1e30, growth=1e30)[0]
    hyper = hyper_of()
    plain = jax.jit(q_ffl().coefficients)(hyper, (), people)[0]
    np.testing.assert_array_equal(a, plain)
    assert info["clipped"] == 0
    assert not state.clipped.any()


def test_a_loss_outside_the_cohorts_spread_is_clipped_to_its_edge():
    """Median 3, deviation 1.4826: three of them end at 7.4478."""
    _, state, info = rounds(RULE, cohort([1, 2, 3, 4, 100]), spread=3)[0]
    np.testing.assert_allclose(state.accepted[:5], [1, 2, 3, 4, 3 + 3 * 1.4826], rtol=1e-6)
    assert state.clipped[:5].tolist() == [0, 0, 0, 0, 1]
    assert info["clipped"] == 1


def test_a_cohort_of_equal_losses_still_has_a_spread():
    _, state, _ = rounds(RULE, cohort([2, 2, 2, 2, 2.3]), spread=3)[0]
    np.testing.assert_allclose(state.accepted[4], 2.3)


def test_a_loss_cannot_grow_faster_than_its_own_history_allows():
    honest, later = cohort([1, 2, 3, 4, 4]), cohort([1, 2, 3, 4, 11])
    _, state, _ = rounds(RULE, honest, later, spread=100, growth=2)[1]
    assert state.accepted[4] == 8
    assert state.clipped[4] == 1


def test_a_loss_up_to_the_median_is_never_touched():
    """However small it was before: it buys no weight."""
    before, after = cohort([1e-6, 2, 3, 4, 5]), cohort([3, 2, 3, 4, 5])
    _, state, _ = rounds(RULE, before, after, growth=1)[1]
    assert state.accepted[0] == 3
    assert not state.clipped.any()


@pytest.mark.parametrize("q", [1.0, 5.0])
def test_a_liar_owns_the_round_unless_losses_are_bounded(q):
    losses, norms = [1, 1.1, 0.9, 1, 100], [0.1] * 5
    hyper = hyper_of(q=q)
    plain = jax.jit(q_ffl().coefficients)(hyper, (), cohort(losses, norms))[0]
    a = rounds(RULE, cohort(losses, norms), q=q, spread=3)[0][0]
    assert plain[4] / plain.sum() > 0.95
    # As if it had lost what the cohort's spread allows: the median is 1, its deviation .14826.
    most = 1 + 3 * 0.14826
    edge = jax.jit(q_ffl().coefficients)(hyper, (), cohort([*losses[:4], most], norms))[0]
    np.testing.assert_allclose(a, edge, rtol=1e-5)


def test_a_rule_that_reads_no_losses_is_given_what_it_reads_alone():
    rule = bounded(mean())
    assert rule.needs.losses
    assert not rule.needs.norms
    a = rounds(rule, cohort([1, 2, 300]))[0][0]
    np.testing.assert_allclose(a, 1 / 3, rtol=1e-6)


def test_a_bounded_rule_trains_and_sweeps_its_bounds():
    data = fairfl.datasets.load("synthetic", clients=20)
    model = fairfl.models.softmax_regression(data)
    family = fairfl.with_rule(RULE, q=5, L=10, spread=[0.01, 1e9], growth=1e9)
    result = fairfl.train(data, model, family, rounds=20, cohort=10)
    clipped = result.history["clipped"].reshape(2, 20)
    assert clipped[0].sum() > 0
    assert clipped[1].sum() == 0
    assert np.isfinite(result.fairness("test")["average"]).all()
