"""Results: columns that any table library reads, and what they hold, against NumPy."""

import jax
import jaxtyping
import numpy as np
import pytest

import fairfl
from conftest import SIZES, made_up
from fairfl.clients.about import about
from fairfl.metrics import Fairness
from fairfl.runs.result import HISTORY_METRICS, Experiment, Result
from fairfl.simulation.evaluation import Evaluation

SEEDS, Q, ROUNDS, EVERY = [3, 1], [0, 1], 6, 4
OPTIONS = {"cohort": 4, "seed": SEEDS, "width": 2}
LABELS = ["q", "learning_rate", "seed"]


@pytest.fixture(scope="module")
def data():
    return made_up(SIZES)


@pytest.fixture(scope="module")
def model(data):
    return fairfl.models.softmax_regression(data)


@pytest.fixture(scope="module")
def family():
    return fairfl.q_fedavg(q=Q)


@pytest.fixture(scope="module")
def result(data, model, family):
    return fairfl.train(data, model, family, rounds=ROUNDS, evaluate_every=EVERY, **OPTIONS)


def accuracy_and_loss(params, x, y):
    z = x.astype(float) @ params["weights"] + params["bias"]
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return 100 * np.mean(z.argmax(axis=1) == y), -np.mean(log_p[np.arange(len(y)), y])


def lengths(columns):
    assert all(isinstance(column, np.ndarray) for column in columns.values())
    return {column.shape for column in columns.values()}


# --- experiments and models -----------------------------------------------------------------------


def test_experiments_come_seeds_outermost_in_the_order_asked_for(result):
    expected = [{"q": q, "learning_rate": 0.1, "seed": seed} for seed in SEEDS for q in Q]
    assert result.experiments == expected
    assert len(result) == 4


def test_params_have_a_leading_axis_of_experiments(result):
    assert {name: leaf.shape for name, leaf in result.params.items()} == {
        "bias": (4, 3),
        "weights": (4, 5, 3),
    }


def test_a_result_says_how_it_was_made(result, data):
    assert (result.algorithm, result.sampler, result.weights) == ("q-fedavg", "by-size", "size")
    assert result.rounds == ROUNDS
    assert result.seconds > 0
    assert result.data == about(data)


# --- one experiment -------------------------------------------------------------------------------


def test_one_experiment_is_a_result_of_its_own(result):
    for i, labels in enumerate(result.experiments):
        one = result[i]
        assert len(one) == 1
        assert one.experiments == [labels]
        for name, leaf in result.params.items():
            np.testing.assert_array_equal(one.params[name], leaf[i : i + 1])
        for split in ("train", "test"):
            for name, column in result.fairness(split).items():
                assert one.fairness(split)[name] == column[i]
    assert result[-1].experiments == result.experiments[-1:]
    assert [one.experiments[0] for one in result] == result.experiments
    with pytest.raises(IndexError):
        result[4]


# --- columns --------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_clients_are_as_numpy_finds_them(result, data, split):
    found = result.clients(split)
    assert list(found) == [*LABELS, "client", "size", "accuracy", "loss"]
    at = 0
    for i, seed in enumerate(s for s in SEEDS for _ in Q):
        params = jax.tree.map(lambda leaf, i=i: leaf[i], result.params)
        part = getattr(data.split(seed), split)
        for k in np.flatnonzero(part.sizes).tolist():
            rows = part.of(k)
            assert [found[name][at] for name in LABELS] == list(result.experiments[i].values())
            assert (found["client"][at], found["size"][at]) == (data.ids[k], len(rows))
            direct = accuracy_and_loss(params, data.x[rows], data.y[rows])
            np.testing.assert_allclose(
                [found["accuracy"][at], found["loss"][at]], direct, rtol=1e-4, atol=1e-5
            )
            at += 1
    assert lengths(found) == {(at,)}


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_fairness_is_that_of_the_clients(result, split):
    found, clients = result.fairness(split), result.clients(split)
    assert list(found) == [*LABELS, *Fairness._fields]
    assert lengths(found) == {(4,)}
    for i, labels in enumerate(result.experiments):
        mine = (clients["q"] == labels["q"]) & (clients["seed"] == labels["seed"])
        expected = fairfl.fairness(clients["accuracy"][mine], clients["size"][mine])
        assert {name: found[name][i] for name in Fairness._fields} == expected._asdict()


def test_the_test_split_is_what_is_shown_unless_asked(result):
    for shown, asked in [
        (result.fairness(), result.fairness("test")),
        (result.clients(), result.clients("test")),
    ]:
        for name, column in shown.items():
            np.testing.assert_array_equal(column, asked[name])
    assert result.missing() == result.missing("test") == ("client-0",)


def test_the_history_has_a_row_per_experiment_and_round(result):
    """The paper's code runs T + 1 rounds (R9)."""
    found = result.history
    assert list(found)[:4] == [*LABELS, "round"]
    measured = {
        f"{split}_{name}" for split in ("train", "validation", "test") for name in HISTORY_METRICS
    }
    reported = {"loss", "effective_step", "coefficient_spread", "quarantined", "capped"}
    assert set(found) == {*LABELS, "round"} | reported | measured
    assert lengths(found) == {(4 * ROUNDS,)}
    assert found["round"].tolist() == list(range(1, ROUNDS + 1)) * 4
    assert found["seed"].tolist() == [3] * 2 * ROUNDS + [1] * 2 * ROUNDS
    assert found["q"].tolist() == ([0] * ROUNDS + [1] * ROUNDS) * 2


