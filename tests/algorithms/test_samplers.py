"""Samplers: exact draws, the weights that each leaves to add, and who is never drawn."""

from itertools import combinations, permutations

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import fairfl
from conftest import made_up
from fairfl.algorithms.samplers import SAMPLERS, effective, population, sampler, weights
from fairfl.clients import Rows
from fairfl.clients.randomness import Stream, generator
from fairfl.simulation.plan import cohort_of, planner

DRAWS = 20_000
LIKELY = 0.001
"""Seeds are fixed, so a test below this p-value fails always or never."""

SIZES = np.array([10, 0, 30, 60])
P = SIZES / SIZES.sum()
TABLE = {
    ("by-size-with-replacement", "size"): np.ones(4),
    ("by-size-with-replacement", "equal"): np.array([10, np.nan, 10 / 3, 5 / 3]),
    ("by-size", "size"): np.ones(4),
    ("by-size", "equal"): np.array([10, np.nan, 10 / 3, 5 / 3]),
    ("uniform", "size"): P,
    ("uniform", "equal"): np.ones(4),
    ("everyone", "size"): P,
    ("everyone", "equal"): np.ones(4),
}


def rows_of(sizes):
    """Clients of the given sizes whose training rows are all there is."""
    return Rows(np.arange(sum(sizes)), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def draws(name, sizes, cohort, times=DRAWS, seed=0):
    """As many cohorts, one per round of a seed, as tuples in the order of their drawing."""
    people, draw = population(np.array(sizes)), sampler(name).draw
    return [
        tuple(draw(generator(seed, Stream.COHORT, t), people, cohort).tolist())
        for t in range(times)
    ]


def successive(sizes, cohort):
    """P(i, j, ...) = p_i p_j / (1 - p_i) ...: drawing by size among those not drawn before."""
    exact = {}
    for order in permutations(np.flatnonzero(sizes).tolist(), cohort):
        left, chance = sum(sizes), 1.0
        for k in order:
            chance *= sizes[k] / left
            left -= sizes[k]
        exact[order] = chance
    return exact


def matches(drawn, exact):
    """Whether draws follow the exact chances: chi-square, the rare outcomes in one bin."""
    assert set(drawn) <= set(exact)
    expected = {outcome: chance * len(drawn) for outcome, chance in exact.items()}
    common = [outcome for outcome in exact if expected[outcome] >= 5]
    counts = [drawn.count(outcome) for outcome in common]
    chances = [expected[outcome] for outcome in common]
    if len(common) < len(exact):
        counts.append(len(drawn) - sum(counts))
        chances.append(len(drawn) - sum(chances))
    return stats.chisquare(counts, chances, sum_check=False).pvalue > LIKELY


@pytest.fixture
def unchecked(monkeypatch):
    """Without the type checks that the tests switch on: they take three times as long as a draw."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


# --- the weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), TABLE)
def test_every_sampler_adds_what_the_objective_lacks(name, kind):
    """The paper's code, sampling uniformly, never weights by size (R8)."""
    ids = np.array([3, 0])
    u = weights(kind, sampler(name).by_size, population(SIZES), ids)
    np.testing.assert_allclose(u, TABLE[name, kind][ids])


@pytest.mark.parametrize(("name", "kind"), TABLE)
def test_the_plan_draws_with_these_weights(name, kind):
    algorithm = fairfl.fedavg(sampler=name, weights=kind)
    ids, u = planner(rows_of(SIZES), algorithm, 2, seed=0).draw(round=5)
    assert len(ids) == (3 if name == "everyone" else 2)
    np.testing.assert_allclose(u, TABLE[name, kind][ids])


@pytest.mark.parametrize("name", ["by-size", "uniform"])
@pytest.mark.parametrize("kind", ["size", "equal"])
def test_a_full_cohort_is_weighted_as_everyone(name, kind):
    """The paper's code counts every client of a full cohort equally, whatever p_k is (R10)."""
    algorithm = fairfl.fedavg(sampler=name, weights=kind)
    ids, u = planner(rows_of(SIZES), algorithm, 3, seed=0).draw(round=5)
    assert ids.tolist() == [0, 2, 3]
    np.testing.assert_allclose(u, TABLE["everyone", kind][ids])


@pytest.mark.parametrize(("kind", "share"), [("size", [0.25, 0.75]), ("equal", [0.5, 0.5])])
def test_uniform_sampling_with_weights_really_weights(kind, share):
    """The paper's code, sampling uniformly with a weighted average, never weights (R8)."""
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(40, 3)), np.arange(40) % 2
    data = fairfl.from_arrays({"a": (x[:10], y[:10]), "b": (x[10:], y[10:])}, split=None)
    model = fairfl.models.softmax_regression(data)
    algorithm = fairfl.fedsgd(learning_rate=1, sampler="uniform", weights=kind)
    found = fairfl.train(data, model, algorithm, rounds=1, cohort=2).params["weights"][0]
    # At w = 0 every class has probability 1 / 2.
    gradient = [x[part].T @ (0.5 - np.eye(2)[y[part]]) / len(x[part]) for part in
                (slice(10), slice(10, 40))]  # fmt: skip
    np.testing.assert_allclose(found, -(share[0] * gradient[0] + share[1] * gradient[1]), rtol=1e-5)


