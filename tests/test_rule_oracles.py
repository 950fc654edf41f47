"""Every algorithm, trained by the engine, against its paper in plain NumPy (rule_oracles.py).

Only the inputs are shared: cohorts, weights and shuffles come from fairfl's public draws.
"""

from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import fairfl
import oracle
import rule_oracles as papers
from fairfl.algorithms import NAMED
from fairfl.simulation.plan import cohort_of, shuffles_of

ROUNDS, SEED, COHORT, RATE = 6, 3, 4, 0.05
FEATURES, CLASSES, LEAVES = 3, 3, ("weights", "bias")
SIZES = [2, 5, 7, 11, 13, 20]


class Case(NamedTuple):
    """A family, and what makes the rule of each of its experiments as the paper has it."""

    family: Any
    papers: list[Any]
    cohort: int = COHORT
    tolerance: float = 1e-9


def made_up():
    """Clients whose labels follow rules of their own, so that their updates are in conflict."""
    draw = np.random.default_rng(12)
    clients = {}
    for size in SIZES:
        x = draw.normal(size=(size, FEATURES)).astype(np.float32)
        clients[f"client of {size}"] = (x, (x @ draw.normal(size=(FEATURES, CLASSES))).argmax(1))
    return fairfl.from_arrays(clients, split=None)


def apart(key):
    """A start at which no two clients have the same loss."""
    weights = np.random.default_rng(5).normal(size=(FEATURES, CLASSES))
    return {"bias": jnp.zeros(CLASSES), "weights": jnp.asarray(weights.astype(np.float32))}


DATA = made_up()
MODEL = replace(fairfl.models.softmax_regression(DATA), init=apart)
SOFTMAX = oracle.softmax_cross_entropy(FEATURES, CLASSES)
LOCAL = {"learning_rate": RATE, "epochs": 2, "batch_size": 4}

CASES = {
    "fedavg": Case(fairfl.fedavg(**LOCAL), [papers.mean]),
    "q-fedavg": Case(
        fairfl.q_fedavg(q=[0.5, 3], **LOCAL, sampler="uniform"),
        [partial(papers.q_ffl, q, 1 / RATE) for q in (0.5, 3)],
    ),
    "fixed-step": Case(
        fairfl.fixed_step(q=[0.5, 2], learning_rate=RATE),
        [partial(papers.fixed_step, q) for q in (0.5, 2)],
    ),
    "afl": Case(
        fairfl.afl(gamma=[0.1, 1], learning_rate=RATE, answer="last"),
        [partial(papers.afl, gamma, "projected") for gamma in (0.1, 1)],
        cohort=len(SIZES),
    ),
    "afl, exponentiated": Case(
        fairfl.afl(gamma=[0.1, 1], learning_rate=RATE, answer="last", ascent="exponentiated"),
        [partial(papers.afl, gamma, "exponentiated") for gamma in (0.1, 1)],
        cohort=len(SIZES),
    ),
    "term": Case(
        fairfl.term(t=[-1, 2], **LOCAL, sampler="uniform"),
        [partial(papers.term, t) for t in (-1, 2)],
    ),
    "superquantile": Case(
        fairfl.superquantile(theta=[0.3, 0.7], **LOCAL, sampler="uniform"),
        [partial(papers.superquantile, theta) for theta in (0.3, 0.7)],
    ),
    "gifair": Case(
        fairfl.gifair(c=[0.4, 1], **LOCAL, sampler="uniform"),
        [partial(papers.gifair, c) for c in (0.4, 1)],
    ),
    "semi-vred": Case(
        fairfl.semi_vred(beta=[0.2, 3], **LOCAL, sampler="uniform"),
        [partial(papers.semi_vred, beta) for beta in (0.2, 3)],
    ),
    "fedmgda": Case(
        fairfl.fedmgda(eps=[0.1, 1], eta=0.3, **LOCAL, sampler="uniform"),
        [partial(papers.fedmgda, eps, 0.3) for eps in (0.1, 1)],
    ),
    "fedfv": Case(
        fairfl.fedfv(alpha=[0, 0.4], tau=[0, 2], **LOCAL, sampler="uniform"),
        [partial(papers.fedfv, alpha, tau) for alpha in (0, 0.4) for tau in (0, 2)],
        cohort=2,
    ),
    "fedfv of many": Case(
        fairfl.fedfv(alpha=0.3, **LOCAL), [partial(papers.fedfv, 0.3, 1)], cohort=5
    ),
    "aaggff": Case(
        fairfl.aaggff(eta=[1, 20], **LOCAL, sampler="uniform"),
        [partial(papers.aaggff_device, eta, len(SIZES)) for eta in (1, 20)],
    ),
    "aaggff of silos": Case(
        fairfl.aaggff(eta=[1, 30], setting="silo", sampler="everyone", **LOCAL),
        [partial(papers.aaggff_silo, eta) for eta in (1, 30)],
        cohort=len(SIZES),
    ),
}


