"""The engine against the paper's algorithms as printed (oracle.py), after 5 rounds.

Only the inputs are shared: rows, splits, cohorts and shuffles come from fairfl's public draws.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fairfl
import oracle
from fairfl.clients.federated import FederatedData
from fairfl.simulation.plan import cohort_of, shuffles_of

ROUNDS = 5
SEED = 3
Q = [0, 0.001, 0.1, 1, 5, 20]
SIZES = [1, 2, 3, 7, 10, 19, 20, 50, 64, 128, 333, 500]
FEATURES, CLASSES = 6, 4
SAMPLERS = ["by-size", "by-size-with-replacement", "uniform", "everyone"]
WEIGHTS = ["size", "equal"]


@dataclass(frozen=True)
class Case:
    """One configuration; `batch_size` 0 stands for the full gradient of q-FedSGD."""

    model: str
    sampler: str
    weights: str
    cohort: int
    epochs: int = 1
    batch_size: int = 0
    L: float | None = None

    @property
    def learning_rate(self) -> float:
        """.01, over the number of rows that a step adds up."""
        return 0.01 / (self.batch_size or 50) if self.model == "svm-sum" else 0.01

    def __str__(self) -> str:
        work = f"E{self.epochs}-B{self.batch_size}" if self.batch_size else "gradient"
        return f"{self.model}-{self.sampler}-{self.weights}-K{self.cohort}-{work}"


CASES = [
    Case("softmax", "by-size", "size", 10, 1, 10),
    Case("softmax", "by-size", "equal", 1, 3, 7),
    Case("softmax", "by-size-with-replacement", "size", 12, 3, 64),
    Case("softmax", "by-size-with-replacement", "equal", 10, 1, 7, L=30.0),
    Case("softmax", "uniform", "size", 10, 3, 10),
    Case("softmax", "uniform", "equal", 12, 1, 500),
    Case("softmax", "everyone", "size", 12, 1, 7),
    Case("softmax", "everyone", "equal", 12, 3, 10),
    Case("svm-mean", "by-size", "size", 12, 3, 7),
    Case("svm-mean", "by-size", "equal", 10, 1, 64),
    Case("svm-mean", "by-size-with-replacement", "size", 10, 3, 10),
    Case("svm-mean", "by-size-with-replacement", "equal", 1, 1, 1),
    Case("svm-mean", "uniform", "size", 1, 1, 7),
    Case("svm-mean", "uniform", "equal", 10, 3, 7),
    Case("svm-mean", "everyone", "size", 12, 3, 500),
    Case("svm-mean", "everyone", "equal", 12, 1, 10),
    Case("svm-sum", "by-size", "size", 1, 1, 7),
    Case("svm-sum", "by-size", "equal", 12, 3, 10),
    Case("svm-sum", "by-size-with-replacement", "size", 10, 1, 10),
    Case("svm-sum", "by-size-with-replacement", "equal", 12, 3, 7),
    Case("svm-sum", "uniform", "size", 12, 1, 64),
    Case("svm-sum", "uniform", "equal", 1, 3, 7),
    Case("svm-sum", "everyone", "size", 12, 1, 10),
    Case("svm-sum", "everyone", "equal", 12, 3, 7),
    Case("softmax", "by-size", "size", 10),
    Case("softmax", "everyone", "size", 12, L=20.0),
    Case("svm-mean", "uniform", "equal", 1),
    Case("svm-mean", "by-size-with-replacement", "size", 10),
    Case("svm-sum", "by-size", "equal", 10),
    Case("svm-sum", "everyone", "equal", 12),
]


@cache
def made_up(classes: int, split: tuple[float, float, float] | None = None) -> FederatedData:
    """Clients of 1 to 500 rows, in no order, each with a centre and a labelling of its own."""
    draw = np.random.default_rng(20)
    clients = {}
    for size in draw.permutation(SIZES):
        x = draw.normal(size=(size, FEATURES)) + draw.normal(size=FEATURES)
        scores = x @ draw.normal(size=(FEATURES, classes)) + 2 * draw.normal(size=classes)
        clients[f"client of {size}"] = (x.astype(np.float32), scores.argmax(axis=1))
    return fairfl.from_arrays(clients, split=split)


def problem_of(model: str) -> tuple[FederatedData, Any, oracle.Objective, int]:
    """Data, fairfl's model, the oracle's objective, and how many parameters there are."""
    if model == "softmax":
        data = made_up(CLASSES)
        objective = oracle.softmax_cross_entropy(FEATURES, CLASSES)
        return data, fairfl.models.softmax_regression(data), objective, (FEATURES + 1) * CLASSES
    reduction = "sum" if model == "svm-sum" else "mean"
    data = made_up(2)
    ours = fairfl.models.linear_svm(data, reduction=reduction)
    return data, ours, oracle.hinge(reduction), FEATURES + 1


def algorithm_of(case: Case, **changed):
    options = {"q": Q, "learning_rate": case.learning_rate, "L": case.L} | changed
    options |= {"sampler": case.sampler, "weights": case.weights}
    if not case.batch_size:
        return fairfl.q_fedsgd(**options)
    return fairfl.q_fedavg(**options, epochs=case.epochs, batch_size=case.batch_size)


def replayed(data, algorithm, case: Case, objective, seed=SEED) -> oracle.Problem:
    """The cohorts and shuffles of a seed, with weights from the oracle's own table."""
    train = data.split(seed).train
    p = train.sizes / train.sizes.sum()
    u = oracle.objective_weight(case.sampler, case.weights, p, case.cohort == data.clients)
    rounds = []
    for t in range(ROUNDS):
        ids, _ = cohort_of(data, algorithm, case.cohort, seed, t)
        rounds.append(
            [
                oracle.Visit(
                    train.of(k), shuffles_of(train.of(k), seed, t, k, case.epochs), float(u[k])
                )
                for k in ids.tolist()
            ]
        )
    return oracle.Problem(objective, data.x.astype(np.float64), data.y, rounds)


