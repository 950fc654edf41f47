"""The paper's lemmas on random convex problems that are solved to optimality."""

import numpy as np
import pytest

from fairfl.paper.theory import (
    Quadratics,
    bound,
    cosine,
    entropy,
    entropy_slope,
    lipschitz,
    random_problem,
    solve,
)

PROBLEMS = [(seed, 2 + seed % 7, 1 + seed % 4) for seed in range(30)]
Q = [0.5, 1.0, 5.0]


@pytest.mark.parametrize("q", [0, 0.5, 1, 5, 20])
def test_the_solver_ends_where_the_gradient_vanishes(q):
    for seed in range(20):
        problem = random_problem(seed)
        w = solve(problem, q)
        weight = (problem.losses(w) / problem.losses(w).max()) ** q
        slopes = weight[:, None] * problem.gradients(w)
        assert np.abs(slopes.sum(axis=0)).max() < 1e-8 * np.abs(slopes).max()


def test_a_large_q_approaches_the_smallest_largest_loss():
    problem = Quadratics(np.ones((2, 1, 1)), np.array([[0.0], [2.0]]), np.array([0.1, 1.1]))
    # F_1 = .1 + w^2/2 and F_2 = 1.1 + (2 - w)^2/2 meet at w = 1.5.
    assert solve(problem, 200)[0] == pytest.approx(1.5, abs=0.01)
    assert solve(problem, 0)[0] == pytest.approx(1.0)


def test_q_1_is_fairer_than_q_0_in_variance_and_in_cosine():
    """Lemmas 4 and 5."""
    for seed, clients, dimensions in PROBLEMS:
        problem = random_problem(seed, clients, dimensions)
        plain, fair = (problem.losses(solve(problem, q)) for q in (0, 1))
        assert np.var(fair) <= np.var(plain) + 1e-12
        assert cosine(fair) >= cosine(plain) - 1e-12


def test_the_entropy_does_not_fall_as_q_grows():
    """Lemma 6, indexed as its proof does."""
    for seed, clients, dimensions in PROBLEMS:
        problem = random_problem(seed, clients, dimensions)
        assert all(entropy_slope(problem, q, q + 1) > -1e-7 for q in Q)


def test_the_entropy_of_the_power_q_itself_may_fall():
    """Lemma 6 read with f_q's own index does not hold: here are counterexamples."""
    slopes = [
        entropy_slope(random_problem(seed, clients, dimensions), q, q)
        for seed, clients, dimensions in PROBLEMS
        for q in Q
    ]
    assert min(slopes) < -1e-4


def test_entropy_and_cosine_by_hand():
    assert entropy(np.array([1.0, 3.0])) == pytest.approx(0.25 * np.log(4) + 0.75 * np.log(4 / 3))
    assert cosine(np.array([1.0, 7.0])) == pytest.approx(0.8)


def test_lipschitz_by_hand():
    assert lipschitz(2.0, 3.0, q=0, L=10) == 10
    assert lipschitz(2.0, 3.0, q=2, L=10) == 10 * 4 + 2 * 2 * 9


def test_the_bound_by_hand():
    """q = 1: p = 2, so |lambda|_2 = sqrt(.5), |F|_2 = .5, and the chance term."""
    chance = np.sqrt((0.25 / 50 + 0.25 / 200) / 2 * np.log(1 / 0.1))
    found = bound([0.3, 0.4], [50, 200], q=1, delta=0.1, weights=[0.5, 0.5], complexity=0.01)
    assert found == pytest.approx(np.sqrt(0.5) * 0.5 + 0.01 + chance)


def test_the_bound_over_all_weights_covers_every_one_of_them():
    draw = np.random.default_rng(0)
    F, n = draw.uniform(size=6), draw.integers(5, 100, 6)
    for q in (0, 0.5, 1, 10, 1000):
        everywhere = bound(F, n, q)
        assert all(
            everywhere >= bound(F, n, q, weights=draw.dirichlet(np.ones(6))) for _ in range(50)
        )


def test_the_bound_holds_for_a_fixed_model_on_fresh_rows():
    """Errors on rows that training never saw: at delta = .2 at most a fifth of draws may fail."""
    draw, true, n = np.random.default_rng(1), np.array([0.1, 0.4, 0.2]), np.array([20, 30, 25])
    weights = np.array([0.2, 0.5, 0.3])
    held = [
        bound(draw.binomial(n, true) / n, n, q=2, delta=0.2, weights=weights) >= weights @ true
        for _ in range(2000)
    ]
    assert np.mean(held) >= 0.8


def test_uniform_weights_and_a_huge_q_give_the_bound_of_the_largest_loss():
    """The paper's discussion: lambda = 1/m and q to infinity recovers AFL's bound."""
    weights = np.full(4, 0.25)
    chance = np.sqrt(np.sum(weights**2 / 50) / 2 * np.log(20))
    found = bound([0.1, 0.2, 0.6, 0.3], [50] * 4, q=1e6, weights=weights)
    assert found == pytest.approx(0.6 + chance, rel=1e-4)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"losses": [0.1, 1.2]}, "between 0 and largest"),
        ({"sizes": [3, 0]}, "no rows"),
        ({"sizes": [3]}, "one of each per client"),
        ({"weights": [0.5, 0.6]}, "add up to 1"),
        ({"delta": 0}, "between 0 and 1"),
    ],
)
def test_a_bound_that_cannot_be_is_a_sentence(changed, sentence):
    given = {"losses": [0.1, 0.2], "sizes": [3, 4], "q": 1.0} | changed
    with pytest.raises(ValueError, match=sentence):
        bound(**given)
