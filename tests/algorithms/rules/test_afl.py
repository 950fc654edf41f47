"""AFL: the ascent on lambda, the projection, and the iterate that is the answer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fairfl
from cohorts import CLIENTS, coefficients, cohort, counted, hyper_of
from fairfl.algorithms.rules import afl, mean
from fairfl.algorithms.rules.simplex import on_simplex

ASCENTS = ["projected", "exponentiated"]
both_ascents = pytest.mark.parametrize("ascent", ASCENTS)


def lambdas(ascent, losses, weights=None, rounds=2, **hyper):
    """The coefficients of the last of several rounds with the same losses."""
    rule, people, hyper = afl(ascent), cohort(losses, weights=weights), hyper_of(**hyper)
    state = rule.init(hyper, CLIENTS)
    for _ in range(rounds):
        a, state, _ = rule.coefficients(hyper, state, people)
    return np.asarray(a)


# --- the projection -------------------------------------------------------------------------------


def test_the_projection_sums_to_one_for_ten_thousand_vectors():
    """The reference's projection is off by one: it sends (1.3, .2) to a sum of 1.05."""
    draw = np.random.default_rng(0)
    v = draw.normal(size=(10_000, 12)) * np.exp(draw.normal(0, 3, size=(10_000, 1)))
    x = jax.jit(jax.vmap(on_simplex))(jnp.asarray(v, jnp.float32), jnp.ones(v.shape, bool))
    assert (x >= 0).all()
    np.testing.assert_allclose(x.sum(axis=1), 1, atol=2e-6)


def test_the_projection_is_the_closest_point():
    """Against the textbook's sort, in float64: no other point of the simplex is closer."""
    with jax.enable_x64(True):
        draw = np.random.default_rng(1)
        v = draw.normal(size=(500, 9)) * 2
        found = jax.jit(jax.vmap(on_simplex))(jnp.asarray(v), jnp.ones(v.shape, bool))
        for row, x in zip(v, np.asarray(found), strict=True):
            u = np.sort(row)[::-1]
            tau = (np.cumsum(u) - 1) / np.arange(1, 10)
            support = np.flatnonzero(u > tau)[-1]
            np.testing.assert_allclose(x, np.maximum(row - tau[support], 0), atol=1e-12)


@pytest.mark.parametrize("v", [[1.3, 0.2], [1e30, 1, 0], [-5, -5], [0.5, 0.5], [7.0]])
def test_the_projection_of_awkward_points_sums_to_one(v):
    x = on_simplex(jnp.asarray(v, jnp.float32), jnp.ones(len(v), bool))
    assert x.sum() == 1


def test_the_projection_leaves_the_simplex_where_it_is():
    x = on_simplex(jnp.array([0.25, 0.5, 0.25]), jnp.ones(3, bool))
    np.testing.assert_allclose(x, [0.25, 0.5, 0.25], rtol=1e-6)


# --- the ascent -----------------------------------------------------------------------------------


@both_ascents
def test_afl_uses_its_lambdas(ascent):
    """The reference replaces them by 1 under its README's command, so its AFL is FedAvg."""
    a = lambdas(ascent, [1, 2, 4], gamma=0.1)
    assert a[0] < a[1] < a[2]
    assert not np.allclose(a, 1 / 3, atol=0.05)


@both_ascents
def test_afl_starts_from_the_weights_of_the_objective(ascent):
    people = cohort([1, 2, 3], weights=[1, 2, 1])
    np.testing.assert_array_equal(
        coefficients(afl(ascent), people)[0], coefficients(mean(), people)[0]
    )


@both_ascents
def test_afl_without_ascent_is_fedsgd(ascent):
    a = lambdas(ascent, [1, 5, 2], [1, 2, 3], rounds=20, gamma=0)
    np.testing.assert_allclose(a, [1 / 6, 2 / 6, 3 / 6], rtol=1e-5)


@both_ascents
def test_afl_with_an_endless_ascent_steps_to_the_worst_client(ascent):
    np.testing.assert_allclose(lambdas(ascent, [1, 5, 2], gamma=1e9), [0, 1, 0], atol=1e-6)