def test_the_history_begins_at_the_initial_model(result):
    """At w = 0 the loss of three classes is log 3; at q = 0 the step is a full one."""
    found = result.history
    np.testing.assert_allclose(found["loss"][found["round"] == 1], np.log(3), rtol=1e-6)
    plain = found["q"] == 0
    np.testing.assert_allclose(found["effective_step"][plain], 1, rtol=1e-6)
    np.testing.assert_allclose(found["coefficient_spread"][plain], 0, atol=1e-6)
    assert (found["effective_step"][~plain] < 1).all()
    assert (found["coefficient_spread"][~plain][1:] > 0).any()


def test_the_history_measures_fairness_where_it_was_evaluated(result):
    found = result.history
    evaluated = np.isin(found["round"], [EVERY, ROUNDS])
    for split in ("train", "validation", "test"):
        for name in HISTORY_METRICS:
            column = found[f"{split}_{name}"]
            assert np.isnan(column[~evaluated]).all()
            last = column[found["round"] == ROUNDS]
            np.testing.assert_array_equal(last, result.fairness(split)[name])


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_every_evaluation_of_the_history_is_fairness_of_its_clients(result, split):
    found = result.history
    for i, member in enumerate(result.members):
        assert sorted(member.evaluations) == [EVERY, ROUNDS]
        for done, evaluations in member.evaluations.items():
            here = evaluations[split].size > 0
            expected = fairfl.fairness(
                evaluations[split].accuracy[here], evaluations[split].size[here]
            )
            for name in HISTORY_METRICS:
                column = found[f"{split}_{name}"]
                assert column[i * ROUNDS + done - 1] == getattr(expected, name)


def test_an_evaluation_in_the_middle_is_the_end_of_a_shorter_run(result, data, model, family):
    shorter = fairfl.train(data, model, family, rounds=EVERY, **OPTIONS)
    middle = result.history["round"] == EVERY
    for name in HISTORY_METRICS:
        np.testing.assert_array_equal(
            result.history[f"test_{name}"][middle], shorter.fairness("test")[name]
        )


def test_nobody_was_quarantined(result):
    assert lengths(result.quarantined) == {(0,)}
    assert list(result.quarantined) == ["client", "rounds"]


def test_a_data_frame_of_every_table_just_works(result, pandas):
    for columns in (result.fairness(), result.clients(), result.history, result.quarantined):
        frame = pandas.DataFrame(columns)
        assert list(frame.columns) == list(columns)
        assert len(frame) == len(next(iter(columns.values())))
    worst = pandas.DataFrame(result.clients()).groupby(["seed", "q"])["accuracy"].min()
    assert worst.loc[3, 0] == result.fairness()["worst"][0]


# --- results by hand ------------------------------------------------------------------------------


def by_hand(ids, accuracy):
    """A result of one experiment whose clients have these accuracies on ten rows each."""
    rows = np.zeros((2 * len(ids), 1))
    labels = np.arange(len(rows)) % 2
    pairs = {id: (rows[2 * k : 2 * k + 2], labels[:2]) for k, id in enumerate(ids)}
    data = fairfl.from_arrays(pairs, split=None)
    size = np.full(len(ids), 10)
    evaluation = Evaluation(np.array(accuracy), np.zeros(len(ids)), size)
    one = Experiment(
        hyper={"q": 1.0},
        seed=0,
        params={},
        trace={"alive": np.array([True]), "loss": np.zeros(1)},
        fairness={1: dict.fromkeys(("train", "validation", "test"), fairfl.fairness(accuracy))},
        evaluations={1: dict.fromkeys(("train", "validation", "test"), evaluation)},
        quarantined=np.arange(len(ids)),
    )
    return Result(about(data), "q-fedavg", "by-size", "size", 1, 0.0, [one])


@pytest.mark.parametrize("ids", [("ward", "lab"), (7, 3), (("site", 1), ("site", 2)), (1, "1")])
def test_clients_keep_their_ids(ids):
    found = by_hand(ids, [40.0, 60.0])
    assert found.clients()["client"].tolist() == list(ids)
    assert lengths(found.clients()) == {(2,)}
    assert found.quarantined["client"].tolist() == [ids[1]]
    assert found.quarantined["rounds"].tolist() == [1]


# --- notes ----------------------------------------------------------------------------------------


def test_a_run_that_still_learns_is_named():
    draw = np.random.default_rng(0)
    xs = draw.normal(size=(5, 20, 3))
    easy = fairfl.from_arrays({k: (x, x[:, 0] > 0) for k, x in enumerate(xs)})
    model = fairfl.models.softmax_regression(easy)
    algorithm = fairfl.fedsgd(learning_rate=[1e-6, 0.5])
    result = fairfl.train(easy, model, algorithm, rounds=12, cohort=4, evaluate_every=1)
    (said,) = [note for note in result.notes if "converged" in note]
    assert said.startswith("Not converged after 12 rounds, the objective still falls")
    assert "learning_rate=0.5" in said
    assert "1e-06" not in said


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tests", "", "Test"])
@pytest.mark.parametrize("table", ["fairness", "clients", "missing"])
def test_a_split_that_does_not_exist(result, monkeypatch, table, name):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    said = rf"\Athere is no split '{name}'; choose one of train, validation, test\Z"
    with pytest.raises(ValueError, match=said):
        getattr(result, table)(name)


def test_a_split_without_rows(model, data):
    everything = made_up(SIZES, split=None)
    result = fairfl.train(everything, model, fairfl.fedavg(), rounds=1, cohort=4)
    with pytest.raises(ValueError, match=r"\Ano client has rows in the test split; give the data"):
        result.fairness("test")
    assert lengths(result.clients("test")) == {(0,)}
    assert lengths(result.fairness("train")) == {(1,)}
    assert np.isnan(result.history["test_average"]).all()
