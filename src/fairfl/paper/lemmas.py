"""The paper's theory as a recipe: every lemma checked on random convex problems, and the bound."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fairfl import datasets, models
from fairfl.algorithms import q_fedavg
from fairfl.paper.theory import (
    Quadratics,
    bound,
    cosine,
    entropy_slope,
    lipschitz,
    random_problem,
    solve,
)
from fairfl.runs import Result, train

PROBLEMS = 60
Q = (0.5, 1.0, 2.0, 5.0)


class Checked(NamedTuple):
    """A statement of the paper, how many cases of it were tried, in how many it held, and by how
    much it held in the worst of them."""

    name: str
    statement: str
    cases: int
    held: int
    least: float

    @property
    def holds(self) -> bool:
        return self.held == self.cases


class Bounded(NamedTuple):
    """The generalisation bound of one trained model beside the error that it bounds, both in
    percent: Lemma 8 for equal weights of the clients."""

    q: float
    bound: float
    error: float


def checks(problems: int = PROBLEMS) -> list[Checked]:
    """Every lemma on so many random problems, solved to optimality.

    >>> from fairfl.paper.lemmas import checks
    >>> all(check.holds for check in checks(problems=3))
    True
    """
    found = list(_problems(problems))
    return [
        _checked("Lemma 3", "L F^q + q F^(q-1) |grad F|^2 bounds the curvature", _bent(found)),
        _checked("Lemma 4", "variance of losses: q = 1 no larger than q = 0", _variances(found)),
        _checked("Lemma 5", "cosine to all-ones: q = 1 no smaller than q = 0", _cosines(found)),
        _checked("Lemma 6", "d/dp H(F^q(w_p)) >= 0 at p = q", _slopes(found)),
        _checked("Lemma 7", "the same for any p and q with two clients", _pairs(problems)),
    ]


ROUNDING = 1e-7
"""What central differences and Newton's method leave of a zero."""


def _checked(name: str, statement: str, margins: Iterator[float]) -> Checked:
    found = list(margins)
    held = sum(margin >= -ROUNDING for margin in found)
    return Checked(name, statement, len(found), held, min(found))


def _problems(count: int) -> Iterator[Quadratics]:
    for seed in range(count):
        yield random_problem(seed, clients=2 + seed % 7, dimensions=1 + seed % 4)


def _bent(problems: list[Quadratics]) -> Iterator[float]:
    """The relative gap between the bound and the largest eigenvalue of the Hessian, anywhere."""
    for place, problem in enumerate(problems):
        w = np.random.default_rng(place).normal(size=problem.centre.shape[1])
        F, g = problem.losses(w), problem.gradients(w)
        for q in Q:
            for k, curvature in enumerate(problem.curvature):
                L = float(np.linalg.eigvalsh(curvature)[-1])
                hessian = F[k] ** q * curvature + q * F[k] ** (q - 1) * np.outer(g[k], g[k])
                above = lipschitz(float(F[k]), float(np.linalg.norm(g[k])), q, L)
                yield 1 - float(np.linalg.eigvalsh(hessian)[-1]) / above


def _fair(problem: Quadratics) -> tuple[np.ndarray, np.ndarray]:
    return problem.losses(solve(problem, 0)), problem.losses(solve(problem, 1))


def _variances(problems: list[Quadratics]) -> Iterator[float]:
    for plain, fair in map(_fair, problems):
        yield float(np.var(plain) - np.var(fair))


def _cosines(problems: list[Quadratics]) -> Iterator[float]:
    for plain, fair in map(_fair, problems):
        yield cosine(fair) - cosine(plain)


def _slopes(problems: list[Quadratics]) -> Iterator[float]:
    """Indexed as the paper's proof does: the power of the objective that w_p minimises."""
    for problem in problems:
        for q in Q:
            yield entropy_slope(problem, q, q + 1)


def _pairs(count: int) -> Iterator[float]:
    for seed in range(count):
        problem = random_problem(seed, clients=2, dimensions=1 + seed % 4)
        for q in Q:
            for power in Q:
                yield entropy_slope(problem, q, power)


def bounds(rounds: int = 500) -> list[Bounded]:
    """The bound on the errors of models trained on the synthetic data, on their test rows.

    Test rows were not trained on, so the bound's complexity term is 0 and it holds with probability
    95 %; the error beside it is measured on the validation rows, which are as fresh.
    """
    data = datasets.load("synthetic")
    model, family = models.softmax_regression(data), q_fedavg(q=[0, 1, 5])
    result = train(data, model, family, rounds=rounds, evaluate_every=rounds)
    return [_bounded(result, member) for member in range(len(result))]


def _bounded(result: Result, member: int) -> Bounded:
    found = result.members[member].final
    test, fresh = found["test"], found["validation"]
    weights = np.full(len(test.size), 1 / len(test.size))
    q = result.members[member].hyper["q"]
    above = bound(1 - test.accuracy / 100, test.size, q, weights=weights)
    return Bounded(q, 100 * above, float(100 - fresh.accuracy.mean()))