def replies(family, member, w, ids, t, objective):
    """F and D of a cohort as the papers' local work has them."""
    train = DATA.split(SEED).train
    F, D = [], []
    for k in ids:
        x, y = DATA.x[train.of(k)].astype(float), DATA.y[train.of(k)]
        F.append(SOFTMAX.value(w, x, y))
        if family.work.name == "full gradient":
            D.append(member["learning_rate"] * SOFTMAX.gradient(w, x, y))
            continue
        shuffles = shuffles_of(train.of(k), SEED, t, k, family.work.epochs)
        problem = oracle.Problem(objective, DATA.x.astype(float), DATA.y, [])
        rate, size = member["learning_rate"], family.work.batch_size
        D.append(w - oracle.local_sgd(problem, w, shuffles, rate, size))
    return np.array(F), np.array(D)


def by_the_paper(case, member, step, objective=lambda w: SOFTMAX):
    """The model after all rounds."""
    w = np.concatenate([np.asarray(apart(None)[name], float).ravel() for name in LEAVES])
    for t in range(ROUNDS):
        ids, u = cohort_of(DATA, case.family, case.cohort, SEED, t)
        F, D = replies(case.family, member, w, ids.tolist(), t, objective(w))
        w = w - step(papers.Round(F, D, np.asarray(u, float), ids.tolist()))
    return w


def trained(case):
    return fairfl.train(
        DATA, MODEL, case.family, rounds=ROUNDS, cohort=case.cohort, seed=SEED, x64=True
    )


def flat(params, place):
    return np.concatenate([np.asarray(params[name][place]).ravel() for name in LEAVES])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_algorithm_agrees_with_its_paper(case):
    result = trained(case)
    assert len(result.experiments) == len(case.papers)
    for place, (member, paper) in enumerate(zip(result.experiments, case.papers, strict=True)):
        wanted = by_the_paper(case, member, paper())
        error = np.linalg.norm(flat(result.params, place) - wanted) / np.linalg.norm(wanted)
        assert error < case.tolerance, member


@pytest.mark.parametrize("case", [CASES[name] for name in CASES if name != "fedavg"])
def test_the_cases_tell_the_members_and_the_mean_apart(case):
    """Otherwise an engine that knew the mean alone, or read no parameter, would agree too."""
    models = [by_the_paper(case, case.family.experiments[0], papers.mean())]
    for member, paper in zip(case.family.experiments, case.papers, strict=True):
        models.append(by_the_paper(case, member, paper()))
    for one, other in combinations(models, 2):
        assert np.linalg.norm(one - other) > 1e-4 * np.linalg.norm(one)


def test_every_algorithm_has_a_paper_here_or_in_its_own_test():
    local = {"fedsgd", "q-fedsgd", "fedprox", "propfair"}
    # tests/simulation/test_adaptation.py and test_personal.py have the papers of these.
    local |= {"maml", "q-maml", "ditto"}
    assert set(NAMED) - local <= {case.family.name for case in CASES.values()}