def expected(problem, start, case: Case, q, learning_rate=None):
    eta = learning_rate or case.learning_rate
    L = case.L or 1 / eta
    if not case.batch_size:
        return oracle.q_fedsgd(problem, start, q, L)
    return oracle.q_fedavg(problem, start, q, L, eta, case.batch_size)


@cache
def expected_for_every_q(case: Case) -> dict[float, np.ndarray]:
    data, _, objective, parameters = problem_of(case.model)
    problem = replayed(data, algorithm_of(case), case, objective)
    return {q: expected(problem, np.zeros(parameters), case, q) for q in Q}


def flat(params, experiment: int) -> np.ndarray:
    """An experiment's parameters the oracle's way: weights row by row, then the bias."""
    parts = [np.asarray(params[name][experiment], np.float64) for name in ("weights", "bias")]
    return np.concatenate([part.ravel() for part in parts])


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    assert np.linalg.norm(wanted) > 0
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def worst_error(case: Case, x64: bool, lanes: int | None = None) -> float:
    data, model, _, _ = problem_of(case.model)
    result = fairfl.train(
        data,
        model,
        algorithm_of(case),
        rounds=ROUNDS,
        cohort=case.cohort,
        seed=SEED,
        x64=x64,
        lanes=lanes,
    )
    assert [member["q"] for member in result.experiments] == Q
    wanted = expected_for_every_q(case)
    return max(relative_error(flat(result.params, i), wanted[q]) for i, q in enumerate(Q))


# --- the engine agrees ----------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=str)
def test_engine_agrees_with_the_printed_algorithms_in_float64(case):
    assert worst_error(case, x64=True) < 1e-9


@pytest.mark.parametrize("case", CASES, ids=str)
def test_engine_agrees_with_the_printed_algorithms_in_float32(case):
    assert worst_error(case, x64=False) < 1e-5


