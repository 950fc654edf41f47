"""FedFV: conflicts projected away, absent clients spared, and FedAvg where there is no conflict."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fairfl
from cohorts import CLIENTS, coefficients, cohort, drawn, hyper_of
from fairfl.algorithms.rules import fedfv, mean


def of_updates(D, losses, past=(), ids=None, past_ids=(), past_ages=(), weights=None):
    everything = np.asarray([*D, *past], np.float32)
    people = cohort(losses, ids=ids, weights=weights)
    return people._replace(
        gram=jnp.asarray(everything @ everything.T),
        past_ids=jnp.asarray(past_ids, jnp.int32) if len(past) else None,
        past_ages=jnp.asarray(past_ages, jnp.int32) if len(past) else None,
    )


def stepped(rule, people, rounds=0, **changed):
    """The coefficients after so many rounds."""
    state = rule.init(hyper_of(), CLIENTS) + rounds
    return np.asarray(jax.jit(rule.coefficients)(hyper_of(**changed), state, people)[0])


@pytest.mark.parametrize("seed", range(5))
def test_fedfv_that_keeps_everybody_and_remembers_nobody_is_fedavg_bit_for_bit(seed):
    people = drawn(seed)
    a, _, info = coefficients(fedfv(history=0), people, alpha=1, tau=0)
    np.testing.assert_array_equal(a, coefficients(mean(), people)[0])
    assert info["conflicts"] == 0


@pytest.mark.parametrize("alpha", [0, 0.3])
def test_fedfv_without_conflicts_is_fedavg_bit_for_bit(alpha):
    D = np.abs(np.random.default_rng(0).normal(size=(6, 16)))
    people = of_updates(D, np.arange(6.0), weights=np.arange(1, 7))
    a = coefficients(fedfv(history=0), people, alpha=alpha, tau=0)[0]
    np.testing.assert_array_equal(a, coefficients(mean(), people)[0])


def test_fedfv_at_its_neutral_settings_trains_as_fedavg_bit_for_bit(data, model):
    """The reference has none: even there it projects on the updates of the present round."""
    ours = fairfl.train(data, model, fairfl.fedfv(alpha=1, tau=0), rounds=3, cohort=4)
    plain = fairfl.train(data, model, fairfl.fedavg(), rounds=3, cohort=4)
    for x, y in zip(jax.tree.leaves(ours.params), jax.tree.leaves(plain.params), strict=True):
        np.testing.assert_array_equal(x, y)


def test_two_updates_in_conflict_by_hand():
    """D_1 = (1, 0) is worst and kept, D_2 = (-1, 1) loses its first part; the mean is 1/2 long."""
    D = np.array([[1.0, 0.0], [-1.0, 1.0]])
    a = stepped(fedfv(history=0), of_updates(D, [2, 1]), alpha=0.1, tau=0)
    np.testing.assert_allclose(a @ D, np.array([1, 1]) / np.sqrt(2) * 0.5, rtol=1e-5)


@pytest.mark.parametrize(
    ("alpha", "kept"), [(0, 0), (0.01, 1), (0.1, 1), (0.2, 2), (1 / 3, 4), (0.5, 5), (1, 10)]
)
def test_the_worst_share_keeps_its_updates(alpha, kept):
    """Everybody is in conflict with everybody, so that who is not kept changes."""
    D = np.full((10, 10), -0.05) + 1.0 * np.eye(10)
    conflicts = coefficients(fedfv(0), of_updates(D, np.arange(10)), alpha=alpha, tau=0)[2]
    assert conflicts["conflicts"] == 9 * (10 - kept)


def test_the_better_client_is_projected_first():
    """Against D_1, D_2 in ascending order of their losses, not in that of the cohort."""
    D = np.array([[0.0, -1.0, 0.2], [-1.0, -1.0, 0.0], [1.0, 1.0, 1.0]])
    by_hand = {}
    for first, second in ((0, 1), (1, 0)):
        left = D[2]
        for j in (first, second):
            left = left - min(left @ D[j], 0) / (D[j] @ D[j]) * D[j]
        by_hand[first] = left
    assert np.linalg.norm(by_hand[0] - by_hand[1]) > 0.1
    for first in (0, 1):
        losses = [1 + (first == 1), 1 + (first == 0), 0]
        parts = of_updates(D, losses, weights=[1e-6, 1e-6, 1])
        g = stepped(fedfv(0), parts, alpha=0, tau=0) @ D
        cosine = g @ by_hand[first] / np.linalg.norm(g) / np.linalg.norm(by_hand[first])
        np.testing.assert_allclose(cosine, 1, atol=1e-5)


ABSENT = {"past": [[-1.0, 1.0]], "ids": [7], "past_ids": [3], "past_ages": [1]}


def test_a_client_that_is_absent_is_spared():
    a = stepped(fedfv(1), of_updates([[1.0, 0.0]], [1.0], **ABSENT), rounds=1, alpha=0, tau=1)
    g = a @ np.array([[1.0, 0.0], [-1.0, 1.0]])
    np.testing.assert_allclose(g, np.array([1, 1]) / np.sqrt(2), rtol=1e-5)


@pytest.mark.parametrize(
    ("why", "change", "tau", "rounds"),
    [
        ("tau is 0", {}, 0, 5),
        ("tau rounds have not passed", {}, 2, 1),
        ("it was longer ago than tau", {"past_ages": [2]}, 1, 5),
        ("it is here again", {"past_ids": [7]}, 1, 5),
        ("the place is empty", {"past_ids": [-1]}, 1, 5),
        ("its update does not conflict", {"past": [[1.0, 1.0]]}, 1, 5),
    ],
)
def test_a_client_is_not_spared_where(why, change, tau, rounds):
    people = of_updates([[1.0, 0.0]], [1.0], **(ABSENT | change))
    a = stepped(fedfv(2), people, rounds=rounds, alpha=0, tau=tau)
    np.testing.assert_array_equal(a, [1, 0])


def test_only_the_last_update_of_an_absent_client_counts():
    """The reference overwrites what it keeps of a client; an older update is no other client."""
    past = [[-1.0, 1.0], [-1.0, -5.0]]
    people = of_updates([[1.0, 0.0]], [1.0], past, [7], [3, 3], [1, 2])
    a = stepped(fedfv(2), people, rounds=2, alpha=0, tau=2)
    assert a[2] == 0 < a[1]


def test_the_step_is_as_long_as_the_mean_was():
    for seed in range(10):
        people = drawn(seed, past=10)
        a = stepped(fedfv(1), people, rounds=3, alpha=0.2, tau=1)
        p = np.pad(coefficients(mean(), people)[0], (0, 10))
        gram = np.asarray(people.gram, float)
        np.testing.assert_allclose(a @ gram @ a, p @ gram @ p, rtol=1e-4)


def test_opposite_updates_take_no_step():
    """The reference divides by the length of what is left, which is 0."""
    people = of_updates([[2.0, 0.0], [-1.0, 0.0]], [1, 2])
    a = stepped(fedfv(0), people, alpha=0, tau=0)
    assert np.isfinite(a).all()
    np.testing.assert_allclose(a @ np.array([2.0, -1.0]), 0, atol=1e-5)


@pytest.mark.parametrize("tau", [0.5, [1, 1.5]])
def test_tau_counts_rounds(tau):
    with pytest.raises(ValueError, match=r"tau=.* counts rounds, so it must be a whole number"):
        fairfl.fedfv(tau=tau)


def test_the_longest_memory_of_a_sweep_serves_the_shorter_ones(data, model):
    family = fairfl.fedfv(alpha=0.2, tau=[0, 1, 3], batch_size=5)
    together = fairfl.train(data, model, family, rounds=5, cohort=2)
    for place, tau in enumerate((0, 1, 3)):
        one = fairfl.fedfv(alpha=0.2, tau=tau, batch_size=5)
        alone = fairfl.train(data, model, one, rounds=5, cohort=2)
        for x, y in zip(
            jax.tree.leaves(together.params), jax.tree.leaves(alone.params), strict=True
        ):
            np.testing.assert_allclose(x[place], y[0], rtol=1e-3, atol=1e-5)
