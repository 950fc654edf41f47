"""A comparison from training to what it says, on tiny data."""

import json

import numpy as np
import pytest

import fairfl
from conftest import made_up
from fairfl.comparison.json import as_object
from fairfl.comparison.notes import notes
from fairfl.runs import training

HOW = {"rounds": 4, "cohort": 3, "evaluate_every": 2}
BOTH = {"fedavg": fairfl.fedavg(), "q-fedavg": fairfl.q_fedavg(q=[0, 2])}


@pytest.fixture(scope="module")
def found(data, model):
    return fairfl.compare(data, model, BOTH, **HOW, seeds=3)


def test_a_method_is_trained_as_it_is_alone(found, data, model):
    alone = fairfl.train(data, model, BOTH["q-fedavg"], **HOW, seed=[0, 1, 2])
    for mine, other in zip(found.results["q-fedavg"].members, alone.members, strict=True):
        assert mine.trace["loss"].tolist() == other.trace["loss"].tolist()


def test_methods_have_the_same_splits_cohorts_and_batches(found):
    """q = 0 is FedAvg, so everything else must have been the same."""
    plain, family = found.results["fedavg"], found.results["q-fedavg"]
    for seed, member in enumerate(plain.members):
        other = family.members[2 * seed]
        assert member.trace["loss"] == pytest.approx(other.trace["loss"], rel=1e-5)


def test_each_method_is_shown_at_its_setting_alone(found):
    chosen = found.tuned["q-fedavg"]
    assert chosen.tried == 2
    assert found["q-fedavg"].fairness("test")["q"].tolist() == [chosen.hyper["q"]] * 3


def test_its_columns_agree_with_each_other(found):
    each, summary = found.fairness("test"), found.summary("test")
    of_q = each["method"] == "q-fedavg"
    assert summary["average"][1] == pytest.approx(np.mean(each["average"][of_q]))
    table = found.differences("test")
    assert table["method"].tolist() == ["q-fedavg"] * 3
    assert table["difference"][0] == pytest.approx(summary["average"][1] - summary["average"][0])


def test_another_baseline_turns_the_difference(found, data, model):
    other = fairfl.compare(data, model, BOTH, **HOW, seeds=3, baseline="q-fedavg")
    # q-fedavg as the baseline takes its best average, so its setting may be another one.
    assert other.differences()["method"].tolist() == ["fedavg"] * 3
    with pytest.raises(ValueError, match="'afl' is not among the methods; choose one of fedavg"):
        fairfl.compare(data, model, BOTH, **HOW, baseline="afl")


def test_the_json_object_has_every_method_and_every_difference(found):
    told = json.loads(json.dumps(as_object(found), allow_nan=False))
    assert [one["method"] for one in told["experiments"]] == ["fedavg"] * 3 + ["q-fedavg"] * 3
    assert told["experiments"][0]["splits"]["test"]["clients"]
    assert told["comparison"]["comparisons"] == 3
    assert len(told["comparison"]["differences"]) == 3
    assert told["comparison"]["methods"][1]["tried"] == 2


def test_different_budgets_are_said(found):
    assert notes(found)[0] == (
        "Budgets differ; settings tried, each for 3 seeds of 4 rounds: fedavg 1, q-fedavg 2."
    )


def test_equal_budgets_and_the_number_of_tests_are_said(data, model):
    pair = {"slow": fairfl.fedavg(learning_rate=[0.01, 0.02]), "fast": fairfl.q_fedavg(q=[1, 2])}
    said = notes(fairfl.compare(data, model, pair, **HOW, seeds=2))
    assert said[0].startswith("Budgets were equal: 2 settings of each method, each for 2 seeds")
    assert said[1].startswith("3 paired differences were tested at 95%, so about 0.15 of them")


def test_a_rate_at_the_edge_of_its_grid_is_said(data, model):
    rates = {"fedavg": fairfl.fedavg(learning_rate=[1e-9, 1e-8])}
    said = notes(fairfl.compare(data, model, rates, **HOW, seeds=1))
    assert any("learning rate that was tried was chosen for fedavg; beyond it" in n for n in said)
    rates = {"fedavg": fairfl.fedavg(learning_rate=0.1)}
    said = notes(fairfl.compare(data, model, rates, **HOW, seeds=1))
    assert not any("beyond it" in note for note in said)