def test_every_member_of_a_sweep_agrees_on_its_own_split():
    """Two seeds, each with its own split, cohorts and shuffles, by two q by two learning rates."""
    case = Case("softmax", "by-size", "size", 5, 1, 10)
    data = made_up(CLASSES, (0.8, 0.1, 0.1))
    algorithm = algorithm_of(case, q=[0, 2], learning_rate=[0.01, 0.03])
    model = fairfl.models.softmax_regression(data)
    result = fairfl.train(
        data, model, algorithm, rounds=ROUNDS, cohort=case.cohort, seed=[7, 1], x64=True
    )
    objective = oracle.softmax_cross_entropy(FEATURES, CLASSES)
    problems = {seed: replayed(data, algorithm, case, objective, seed) for seed in (7, 1)}
    start = np.zeros((FEATURES + 1) * CLASSES)
    assert len(result.experiments) == 8
    for i, member in enumerate(result.experiments):
        problem = problems[int(member["seed"])]
        wanted = expected(problem, start, case, member["q"], member["learning_rate"])
        assert relative_error(flat(result.params, i), wanted) < 1e-9


@pytest.mark.parametrize("lanes", [1, 4])
def test_every_number_of_lanes_agrees(lanes):
    case = Case("softmax", "everyone", "equal", 12, 3, 10)
    assert worst_error(case, x64=True, lanes=lanes) < 1e-9


@pytest.mark.parametrize("work", ["fedavg", "fedsgd"])
def test_q_zero_by_name_agrees(work):
    case = Case("softmax", "uniform", "size", 10, *((3, 7) if work == "fedavg" else (1, 0)))
    data, model, objective, parameters = problem_of(case.model)
    local = {"epochs": 3, "batch_size": 7} if work == "fedavg" else {}
    algorithm = getattr(fairfl, work)(learning_rate=0.01, sampler="uniform", **local)
    result = fairfl.train(data, model, algorithm, rounds=ROUNDS, cohort=10, seed=SEED, x64=True)
    problem = replayed(data, algorithm, case, objective)
    wanted = expected(problem, np.zeros(parameters), case, 0)
    assert relative_error(flat(result.params, 0), wanted) < 1e-9


@pytest.mark.parametrize("x64", [False, True])
def test_hinge_is_flat_at_its_kink(x64):
    """Two clients of one row, x = +-1 of class 1 and 0, learning rate 1/2, two epochs.

    The first step takes them to w = 1/2, b = +-1/2, where both margins are exactly 1. In the second
    only the penalty pulls: w = 1/4, b = +-1/2, and their mean is w = 1/4, b = 0. A step that took
    the kink for steep would end at w > 1/4.
    """
    one = np.ones((1, 1), np.float32)
    data = fairfl.from_arrays({"a": (one, [1]), "b": (-one, [0])}, split=None)
    algorithm = fairfl.fedavg(learning_rate=0.5, epochs=2, batch_size=1, sampler="everyone")
    model = fairfl.models.linear_svm(data, reduction="sum")
    result = fairfl.train(data, model, algorithm, rounds=1, cohort=2, x64=x64)
    assert flat(result.params, 0).tolist() == [0.25, 0]


# --- what the draws have to promise ---------------------------------------------------------------


@pytest.mark.parametrize("cohort", [1, 5, 12])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_cohort_weighs_its_clients_as_the_objective_demands(sampler, weights, cohort):
    if sampler == "everyone":
        cohort = len(SIZES)
    data = made_up(CLASSES, (0.8, 0.1, 0.1))
    algorithm = algorithm_of(Case("softmax", sampler, weights, cohort, 1, 10))
    sizes = data.split(SEED).train.sizes
    u = oracle.objective_weight(sampler, weights, sizes / sizes.sum(), cohort == data.clients)
    for t in range(ROUNDS):
        ids, found = cohort_of(data, algorithm, cohort, SEED, t)
        assert len(ids) == cohort
        assert_allclose(found, u[ids], rtol=1e-12)
        if sampler != "by-size-with-replacement":
            assert len(set(ids.tolist())) == cohort


