"""The protocol that every rule keeps; what each rule promises beside it is in rules/."""

import inspect

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import fairfl
from cohorts import CLIENTS, coefficients, drawn, hyper_of, only_what
from fairfl.algorithms import NAMED
from fairfl.algorithms.rules import Cohort, Rule, aaggff, afl, required
from fairfl.algorithms.rules.rule import Needs

RULES = {
    "mean": fairfl.rules.mean(),
    "q-FFL": fairfl.rules.q_ffl(),
    "fixed step": fairfl.rules.fixed_step(),
    "AFL": afl(),
    "AFL (exponentiated)": afl("exponentiated"),
    "TERM": fairfl.rules.term(),
    "superquantile": fairfl.rules.superquantile(),
    "GIFAIR": fairfl.rules.gifair(),
    "Semi-VRed": fairfl.rules.semi_vred(),
    "bounded q-FFL": fairfl.rules.bounded(fairfl.rules.q_ffl()),
    "FedMGDA+": fairfl.rules.fedmgda(),
    "FedFV": fairfl.rules.fedfv(),
    "FedFV, 2 rounds": fairfl.rules.fedfv(history=2),
    "AAggFF (device)": aaggff(),
    "AAggFF (silo)": aaggff("silo"),
}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def cohorts_for(rule, rounds=3, k=10, dtype=np.float32):
    past = rule.needs.history * k
    return [only_what(rule, drawn(seed, k, past, dtype)) for seed in range(rounds)]


def applied(rule, cohorts, hyper=None):
    """Coefficients, state and info after each of several rounds."""
    hyper = hyper_of() if hyper is None else hyper
    state, step = rule.init(hyper, CLIENTS), jax.jit(rule.coefficients)
    rounds = []
    for people in cohorts:
        a, state, info = step(hyper, state, people)
        rounds.append((a, state, info))
    return rounds


def same_bits(left, right):
    return all(
        np.array_equal(x, y) and x.dtype == y.dtype
        for x, y in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    )


def with_absent(people: Cohort, place: int) -> Cohort:
    """The cohort with a client of weight 0 at a place, whose numbers are all NaN.

    Its id is that of a client who is there, so that writing to its state would show.
    """
    here = {"ids": people.ids[0], "sizes": np.nan, "weights": 0, "losses": np.nan, "norms": np.nan}
    more = {
        name: jnp.insert(getattr(people, name), place, jnp.asarray(value).astype(float))
        for name, value in here.items()
        if getattr(people, name) is not None
    }
    if people.gram is not None:
        rows = jnp.insert(people.gram, place, jnp.nan, axis=0)
        more["gram"] = jnp.insert(rows, place, jnp.nan, axis=1)
    return people._replace(**{**more, "ids": more["ids"].astype(jnp.int32)})


def permuted(people: Cohort, order: np.ndarray) -> Cohort:
    whole = None
    if people.gram is not None:
        past = np.arange(len(order), len(people.gram))
        everything = np.concatenate([order, past])
        whole = people.gram[everything][:, everything]
    columns = {
        name: getattr(people, name)[order]
        for name in ("ids", "sizes", "weights", "losses", "norms")
        if getattr(people, name) is not None
    }
    return people._replace(**columns, gram=whole)


def test_every_named_algorithm_has_a_rule_that_is_tested_here():
    assert {make().rule.name for make in NAMED.values()} <= set(RULES)


def test_every_rule_of_the_room_is_tested_here():
    makers = [make for make in vars(fairfl.rules).values() if inspect.isfunction(make)]
    signatures = {make: inspect.signature(make) for make in makers}
    # `bounded` makes a rule of a rule, so it cannot be called alone.
    alone = {make for make in makers if "rule" not in signatures[make].parameters}
    rules = [make for make in alone if signatures[make].return_annotation is Rule]
    assert len(rules) >= 8
    assert {make().name for make in rules} <= set(RULES)


@pytest.mark.parametrize("place", [0, 4, 10])
@every_rule
def test_an_absent_client_changes_no_bit(rule, place):
    people = cohorts_for(rule)
    without = applied(rule, people)
    having = applied(rule, [with_absent(one, place) for one in people])
    for (a, state, info), (wider, wider_state, wider_info) in zip(without, having, strict=True):
        assert wider[place] == 0
        np.testing.assert_array_equal(np.delete(wider, place), a)
        assert same_bits(state, wider_state)
        assert same_bits(info, wider_info)


@every_rule
def test_a_client_that_was_absent_keeps_its_state(rule):
    """Its entry stays as it was, whatever the others do."""
    people = cohorts_for(rule, rounds=1)[0]
    missing = people._replace(weights=people.weights.at[3].set(0))
    hyper = hyper_of()
    before = rule.init(hyper, CLIENTS)
    after = jax.jit(rule.coefficients)(hyper, before, missing)[1]
    own = [leaf[people.ids[3]] for leaf in jax.tree.leaves(after) if leaf.shape == (CLIENTS,)]
    first = [leaf[people.ids[3]] for leaf in jax.tree.leaves(before) if leaf.shape == (CLIENTS,)]
    assert same_bits(own, first)


@every_rule
def test_the_order_of_the_cohort_does_not_matter(rule):
    people = cohorts_for(rule)
    order = np.random.default_rng(5).permutation(10)
    straight = applied(rule, people)
    mixed = applied(rule, [permuted(one, order) for one in people])
    for (a, state, _), (other, other_state, _) in zip(straight, mixed, strict=True):
        np.testing.assert_allclose(other[:10], a[:10][order], rtol=2e-4, atol=1e-6)
        np.testing.assert_allclose(other[10:], a[10:], rtol=2e-4, atol=1e-6)
        for x, y in zip(jax.tree.leaves(state), jax.tree.leaves(other_state), strict=True):
            np.testing.assert_allclose(y, x, rtol=2e-4, atol=1e-5)


