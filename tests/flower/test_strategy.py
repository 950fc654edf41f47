"""A federation gives what the simulator gives, and survives its clients."""

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Error, MetricRecord

import fairfl
import federations
from fairfl.flower import BELIEVE_ALL, FairStrategy, Trust


@pytest.fixture(autouse=True)
def identity():
    federations.identify()


def federated(algorithm, rounds=4, grid=None, model=None, seconds=60, **options):
    chosen = {"clients": federations.CLIENTS, "cohort": 3, "trust": BELIEVE_ALL, **options}
    strategy = FairStrategy(algorithm, **chosen)
    record = model or federations.arrays()
    history = strategy.start(grid or federations.Nodes(federations.apps()), record, rounds, seconds)
    return strategy, history


FULL = federations.FULL

ALGORITHMS = [
    fairfl.fedavg(**FULL),
    fairfl.q_fedavg(q=0, **FULL),
    fairfl.q_fedavg(q=1, **FULL),
    fairfl.q_fedavg(q=5, **FULL),
    fairfl.q_fedavg(q=1, learning_rate=0.5, epochs=2, batch_size=5),
    fairfl.q_fedsgd(q=2, learning_rate=0.5),
    fairfl.afl(gamma=0.3, learning_rate=0.5),
    fairfl.term(t=2, **FULL),
    fairfl.fedmgda(**FULL),
    fairfl.fedprox(mu=0.5, epochs=3, **FULL),
    fairfl.gifair(c=0.5, sampler="uniform", **FULL),
    fairfl.with_server(fairfl.fedavg(**FULL), "adam", 0.1),
    fairfl.fedavg(sampler="by-size-with-replacement", weights="equal", **FULL),
]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: f"{a.name}-{a.experiments[0]}")
def test_a_federation_gives_what_the_simulator_gives(algorithm):
    strategy, history = federated(algorithm, seed=3)
    simulated = fairfl.train(
        federations.data(), federations.model(), algorithm, rounds=4, cohort=3, seed=3,
        evaluate_every=1,
    )  # fmt: skip
    for name, leaf in simulated.members[0].params.items():
        np.testing.assert_allclose(history.arrays[name].numpy(), leaf, atol=1e-5)
    for name in ("loss", "effective_step", "coefficient_spread"):
        mine, theirs = (one.history[name] for one in (strategy.result, simulated))
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
    for split in ("train", "test"):
        for name in ("average", "worst10", "variance"):
            mine, theirs = (one.fairness(split)[name] for one in (strategy.result, simulated))
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


def test_neither_the_order_of_nodes_nor_of_replies_changes_a_byte():
    one, other = (
        federated(fairfl.q_fedavg(q=1, **FULL), grid=federations.Nodes(federations.apps(), order=o))
        for o in (1, -1)
    )
    for name, array in one[1].arrays.items():
        assert array.data == other[1].arrays[name].data
    assert one[0].result.history["loss"].tolist() == other[0].result.history["loss"].tolist()


def altered(change):
    """A fault that rewrites the arrays and numbers of a reply."""

    def fault(reply):
        arrays = [array.numpy() for array in reply.content["arrays"].values()]
        metrics = dict(reply.content["metrics"])
        arrays = change(arrays, metrics)
        names = list(reply.content["arrays"])[: len(arrays)]
        pairs = zip(names, arrays, strict=True)
        reply.content["arrays"] = ArrayRecord({name: Array(one) for name, one in pairs})
        reply.content["metrics"] = MetricRecord(metrics)
        return reply

    return fault