def test_shuffles_are_permutations_that_differ():
    """By epoch, client and round, so that agreement with the oracle is not agreement on nothing."""
    rows = np.arange(30, 90, dtype=np.int32)
    drawn = [*shuffles_of(rows, 0, 0, 1, 2), *shuffles_of(rows, 0, 1, 1, 1)]
    drawn += [*shuffles_of(rows, 0, 0, 2, 1), *shuffles_of(rows, 1, 0, 1, 1)]
    assert all(sorted(order.tolist()) == rows.tolist() for order in drawn)
    assert len({tuple(order.tolist()) for order in drawn}) == len(drawn) == 5


# --- the cases are worth their time ---------------------------------------------------------------


def test_cases_cover_what_they_should():
    assert {(c.sampler, c.weights, c.model) for c in CASES if c.batch_size} == {
        (sampler, weights, model)
        for sampler in SAMPLERS
        for weights in WEIGHTS
        for model in ("softmax", "svm-mean", "svm-sum")
    }
    for model in ("softmax", "svm-mean", "svm-sum"):
        these = [c for c in CASES if c.model == model]
        assert {c.cohort for c in these} == {1, 10, 12}
        assert {c.epochs for c in these if c.batch_size} == {1, 3}
        assert {7, 10} <= {c.batch_size for c in these}
        assert 0 in {c.batch_size for c in these}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cases_tell_neighbouring_q_apart(case):
    """Otherwise an engine that ignored q would agree too, at least in float32."""
    models = list(expected_for_every_q(case).values())
    gaps = [relative_error(a, b) for a, b in pairwise(models)]
    assert min(gaps) > 2e-5


# --- the oracle is right --------------------------------------------------------------------------