HOSTILE = {
    "zero": [0, 0, 0, 0],
    "one solved": [0, 1, 2, 3],
    "tiny": [1e-12, 1e-30, 1e-12, 1e-20],
    "huge": [1e30, 1, 2e30, 0],
    "equal": [2.5, 2.5, 2.5, 2.5],
    "far apart": [1e30, 1e-30, 1, 1e-12],
}


@pytest.mark.parametrize("squares", [[0, 0, 0, 0], [1, 2, 3, 4], [1e30, 0, 1e-30, 1]])
@pytest.mark.parametrize("losses", HOSTILE.values(), ids=HOSTILE)
@every_rule
def test_hostile_losses_leave_every_number_finite(rule, losses, squares):
    """And a step of no numbers at all, where every client is absent, is no trap either."""
    history = rule.needs.history
    people = drawn(3, 4, history * 4)
    roots = jnp.tile(jnp.sqrt(jnp.asarray(squares, jnp.float32)), 1 + history)
    people = only_what(
        rule,
        people._replace(
            losses=jnp.asarray(losses, jnp.float32),
            norms=jnp.asarray(squares, jnp.float32),
            gram=jnp.sign(people.gram) * roots[:, None] * roots[None, :],
        ),
    )
    for a, state, info in applied(rule, [people] * 4):
        for leaf in jax.tree.leaves((a, state, info)):
            assert np.isfinite(leaf).all()


@every_rule
def test_a_single_client_counts_whole(rule):
    """The whole of its update, or as much of it as q-FFL's and FedMGDA+'s own steps allow."""
    people = cohorts_for(rule, rounds=1, k=1)[0]
    a = np.asarray(coefficients(rule, people, q=0, eta=1)[0])
    whole = 1 / np.sqrt(people.gram[0, 0]) if rule.name == "FedMGDA+" else 1
    np.testing.assert_allclose(a[:1], whole, rtol=1e-6)


@pytest.mark.parametrize("x64", [False, True], ids=["float32", "float64"])
@every_rule
def test_coefficients_and_state_keep_their_type(rule, x64):
    """The state is the carry of a loop, so its shapes and types never change."""
    with jax.enable_x64(x64):
        dtype = np.float64 if x64 else np.float32
        people = cohorts_for(rule, rounds=1, dtype=dtype)[0]
        hyper = hyper_of()
        before = rule.init(hyper, CLIENTS)
        a, after, _ = rule.coefficients(hyper, before, people)
        assert a.dtype == dtype
        assert len(a) == 10 * (1 + rule.needs.history)
        assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), before) == jax.tree.map(
            lambda leaf: (leaf.shape, leaf.dtype), after
        )


@every_rule
def test_nothing_is_traced_twice(rule):
    """Other numbers, cohorts and states of the same shapes share one program."""
    traced = []

    @jax.jit
    def step(hyper, state, people):
        traced.append(1)
        return rule.coefficients(hyper, state, people)

    state = rule.init(hyper_of(), CLIENTS)
    for people, change in zip(cohorts_for(rule), (0.1, 0.2, 0.3), strict=True):
        hyper = hyper_of(**{parameter.name: change for parameter in rule.parameters})
        state = step(hyper, state, people)[1]
    assert len(traced) == 1


@every_rule
def test_every_parameter_sweeps(rule):
    """Under vmap each member answers as it does alone, round after round."""
    members = [hyper_of(), hyper_of(**{parameter.name: 0.2 for parameter in rule.parameters})]
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)
    people = cohorts_for(rule)
    state = jax.vmap(lambda hyper: rule.init(hyper, CLIENTS), out_axes=-1)(both)
    step = jax.jit(jax.vmap(rule.coefficients, in_axes=(0, -1, None), out_axes=-1))
    alone = [applied(rule, people, hyper) for hyper in members]
    for round, one in enumerate(people):
        a, state, _ = step(both, state, one)
        for m in range(2):
            np.testing.assert_allclose(a[:, m], alone[m][round][0], rtol=1e-5, atol=1e-6)


@every_rule
def test_a_rule_reads_only_the_parameters_that_it_names(rule):
    named = {parameter.name for parameter in rule.parameters}
    hyper = {name: value for name, value in hyper_of().items() if name in named}
    people = cohorts_for(rule)
    assert same_bits(applied(rule, people, hyper)[-1], applied(rule, people)[-1])


@every_rule
def test_a_rule_runs_on_numpy_arrays_and_plain_numbers(rule, monkeypatch):
    """As on a server that receives replies and has no compiled simulator."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    hyper = {name: float(value) for name, value in hyper_of().items()}
    people = cohorts_for(rule)
    wanted = applied(rule, people)
    state = rule.init(hyper, CLIENTS)
    for one, (a, _, _) in zip(people, wanted, strict=True):
        plain = Cohort(*(None if leaf is None else np.asarray(leaf) for leaf in one))
        found, state, _ = rule.coefficients(hyper, jax.tree.map(np.asarray, state), plain)
        np.testing.assert_allclose(found, a, rtol=1e-5, atol=1e-6)


def test_a_rule_that_reads_what_it_did_not_declare_is_told():
    with pytest.raises(ValueError, match="does not declare"):
        required(None)
    assert Needs() == (False, False, False, 0)