def test_the_projected_ascent_by_hand():
    """(1/3, 1/3, 1/3) + .1 (1, 2, 6) less tau = .3 is (.1333, .2333, .6333)."""
    np.testing.assert_allclose(
        lambdas("projected", [1, 2, 6], gamma=0.1), [0.4 / 3, 0.7 / 3, 1.9 / 3], rtol=1e-5
    )


def test_the_exponentiated_ascent_by_hand():
    """(1/2, 1/2) tilted by exp(log 3 F) with F = (1, 2) is (1/4, 3/4), then (1/10, 9/10)."""
    twice = [lambdas("exponentiated", [1, 2], rounds=n, gamma=np.log(3)) for n in (2, 3)]
    np.testing.assert_allclose(twice, [[0.25, 0.75], [0.1, 0.9]], rtol=1e-5)


@both_ascents
def test_a_client_that_fell_to_nothing_can_come_back(ascent):
    rule, hyper = afl(ascent), hyper_of(gamma=1)
    state = rule.init(hyper, CLIENTS)
    for losses in ([0, 50], [0, 50], [500, 0], [500, 0]):
        a, state, _ = rule.coefficients(hyper, state, cohort(losses))
    assert a[0] > 0.99


@both_ascents
def test_a_cohort_keeps_the_mass_that_it_holds(ascent):
    """Ascent in a cohort moves lambda between its members, not from those who stayed away."""
    rule, hyper = afl(ascent), hyper_of(gamma=0.2)
    state = rule.init(hyper, 4)
    _, state, _ = rule.coefficients(hyper, state, cohort([1, 3], ids=[0, 2]))
    ratio = np.exp(state) if ascent == "exponentiated" else np.asarray(state)
    np.testing.assert_allclose(ratio[[1, 3]], 1)
    np.testing.assert_allclose(ratio[[0, 2]].sum(), 2, rtol=1e-6)
    assert ratio[2] > 1 > ratio[0]


def test_a_cohort_without_any_mass_takes_no_step():
    rule, hyper = afl(), hyper_of()
    a, state, _ = rule.coefficients(hyper, jnp.zeros(4), cohort([1, 3], ids=[0, 2]))
    assert not a.any()
    assert np.isfinite(state).all()


def test_an_ascent_that_does_not_exist():
    with pytest.raises(ValueError, match="'up' is neither of projected and exponentiated"):
        fairfl.afl(ascent="up")
    with pytest.raises(ValueError, match="'best' is neither of last and mean"):
        fairfl.afl(answer="best")


# --- the answer -----------------------------------------------------------------------------------


def test_afls_average_does_not_include_the_initial_model(data, model):
    """easyFL's AFL averages it in: after one round its answer is half of what was learned."""
    once = [
        fairfl.train(data, model, fairfl.afl(answer=answer), rounds=1).params
        for answer in ("mean", "last")
    ]
    np.testing.assert_array_equal(once[0]["weights"], once[1]["weights"])
    last = [
        fairfl.train(data, model, fairfl.afl(answer="last"), rounds=n).params["weights"]
        for n in (1, 2)
    ]
    mean = fairfl.train(data, model, fairfl.afl(), rounds=2).params["weights"]
    np.testing.assert_allclose(mean, np.mean(last, axis=0), rtol=1e-5, atol=1e-7)


def test_afl_trains_everyone_with_full_gradients(data, model):
    """gamma = 0 is FedSGD over everyone, to the last round."""
    ours = fairfl.train(data, model, fairfl.afl(gamma=0, answer="last"), rounds=5)
    plain = fairfl.train(data, model, fairfl.fedsgd(sampler="everyone"), rounds=5)
    np.testing.assert_allclose(ours.params["weights"], plain.params["weights"], rtol=1e-4)


def test_counted_is_the_first_round():
    np.testing.assert_allclose(counted(afl(), [1, 9], [1, 3]), [0.25, 0.75])
