"""Ditto: a model for all as FedAvg makes it, and beside it one that each client keeps."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fairfl
import oracle
from conftest import made_up
from fairfl.runs import folder
from fairfl.simulation import engine
from fairfl.simulation.plan import cohort_of, shuffles_of

FEATURES, CLASSES, ROUNDS, SEED = 5, 3, 5, 3
RATE, EPOCHS, BATCH = 0.1, 2, 8
LOCAL = {"learning_rate": RATE, "epochs": EPOCHS, "batch_size": BATCH}
LAMBDAS = [0, 0.5, 4]


@cache
def shared():
    return made_up([9, 20, 30, 41])


@cache
def softmax():
    return fairfl.models.softmax_regression(shared())


def trained(algorithm, data=None, **options):
    given = {"rounds": ROUNDS, "cohort": 2, "seed": SEED, "x64": True, **options}
    return fairfl.train(data or shared(), softmax(), algorithm, **given)


@cache
def family():
    return trained(fairfl.ditto(lam=LAMBDAS, **LOCAL), evaluate_every=2)


def by_hand(lam):
    """w and every v_k after all rounds, in plain NumPy."""
    data, objective = shared(), oracle.softmax_cross_entropy(FEATURES, CLASSES)
    x, y, train = data.x.astype(np.float64), data.y, data.split(SEED).train
    w = np.zeros((FEATURES + 1) * CLASSES)
    v = [w.copy() for _ in range(data.clients)]
    for t in range(ROUNDS):
        ids, u = cohort_of(data, fairfl.ditto(), 2, SEED, t)
        found = []
        for k in ids.tolist():
            w_k = w
            for order in shuffles_of(train.of(k), SEED, t, k, EPOCHS):
                for at in range(0, len(order), BATCH):
                    rows = order[at : at + BATCH]
                    pull = objective.gradient(v[k], x[rows], y[rows]) + lam * (v[k] - w)
                    v[k] = v[k] - RATE * pull
                    w_k = w_k - RATE * objective.gradient(w_k, x[rows], y[rows])
            found.append(w_k)
        w = np.average(found, axis=0, weights=u)
    return w, v


def served(w, k):
    """Accuracy in percent and loss of one client on its test rows."""
    objective, rows = (
        oracle.softmax_cross_entropy(FEATURES, CLASSES),
        shared().split(SEED).test.of(k),
    )
    x, y = shared().x[rows].astype(np.float64), shared().y[rows]
    scores = x @ w[:-CLASSES].reshape(FEATURES, CLASSES) + w[-CLASSES:]
    return 100 * np.mean(scores.argmax(axis=1) == y), objective.value(w, x, y)


@pytest.mark.parametrize("place", range(3))
def test_every_client_is_served_by_the_model_that_it_keeps(place):
    _, v = by_hand(LAMBDAS[place])
    found = family().personal[place].clients("test")
    wanted = [served(v[k], k) for k in range(4)]
    assert_allclose(found["accuracy"], [accuracy for accuracy, _ in wanted])
    assert_allclose(found["loss"], [loss for _, loss in wanted], rtol=1e-9)


def test_the_model_for_all_is_fedavgs_bit_for_bit():
    own = trained(fairfl.ditto(lam=LAMBDAS, **LOCAL), x64=False)
    plain = trained(fairfl.fedavg(**LOCAL), width=3, x64=False)
    for place in range(3):
        assert_array_equal(own.params["weights"][place], plain.params["weights"][0])
        assert_array_equal(own[place].clients()["loss"], plain.clients()["loss"])


def test_without_a_pull_clients_train_alone():
    """lam = 0: whatever the others do, and their data are, v_k is the same."""
    others = shared().x.copy()
    others[shared().offsets[1] :] *= -3
    changed = replace(shared(), x=others)
    both = [
        trained(fairfl.ditto(lam=0, **LOCAL), data=data, cohort=4).personal.clients()["loss"]
        for data in (shared(), changed)
    ]
    assert both[0][0] == both[1][0]
    assert both[0][1] != both[1][1]


def test_a_strong_pull_ties_clients_to_the_model_for_all():
    """One step of size eta lam = 1 goes to w but for a gradient's length."""
    apart = [
        np.abs(r.personal.clients()["loss"] - r.clients()["loss"]).max()
        for r in (trained(fairfl.ditto(lam=lam, **LOCAL), cohort=4, rounds=20) for lam in (0, 9))
    ]
    assert apart[1] < apart[0] / 2