FAULTS = {
    "holds values that are not finite": altered(lambda a, m: [a[0] * np.nan, a[1]]),
    "array 1 holds values that are not finite": altered(lambda a, m: [a[0] + np.inf, a[1]]),
    "array 2 has the shape": altered(lambda a, m: [a[0], a[1][:-1]]),
    "the reply is empty": altered(lambda a, m: []),
    "it has 1 arrays but the model has 2": altered(lambda a, m: a[:1]),
    "its loss is -1": altered(lambda a, m: m.update({"loss": -1.0}) or a),
    "its loss is nan": altered(lambda a, m: m.update({"loss": float("nan")}) or a),
    "it names no loss": altered(lambda a, m: m.pop("loss") and a),
    "longer than a 32-bit number": altered(lambda a, m: [np.full(3, 3e37, "f4"), a[1]]),
    "times as long as the cohort's median": altered(lambda a, m: [a[0] - 1e6, a[1]]),
    "error 5: the node is gone": lambda reply: Error(5, "the node is gone"),
    "it did not reply before the deadline": lambda reply: None,
}


def silenced(reply):
    return None


@pytest.mark.parametrize("words", FAULTS)
def test_a_faulty_client_counts_as_absent_and_is_reported(words):
    """The others' step is what it would be without the client's reply."""
    results = []
    for fault in (FAULTS[words], silenced):
        grid = federations.Nodes(federations.apps())
        grid.faults[2, "train"] = fault
        algorithm = fairfl.q_fedavg(q=1, sampler="everyone", **FULL)
        trust = Trust(loss_spread=None, loss_growth=None)
        results.append(federated(algorithm, rounds=1, grid=grid, trust=trust, seconds=0.2))
    (strategy, history), (_, without) = results
    for name, array in history.arrays.items():
        assert array.data == without.arrays[name].data
    assert any(n.startswith("client-1 did not count 1 times") and words in n
               for n in strategy.result.notes)  # fmt: skip
    absent = FAULTS[words](None) is None if words.startswith("it did not") else "error" in words
    assert strategy.result.history["absent"].tolist() == [int(absent)]
    assert strategy.result.history["quarantined"].tolist() == [int(not absent)]


def test_an_inflated_loss_is_clipped_and_its_client_named():
    grid = federations.Nodes(federations.apps())
    grid.faults[3, "train"] = altered(lambda a, m: m.update({"loss": 1e30}) or a)
    algorithm = fairfl.q_fedavg(q=5, sampler="everyone", **FULL)
    strategy, _ = federated(algorithm, rounds=2, grid=grid, trust=Trust())
    assert strategy.result.history["clipped"].min() >= 1
    assert any("client-2 (2 rounds)" in note and "was clipped" in note
               for note in strategy.result.notes)  # fmt: skip
    assert np.isfinite(strategy.result.history["effective_step"]).all()


def test_too_few_replies_change_nothing_and_at_last_fail_the_run(tmp_path):
    grid = federations.Nodes(federations.apps())
    options = {"out": tmp_path / "run", "patience": 2, "seconds": 0.2}
    for node in range(1, 6):
        grid.faults[node, "train"] = silenced
    with pytest.raises(RuntimeError, match=r"2 rounds in a row .*client-0: it did not reply"):
        federated(fairfl.fedavg(sampler="everyone", **FULL), grid=grid, **options)
    grid.faults.clear()
    algorithm = fairfl.fedavg(sampler="everyone", **FULL)
    strategy, _ = federated(algorithm, grid=grid, resume=True, **options)
    assert np.isnan(strategy.result.history["loss"][0])
    assert strategy.result.history["absent"].tolist() == [5, 0, 0, 0]


class Killed(BaseException):
    pass


@pytest.mark.parametrize(
    "algorithm",
    [
        fairfl.q_fedavg(q=1, **FULL),
        fairfl.afl(gamma=0.3, learning_rate=0.5),
        fairfl.with_server(fairfl.fedavg(**FULL), "adam", 0.1),
    ],
    ids=lambda a: a.name,
)
def test_a_run_that_died_goes_on_to_the_same_bytes(tmp_path, algorithm):
    federated(algorithm, out=tmp_path / "whole", trust=Trust())
    grid = federations.Nodes(federations.apps())

    def dies(round, arrays):
        if round == 2:
            raise Killed

    strategy = FairStrategy(algorithm, clients=6, cohort=3, out=tmp_path / "parts")
    with pytest.raises(Killed):
        strategy.start(grid, federations.arrays(), 4, 60, evaluate_fn=dies)
    federated(algorithm, out=tmp_path / "parts", resume=True, trust=Trust())
    for file in (tmp_path / "whole").iterdir():
        if file.name != "timings.json":
            assert file.read_bytes() == (tmp_path / "parts" / file.name).read_bytes(), file.name
    assert not (tmp_path / "parts" / "checkpoints").exists()