# --- work of their own ----------------------------------------------------------------------------


def proximal(mu):
    """F + mu / 2 |w_k - w|^2 (Li et al., 2020)."""

    def around(start):
        return oracle.Objective(
            lambda w, x, y: SOFTMAX.value(w, x, y) + mu / 2 * (w - start) @ (w - start),
            lambda w, x, y: SOFTMAX.gradient(w, x, y) + mu * (w - start),
        )

    return around


def proportional(M, eps):
    """-log(1 - F / M), or F / M where M - F < eps (Zhang et al., 2023)."""

    def slope(F):
        return 1 / M if eps > M - F else 1 / M / (1 - F / M)

    changed = oracle.Objective(
        lambda w, x, y: -np.log(1 - SOFTMAX.value(w, x, y) / M),
        lambda w, x, y: slope(SOFTMAX.value(w, x, y)) * SOFTMAX.gradient(w, x, y),
    )
    return lambda start: changed


def test_fedprox_agrees_with_its_paper():
    case = Case(fairfl.fedprox(mu=[0.5, 3], **LOCAL), [])
    result = trained(case)
    for place, member in enumerate(result.experiments):
        wanted = by_the_paper(case, member, papers.mean(), proximal(member["mu"]))
        np.testing.assert_allclose(flat(result.params, place), wanted, rtol=0, atol=1e-10)


def test_propfair_agrees_with_its_paper():
    """M = 1.2 has both branches: the loss starts at log 3 = 1.1, above and below M - eps."""
    case = Case(fairfl.propfair(M=[1.2, 4], eps=[0.1, 0.2], **LOCAL), [])
    result = trained(case)
    models = [flat(result.params, place) for place in range(4)]
    assert len({tuple(w) for w in models}) == 3
    for member, found in zip(result.experiments, models, strict=True):
        objective = proportional(member["M"], member["eps"])
        wanted = by_the_paper(case, member, papers.mean(), objective)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)


# --- the papers in NumPy are right ----------------------------------------------------------------


def test_the_projection_by_hand():
    np.testing.assert_allclose(papers.projected(np.array([1.3, 0.2])), [1, 0], atol=1e-12)
    np.testing.assert_allclose(papers.projected(np.array([0.7, 0.5])), [0.6, 0.4], atol=1e-12)


def test_the_quadratic_programme_by_hand():
    free = papers.least_quadratic(np.diag([1.0, 3.0]), np.zeros(2), np.zeros(2), np.ones(2))
    np.testing.assert_allclose(free, [0.75, 0.25])
    bound = np.array([0.6, 1.0])
    near = papers.least_quadratic(np.diag([1.0, 3.0]), np.zeros(2), np.zeros(2), bound)
    np.testing.assert_allclose(near, [0.6, 0.4])


def test_fedfv_by_hand():
    """D_1 = (1, 0) is worst and kept, D_2 = (-1, 1) loses its first part: g = (1, 1) / 2."""
    D = np.array([[1.0, 0.0], [-1.0, 1.0]])
    step = papers.fedfv(alpha=0.1, tau=0)
    g = step(papers.Round(np.array([2.0, 1.0]), D, np.ones(2), [0, 1]))
    np.testing.assert_allclose(g, np.array([1, 1]) / np.sqrt(2) * 0.5)


def test_fedfv_spares_an_absent_client_by_hand():
    """Client 0 sent (-1, 1) a round ago, so that (1, 0) becomes (1, 1) / 2, then as long as was."""
    step = papers.fedfv(alpha=0, tau=1)
    step(papers.Round(np.array([1.0]), np.array([[-1.0, 1.0]]), np.ones(1), [0]))
    g = step(papers.Round(np.array([1.0]), np.array([[1.0, 0.0]]), np.ones(1), [1]))
    np.testing.assert_allclose(g, np.array([1, 1]) / np.sqrt(2))