# --- by size, without replacement -----------------------------------------------------------------


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("sizes", "cohort"), [([1, 2, 3, 4], 1), ([1, 2, 3, 4], 2), ([9, 0, 1, 5, 2], 3)]
)
def test_by_size_is_exactly_successive_sampling(sizes, cohort):
    """As numpy.random.choice(replace=False, p=p_k), the paper's code's draw, also in its order.

    A client's chance to take part is then not K p_k, as the paper's text has it (R7).
    """
    assert matches(draws("by-size", sizes, cohort), successive(sizes, cohort))


class Watched(np.random.Generator):
    """Counts the exponential races."""

    races = 0

    def exponential(self, *args, **kwargs):
        self.races += 1
        return super().exponential(*args, **kwargs)


def races(sizes, cohort, times=300):
    """The share of draws that end in an exponential race."""
    people, count = population(np.array(sizes)), 0
    for t in range(times):
        watched = Watched(generator(0, Stream.COHORT, t).bit_generator)
        sampler("by-size").draw(watched, people, cohort)
        count += watched.races
    return count / times


@pytest.mark.usefixtures("unchecked")
def test_few_clients_who_own_nearly_all_rows_do_not_keep_a_draw_from_ending():
    """One client owns nearly everything: 60 draws find it alone and a race orders the others."""
    sizes = [1, 2, 10**7, 3, 4]
    assert races(sizes, 3) == 1
    assert matches(draws("by-size", sizes, 3), successive(sizes, 3))


@pytest.mark.usefixtures("unchecked")
def test_a_draw_that_ends_in_a_race_only_sometimes_is_exact_too():
    """Both endings together, also where the first draws found a part of the cohort."""
    sizes = [100, 1, 1, 2, 0]
    assert 0.2 < races(sizes, 3) < 0.8
    assert matches(draws("by-size", sizes, 3), successive(sizes, 3))


def test_no_race_is_run_where_draws_suffice():
    assert races([5, 6, 7, 8, 9, 10], 3) == 0


# --- the other draws ------------------------------------------------------------------------------


@pytest.mark.usefixtures("unchecked")
def test_with_replacement_draws_in_proportion_each_place_on_its_own():
    p = np.array([1, 2, 0, 5]) / 8
    exact = {(i, j): p[i] * p[j] for i in (0, 1, 3) for j in (0, 1, 3)}
    assert matches(draws("by-size-with-replacement", [1, 2, 0, 5], 2), exact)


@pytest.mark.usefixtures("unchecked")
def test_uniform_ignores_sizes():
    drawn = [tuple(sorted(ids)) for ids in draws("uniform", [1, 1000, 0, 7, 50], 2)]
    exact = dict.fromkeys(combinations((0, 1, 3, 4), 2), 1 / 6)
    assert matches(drawn, exact)