def test_the_folder_is_a_runs_folder(tmp_path):
    strategy, history = federated(fairfl.fedavg(**FULL), out=tmp_path / "run", name="wards")
    loaded = fairfl.load_run(tmp_path / "run")
    assert loaded.data.name == "wards"
    assert loaded.data.ids == tuple(f"client-{k}" for k in range(6))
    assert loaded.history["loss"].tolist() == strategy.result.history["loss"].tolist()
    assert loaded.params["weights"][0].tolist() == history.arrays["weights"].numpy().tolist()
    assert (
        history.evaluate_metrics_clientapp[4]["test-worst10"]
        == loaded.fairness("test")["worst10"][0]
    )
    assert history.train_metrics_clientapp[4]["loss"] == loaded.history["loss"][3]
    again, _ = federated(fairfl.fedavg(**FULL), out=tmp_path / "run", resume=True, name="wards")
    assert again.result.history["loss"].tolist() == loaded.history["loss"].tolist()


def test_a_late_client_gets_a_place_behind_the_others():
    grid = federations.Nodes(federations.apps())
    grid.hidden = {1}
    algorithm = fairfl.afl(gamma=0.3, learning_rate=0.5)

    def joins(round, arrays):
        grid.hidden = set() if round == 2 else grid.hidden

    strategy = FairStrategy(algorithm, clients=5, cohort=5, trust=BELIEVE_ALL)
    strategy.start(grid, federations.arrays(), 4, 60, evaluate_fn=joins)
    assert strategy.result.data.ids == (*(f"client-{k}" for k in range(1, 6)), "client-0")
    asked = [node for node, kind in grid.asked if kind == "train"]
    assert asked.count(1) == 2
    assert np.isnan(strategy.result.members[0].evaluations[1]["test"].accuracy[5])
    assert np.isfinite(strategy.result.members[0].evaluations[4]["test"].accuracy[5])


def test_a_registered_key_names_the_client_and_not_what_it_says():
    keys = {node: b"key%d" % node for node in range(1, 7)}
    names = {node: f"site-{10 - node}" for node in range(2, 7)}
    grid = federations.Nodes(federations.apps(), names, keys)
    strategy, _ = federated(fairfl.fedavg(**FULL), rounds=1, grid=grid)
    assert strategy.result.data.ids[1:] == tuple(f"site-{k}" for k in range(4, 9))
    assert strategy.result.data.ids[0].startswith("key-")


def test_a_node_that_says_nothing_of_itself_takes_no_part():
    grid = federations.Nodes(federations.apps())
    grid.faults[1, "query"] = lambda reply: Error(2, "no such function")
    with pytest.raises(RuntimeError, match="only 5 of 6 clients were connected"):
        federated(fairfl.fedavg(**FULL), grid=grid, seconds=0.2)


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("federation trains one", lambda: FairStrategy(fairfl.q_fedavg(q=[0, 1]), clients=2)),
        ("least_replies=0", lambda: FairStrategy(fairfl.fedavg(), clients=2, least_replies=0)),
        ("add out=FOLDER", lambda: FairStrategy(fairfl.fedavg(), clients=2, resume=True)),
        ("clients=0", lambda: FairStrategy(fairfl.fedavg(), clients=0)),
    ],
)
def test_what_cannot_be_is_refused(words, make):
    with pytest.raises(ValueError, match=words):
        make()