def test_one_seed_is_no_evidence(data, model):
    found = fairfl.compare(data, model, BOTH, **HOW, seeds=[7])
    assert "One seed has no intervals" in notes(found)[1]
    assert not found.differences()["real"].any()


def test_a_method_that_diverges_is_shown_as_such(data, model):
    wild = {"fedavg": fairfl.fedavg(), "wild": fairfl.fedavg(learning_rate=1e30)}
    found = fairfl.compare(data, model, wild, **HOW, seeds=2)
    assert found.summary()["stopped"].tolist() == [0, 2]
    assert any(note.startswith("wild diverged for 2 of 2 seeds") for note in notes(found))
    assert as_object(found)["comparison"]["methods"][1]["stopped"] == 2


def test_seeds_that_change_nothing_are_said(model):
    """Full gradients of everyone on a split that is fixed: nothing is drawn."""
    rows = made_up([20, 30], split=None)
    test = dict.fromkeys(rows.ids, (rows.x[:9], rows.y[:9]))
    train = dict.fromkeys(rows.ids, (rows.x, rows.y))
    data = fairfl.from_arrays(train, test=test)
    pair = {"fedsgd": fairfl.fedsgd(sampler="everyone"), "afl": fairfl.afl()}
    found = fairfl.compare(data, fairfl.models.softmax_regression(data), pair, **HOW, seeds=2)
    assert not found.differences()["real"].any()
    assert any("seeds changed nothing in the difference to afl" in note for note in notes(found))


def test_data_without_validation_rows_hold_some_out_where_there_is_something_to_tune():
    rows = made_up([20, 30], split=None)
    train = dict.fromkeys(rows.ids, (rows.x, rows.y))
    data = fairfl.from_arrays(train, test=train, name="published")
    model = fairfl.models.softmax_regression(data)
    tuned = fairfl.compare(data, model, {"q": fairfl.q_fedavg(q=[0, 1])}, rounds=2, cohort=2)
    sizes = tuned["q"].members[0].final
    assert [sizes[s].size.tolist() for s in ("train", "validation")] == [[45, 45], [5, 5]]
    assert notes(tuned)[0].startswith("published has no validation rows, so a tenth of each")
    plain = fairfl.compare(data, model, {"q": fairfl.q_fedavg(q=1)}, rounds=2, cohort=2)
    assert plain["q"].members[0].final["train"].size.tolist() == [50, 50]


def test_all_methods_leave_out_what_cannot_train_here_and_a_named_one_is_refused(
    data, model, monkeypatch
):
    real = training.prepared

    def picky(data, model, algorithm, **how):
        if algorithm.name == "afl":
            raise ValueError("afl needs a quieter place")
        return real(data, model, algorithm, **how)

    monkeypatch.setattr("fairfl.comparison.side_by_side.prepared", picky)
    monkeypatch.setattr("fairfl.comparison.methods.NAMED", {"fedavg": None, "afl": None})
    found = fairfl.compare(data, model, **HOW, seeds=1)
    assert found.methods == ("fedavg",)
    assert notes(found)[0] == "afl is left out: afl needs a quieter place."
    with pytest.raises(ValueError, match="afl: afl needs a quieter place"):
        fairfl.compare(data, model, ["fedavg", "afl"], **HOW)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"seeds": 0}, "seeds=0 must be one whole number of at least 1"),
        ({"seeds": [1, 1]}, "names a seed twice"),
        ({"rounds": 0}, "rounds=0 must be one whole number"),
        ({"cohort": 99}, "fedavg: cohort=99 is larger than the 10 clients"),
        ({"resume": True}, "resume and overwrite are for what is kept; add out=FOLDER"),
    ],
)
def test_what_cannot_be_is_refused_before_training(data, model, words, message):
    with pytest.raises(ValueError, match=message):
        fairfl.compare(data, model, BOTH, **{**HOW, **words})
