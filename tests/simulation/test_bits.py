"""Same machine, same configuration: same bytes, whatever the workers, the chunks or the place."""

from concurrent.futures import Executor, Future, ThreadPoolExecutor

import jax
import numpy as np
import pytest

import fairfl
from conftest import SIZES, made_up
from fairfl.simulation import engine, plan

Q = [0, 0.1, 1, 5]
ROUNDS = 12


def leaves(result):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(result.params)]


def same_bytes(left, right):
    return all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(leaves(left), leaves(right), strict=True)
    )


def trained(data, model, algorithm=None, **options):
    algorithm = algorithm or fairfl.q_fedavg(q=Q, epochs=2, batch_size=8)
    return fairfl.train(data, model, algorithm, **{"rounds": ROUNDS, "cohort": 4, **options})


KINDS = {
    "softmax": fairfl.models.softmax_regression,
    "svm": lambda data: fairfl.models.linear_svm(data, reduction="mean"),
    "mlp": lambda data: fairfl.models.mlp(data, hidden=(7,)),
}


@pytest.fixture(params=KINDS)
def case(request, two_classes):
    return two_classes, KINDS[request.param](two_classes)


class Reversing(Executor):
    """Runs tasks one at a time, the last submitted first."""

    def __init__(self):
        self.waiting = []

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        self.waiting.append((future, fn, args, kwargs))
        if len(self.waiting) == 2:
            self.run()
        return future

    def run(self):
        while self.waiting:
            future, fn, args, kwargs = self.waiting.pop()
            future.set_result(fn(*args, **kwargs))


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("pair", ["avg", "sgd"])
def test_q_zero_equals_fedavg_bit_for_bit(case, pair, width):
    """Flower's QFedAvg(q=0) differs from its FedAvg."""
    if pair == "avg":
        fair, plain = fairfl.q_fedavg(q=0, batch_size=8), fairfl.fedavg(batch_size=8)
    else:
        fair, plain = fairfl.q_fedsgd(q=0), fairfl.fedsgd()
    data, model = case
    assert same_bytes(
        trained(data, model, fair, width=width), trained(data, model, plain, width=width)
    )


def test_a_sweep_equals_its_members_run_alone(case):
    data, model = case
    family = trained(data, model, seed=[0, 1], width=4)
    for place, (seed, q) in enumerate([(s, q) for s in (0, 1) for q in Q]):
        algorithm = fairfl.q_fedavg(q=q, epochs=2, batch_size=8)
        alone = trained(data, model, algorithm, seed=seed, width=4)
        assert same_bytes(family[place], alone)
        np.testing.assert_array_equal(
            family[place].clients("test")["loss"], alone.clients("test")["loss"]
        )


def test_a_single_run_equals_a_sweeps_member_to_float_tolerance():
    """At a learning rate of .01, where rounds do not amplify rounding."""
    data = made_up(SIZES)
    model = fairfl.models.softmax_regression(data)
    family = trained(data, model, fairfl.q_fedavg(q=Q, learning_rate=0.01))
    for place, q in enumerate(Q):
        alone = trained(data, model, fairfl.q_fedavg(q=q, learning_rate=0.01))
        for a, b in zip(leaves(family[place]), leaves(alone), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_members_place_in_its_sweep_does_not_matter(case):
    data, model = case
    forward = trained(data, model)
    backward = trained(data, model, fairfl.q_fedavg(q=Q[::-1], epochs=2, batch_size=8))
    for place in range(len(Q)):
        assert same_bytes(forward[place], backward[len(Q) - 1 - place])


@pytest.mark.parametrize("width", [2, 3, 5, 7, 8, 13, 16, 17])
def test_no_place_matters_at_any_width(model, data, width):
    q = [round(0.1 * i, 1) for i in range(width)]
    options = {"rounds": 3, "width": width}
    forward = trained(data, model, fairfl.q_fedavg(q=q, batch_size=8), **options)
    rotated = trained(data, model, fairfl.q_fedavg(q=q[1:] + q[:1], batch_size=8), **options)
    for place in range(width):
        assert same_bytes(forward[place], rotated[(place - 1) % width])


def test_the_number_and_order_of_workers_do_not_matter(model, data):
    one, many = ThreadPoolExecutor(1), ThreadPoolExecutor(4)
    with one, many:
        results = [
            trained(data, model, seed=[0, 1], executor=executor, width=4)
            for executor in (None, one, many, Reversing())
        ]
    assert all(same_bytes(results[0], other) for other in results[1:])
    histories = [result.history for result in results]
    for name in histories[0]:
        for other in histories[1:]:
            np.testing.assert_array_equal(histories[0][name], other[name])


@pytest.mark.parametrize("lanes", [1, 3])
def test_the_chunk_size_does_not_matter(model, data, monkeypatch, lanes):
    whole = trained(data, model, lanes=lanes)
    monkeypatch.setattr(plan, "STEPS", 1)
    monkeypatch.setattr(engine, "SECONDS", 0)
    pieces = trained(data, model, lanes=lanes)
    assert same_bytes(whole, pieces)
    for name, column in whole.history.items():
        np.testing.assert_array_equal(column, pieces.history[name])


def test_how_often_it_is_evaluated_does_not_matter(model, data):
    assert same_bytes(
        trained(data, model, evaluate_every=1), trained(data, model, evaluate_every=ROUNDS)
    )


def test_members_of_one_seed_share_split_cohorts_and_batches(data):
    """Common random numbers: members compare as pairs."""
    first, second = (
        plan.planner(data.split(0).train, fairfl.q_fedavg(q=q), 4, seed=0).chunk(0, 5)
        for q in (0, 5)
    )
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_seeds_differ_and_the_split_can_be_pinned(model, data):
    free = trained(data, model, seed=[0, 1])
    pinned = trained(data, model, seed=[0, 1], split_seed=0)
    assert not same_bytes(free[0], free[len(Q)])
    assert not same_bytes(pinned[0], pinned[len(Q)])
    assert same_bytes(free[0], pinned[0])
    losses = [pinned[i].clients("test")["size"].sum() for i in (0, len(Q))]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("lanes", [2, 3, 4])
def test_lanes_change_the_order_of_work_but_not_its_result(model, data, lanes):
    algorithm = fairfl.q_fedavg(q=1, learning_rate=0.01, epochs=2, batch_size=8)
    alone = trained(data, model, algorithm, lanes=1)
    beside = trained(data, model, algorithm, lanes=lanes)
    for a, b in zip(leaves(alone), leaves(beside), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(alone.history["loss"], beside.history["loss"], rtol=1e-5)