@given(
    sizes=st.lists(st.sampled_from([0, 0, 1, 3, 50, 10**6]), min_size=1, max_size=12),
    part=st.floats(0, 1),
    round=st.integers(0, 10**6),
    name=st.sampled_from(list(SAMPLERS)),
)
@settings(max_examples=300, deadline=None)
def test_clients_without_rows_are_never_drawn(sizes, part, round, name):
    sizes = np.array([*sizes, 2, 0])
    people = population(sizes)
    cohort = 1 + int(part * (len(people.trainable) - 1))
    ids = sampler(name).draw(generator(1, Stream.COHORT, round), people, cohort)
    assert (sizes[ids] > 0).all()
    assert len(ids) == (len(people.trainable) if name == "everyone" else cohort)
    if name != "by-size-with-replacement":
        assert len(set(ids.tolist())) == len(ids)


@pytest.mark.parametrize("name", ["by-size", "uniform", "by-size-with-replacement"])
def test_seeds_and_rounds_set_the_cohort(name):
    """The paper's code knows only the round (R6); Flower's simulation has no seed for it (F7)."""
    plans = [planner(rows_of([5] * 40), fairfl.fedavg(sampler=name), 4, seed) for seed in (0, 1)]
    drawn = {(s, t): tuple(plans[s].draw(t)[0].tolist()) for s in (0, 1) for t in range(30)}
    assert len(set(drawn.values())) == 60
    for s, t in [(1, 29), (0, 0), (1, 3)]:
        assert tuple(plans[s].draw(t)[0].tolist()) == drawn[s, t]


def test_the_public_cohort_is_the_plans():
    data = made_up([10, 20, 30, 40, 50])
    algorithm = fairfl.q_fedavg(weights="equal")
    plan = planner(data.split(3).train, algorithm, 2, seed=3)
    for t in range(5):
        ids, u = cohort_of(data, algorithm, 2, seed=3, round=t)
        np.testing.assert_array_equal(ids, plan.draw(t)[0])
        np.testing.assert_array_equal(u, plan.draw(t)[1])


# --- a cohort of everyone -------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("cohort", [2, 3, 9])
def test_a_cohort_as_large_as_the_population_is_everyone(name, cohort):
    found = effective(sampler(name), population(SIZES), cohort).name
    becomes = cohort >= 3 and name != "by-size-with-replacement"
    assert found == ("everyone" if becomes else name)


@pytest.fixture(scope="module")
def few():
    data = made_up([10, 20, 30], classes=2)
    return data, fairfl.models.softmax_regression(data)


@pytest.mark.parametrize("name", ["by-size", "uniform"])
def test_a_result_says_that_the_cohort_was_everyone(few, name):
    result = fairfl.train(*few, fairfl.fedsgd(sampler=name), rounds=1, cohort=3)
    assert (result.sampler, result.weights) == ("everyone", "size")
    said = [note for note in result.notes if "sampler" in note]
    assert len(said) == 1
    assert f"the sampler is everyone (not {name})" in said[0]


@pytest.mark.parametrize(("name", "cohort"), [("everyone", 3), ("by-size-with-replacement", 7)])
def test_a_result_says_nothing_where_the_sampler_was_as_asked(few, name, cohort):
    result = fairfl.train(*few, fairfl.fedsgd(sampler=name), rounds=1, cohort=cohort)
    assert result.sampler == name
    assert not any("sampler" in note for note in result.notes)


# --- mistakes -------------------------------------------------------------------------------------


def test_a_sampler_that_does_not_exist():
    names = "by-size, by-size-with-replacement, uniform, everyone"
    said = rf"\Athere is no sampler 'by_size'; choose one of {names}\Z"
    with pytest.raises(ValueError, match=said):
        fairfl.fedavg(sampler="by_size")


@pytest.mark.parametrize("name", ["by-size", "uniform"])
def test_a_cohort_larger_than_the_clients_who_train(few, name):
    said = (
        r"\Acohort=4 is larger than the 3 clients that have training rows; "
        r"use at most 3, or sampler='by-size-with-replacement'\Z"
    )
    with pytest.raises(ValueError, match=said):
        fairfl.train(*few, fairfl.fedavg(sampler=name), rounds=1, cohort=4)


def test_everyone_needs_no_cohort(few):
    result = fairfl.train(*few, fairfl.fedsgd(sampler="everyone"), rounds=1)
    assert result.sampler == "everyone"