def test_a_sweep_equals_its_members():
    alone = trained(fairfl.ditto(lam=0.5, **LOCAL))
    together = family()[1]
    assert_allclose(
        together.personal.clients()["loss"], alone.personal.clients()["loss"], rtol=1e-9
    )


@pytest.mark.parametrize("lanes", [1, 2])
def test_lanes_and_chunks_change_nothing(lanes, monkeypatch):
    from fairfl.simulation import plan

    whole = trained(fairfl.ditto(**LOCAL), lanes=lanes)
    monkeypatch.setattr(plan, "STEPS", 1)
    monkeypatch.setattr(engine, "SECONDS", 0)
    pieces = trained(fairfl.ditto(**LOCAL), lanes=lanes)
    assert_array_equal(whole.personal.clients()["loss"], pieces.personal.clients()["loss"])
    one = trained(fairfl.ditto(**LOCAL), lanes=1)
    assert_allclose(whole.personal.clients()["loss"], one.personal.clients()["loss"], rtol=1e-9)


def test_clients_that_never_train_keep_no_model():
    x, y = (
        np.random.default_rng(1).normal(size=(20, FEATURES)).astype(np.float32),
        np.arange(20) % 3,
    )
    data = fairfl.from_arrays(
        {"a": (x[:9], y[:9])}, test={"a": (x[9:12], y[9:12]), "guest": (x[12:], y[12:])}
    )
    result = trained(fairfl.ditto(**LOCAL), data=data, cohort=1)
    assert result.clients()["client"].tolist() == ["a", "guest"]
    assert result.personal.clients()["client"].tolist() == ["a"]


def test_algorithms_without_own_models_have_no_second_set():
    result = trained(fairfl.fedavg(**LOCAL))
    assert result.personal is None


def test_a_refused_reply_leaves_the_model_that_the_client_keeps():
    data = shared()
    broken = data.x.copy()
    rows = data.split(SEED).train.of(2)
    broken[rows] = np.inf
    bad = replace(data, x=broken)
    result = trained(fairfl.ditto(**LOCAL), data=bad, cohort=4)
    found = result.personal.clients("test")
    assert_allclose(found["loss"][2], np.log(CLASSES), rtol=1e-12)
    assert np.isfinite(found["loss"]).all()


def test_a_dead_experiment_keeps_the_models_of_its_last_good_round():
    """At this rate the model is infinite soon; the other member goes on."""
    wild = {**LOCAL, "learning_rate": [0.1, 1e300]}
    result = trained(fairfl.ditto(**wild), cohort=4)
    assert [member.stopped for member in result.members] == [False, True]
    assert np.isfinite(result.personal[1].clients()["loss"]).all()


def test_a_run_keeps_both_sets_of_numbers(tmp_path):
    written = folder.write(family(), tmp_path / "run")
    again = fairfl.load_run(written)
    for split in ("train", "test"):
        assert_array_equal(
            again.personal.clients(split)["loss"], family().personal.clients(split)["loss"]
        )
        assert_array_equal(again.clients(split)["loss"], family().clients(split)["loss"])
    assert_array_equal(
        again.personal.history["test_average"], family().personal.history["test_average"]
    )
    lines = (written / "personal_clients.csv").read_text().splitlines()
    assert lines[0] == (written / "clients.csv").read_text().splitlines()[0]
    assert len(lines) > 4 * 3 * 3
    assert (written / "personal_fairness.csv").is_file()


def test_json_has_the_personal_models_beside_the_splits():
    from fairfl.runs.json import as_object

    experiment = as_object(family())["experiments"][0]
    own = family().personal[0].fairness("test")
    assert experiment["personal"]["test"]["average"] == own["average"][0]
    assert experiment["splits"]["test"]["average"] == family()[0].fairness("test")["average"][0]
    assert "personal" not in as_object(trained(fairfl.fedavg(**LOCAL)))["experiments"][0]


def test_a_run_that_would_not_fit_is_refused_before_it_starts(monkeypatch):
    """18 parameters of 4 bytes, 4 clients, 3 experiments: 864 bytes."""
    monkeypatch.setattr(engine, "PERSONAL", 863)
    with pytest.raises(ValueError, match=r"own models of 4 clients in 3 experiments take 0\.0 GiB"):
        trained(fairfl.ditto(lam=LAMBDAS, **LOCAL), x64=False)
    monkeypatch.setattr(engine, "PERSONAL", 864)
    trained(fairfl.ditto(lam=LAMBDAS, **LOCAL), x64=False)
    assert trained(fairfl.fedavg(**LOCAL)).personal is None