OBJECTIVES = {
    "softmax": (oracle.softmax_cross_entropy(FEATURES, CLASSES), (FEATURES + 1) * CLASSES),
    "svm-mean": (oracle.hinge("mean"), FEATURES + 1),
    "svm-sum": (oracle.hinge("sum"), FEATURES + 1),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_oracle_gradient_is_the_slope_of_its_loss(name):
    (value, gradient), parameters = OBJECTIVES[name]
    data = made_up(CLASSES if name == "softmax" else 2)
    x, y = data.x[:40].astype(float), data.y[:40]
    w = np.random.default_rng(0).normal(size=parameters)
    nudges = 1e-6 * np.eye(parameters)
    slopes = [(value(w + e, x, y) - value(w - e, x, y)) / 2e-6 for e in nudges]
    assert_allclose(gradient(w, x, y), slopes, rtol=1e-6, atol=1e-7)


def test_oracle_losses_by_hand():
    """log 4 at zero; 2 + 0 + 1/2 and its mean with margins -1 and 3 at w = 1, b = 0."""
    x, y = np.array([[1.0], [3.0]]), np.array([0, 1])
    assert oracle.softmax_cross_entropy(1, 4).value(np.zeros(8), x, y) == pytest.approx(np.log(4))
    w = np.array([1.0, 0.0])
    assert oracle.hinge("sum").value(w, x, y) == 2.5
    assert oracle.hinge("mean").value(w, x, y) == 1.5
    assert oracle.hinge("sum").gradient(w, x, y).tolist() == [2, 1]
    assert oracle.hinge("mean").gradient(w, x, y).tolist() == [1.5, 0.5]


def test_oracle_hinge_is_flat_at_its_kink():
    x, y = np.array([[1.0]]), np.array([1])
    assert oracle.hinge("sum").gradient(np.array([0.5, 0.5]), x, y).tolist() == [0.5, 0]


QUADRATIC = oracle.Objective(
    value=lambda w, x, y: float(np.mean((w - x) ** 2) / 2),
    gradient=lambda w, x, y: np.mean(w - x, axis=0),
)


def two_points(u=(1.0, 1.0), epochs=1) -> oracle.Problem:
    """F_1 = (w - 2)^2 / 2 and F_2 = (w - 4)^2 / 2: at 0 they are 2 and 8, with slopes -2 and -4."""
    x, y = np.array([[2.0], [4.0]]), np.zeros(2)
    rows = [np.array([k]) for k in range(2)]
    cohort = [oracle.Visit(rows[k], [rows[k]] * epochs, u[k]) for k in range(2)]
    return oracle.Problem(QUADRATIC, x, y, [cohort])


@pytest.mark.parametrize(
    ("q", "u", "step"),
    [
        (0, (1, 1), (2 + 4) / (1 + 1)),
        (1, (1, 1), (2 * 2 + 8 * 4) / (4 + 2 + 16 + 8)),
        (2, (1, 1), (4 * 2 + 64 * 4) / (2 * 2 * 4 + 4 + 2 * 8 * 16 + 64)),
        (1, (3, 1), (3 * 2 * 2 + 8 * 4) / (3 * (4 + 2) + 16 + 8)),
    ],
)
def test_oracle_q_fedsgd_by_hand(q, u, step):
    assert oracle.q_fedsgd(two_points(u), np.zeros(1), q, L=1.0) == pytest.approx(step)


def test_oracle_q_fedavg_by_hand():
    """Learning rate 1/2 goes half the way at each of two steps: to 3/2 and 3; L = 2, q = 1."""
    found = oracle.q_fedavg(two_points(epochs=2), np.zeros(1), 1, 2.0, 0.5, 1)
    assert found == pytest.approx((2 * 3 + 8 * 6) / (9 + 2 * 2 + 36 + 2 * 8))


def test_oracle_local_sgd_keeps_the_smaller_last_batch():
    """Learning rate 1 goes to the mean of each batch, so the last batch says where it ends."""
    x = np.array([[0.0], [6.0], [3.0]])
    problem = oracle.Problem(QUADRATIC, x, np.zeros(3), [])
    assert oracle.local_sgd(problem, np.zeros(1), [np.arange(3)], 1.0, 2) == pytest.approx(3)
    assert oracle.local_sgd(problem, np.zeros(1), [np.arange(3)], 1.0, 5) == pytest.approx(3)
    assert oracle.local_sgd(problem, np.zeros(1), [np.array([2, 0, 1])], 1.0, 2) == pytest.approx(6)


@pytest.mark.parametrize("L", [100.0, 3.0])
def test_oracle_at_q_zero_is_fedavg_as_printed(L):
    """sum u L (w - w_k) / sum u L = w - sum u w_k / sum u, whatever L is."""
    case = Case("softmax", "uniform", "size", 10, 3, 7)
    data, _, objective, parameters = problem_of(case.model)
    problem = replayed(data, algorithm_of(case), case, objective)
    start = np.zeros(parameters)
    found = oracle.q_fedavg(problem, start, 0, L, 0.01, 7)
    assert relative_error(found, oracle.fedavg(problem, start, 0.01, 7)) < 1e-12


@pytest.mark.parametrize(
    ("sampler", "complete", "by_size", "equally"),
    [
        ("by-size-with-replacement", False, [1, 1], [4, 4 / 3]),
        ("by-size-with-replacement", True, [1, 1], [4, 4 / 3]),
        ("by-size", False, [1, 1], [4, 4 / 3]),
        ("by-size", True, [0.25, 0.75], [1, 1]),
        ("uniform", False, [0.25, 0.75], [1, 1]),
        ("uniform", True, [0.25, 0.75], [1, 1]),
        ("everyone", True, [0.25, 0.75], [1, 1]),
    ],
)
def test_oracle_weights_of_clients_with_a_quarter_and_three(sampler, complete, by_size, equally):
    p = np.array([0.25, 0.75])
    assert_allclose(oracle.objective_weight(sampler, "size", p, complete), by_size)
    assert_allclose(oracle.objective_weight(sampler, "equal", p, complete), equally)
