"""Methods in words: what is fixed, what is tried, and what every mistake hears."""

import pytest

import fairfl
from fairfl.algorithms import NAMED
from fairfl.comparison.grids import BUDGET, GRIDS
from fairfl.comparison.methods import methods, slug, split, tried

USUAL = {"learning_rate": 0.1, "epochs": 1, "batch_size": 10, "q": 1.0}


def test_commas_part_methods_and_values():
    assert split("fedavg, q-fedavg:q=.1,1,5:weights=equal,fedavg:learning_rate=1e-2,.1") == [
        "fedavg",
        "q-fedavg:q=.1,1,5:weights=equal",
        "fedavg:learning_rate=1e-2,.1",
    ]


@pytest.mark.parametrize("name", NAMED)
def test_every_method_has_the_same_budget_and_tries_the_usual_rate(name):
    found = tried(name, USUAL, {})
    assert len(found.experiments) == BUDGET
    assert 0.1 in found.hyper["learning_rate"]


def test_a_grid_is_of_a_method_and_of_parameters_that_exist():
    for name in NAMED:
        assert set(GRIDS.get(name, {})) <= set(NAMED[name]().hyper)


def test_what_is_said_is_fixed_and_the_rate_takes_the_budget():
    found = tried("q-fedavg:q=2", USUAL, {})
    assert (found.hyper["q"], len(found.hyper["learning_rate"])) == ((2.0,), BUDGET)


def test_a_list_is_tried_as_it_is_said():
    found = tried("q-fedavg:q=0.1,1,5", USUAL, {})
    assert found.hyper == {"q": (0.1, 1.0, 5.0), "learning_rate": (0.01, 0.1, 1.0)}


@pytest.mark.parametrize("words", ["fedavg:learning-rate=.2", "fedavg:learning_rate=.2"])
def test_a_rate_that_is_said_is_not_tuned(words):
    assert tried(words, USUAL, {}).hyper == {"learning_rate": (0.2,)}


def test_what_is_said_for_all_holds_where_a_method_has_it():
    said = {"learning_rate": ".1,.3", "epochs": 2, "batch_size": None}
    found = methods(["fedavg", "fedsgd"], USUAL, said)
    assert found["fedavg"].work.epochs == 2
    assert found["fedsgd"].hyper == {"learning_rate": (0.1, 0.3)}


def test_an_algorithm_of_your_own_is_tried_as_it_is():
    mine = fairfl.with_rule(fairfl.rules.term(), t=[0.1, 1])
    assert methods({"mine": mine, "plain": "fedavg"}, USUAL, {})["mine"] is mine


def test_nothing_asked_is_every_method_of_one_model_for_all():
    assert set(methods(None, USUAL, {})) == set(NAMED) - {"maml", "q-maml"}


@pytest.mark.parametrize("again", [["afl", "afl"], ["q-fedavg:q=1", "q-fedavg:q=1"]])
def test_a_method_named_twice(again):
    with pytest.raises(ValueError, match=r"two methods are called .*name each method once"):
        methods(again, USUAL, {})


def test_no_method():
    with pytest.raises(ValueError, match="nothing to compare; name at least one"):
        methods([], USUAL, {})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fedvag", "there is no algorithm 'fedvag'; did you mean 'fedavg'"),
        ("fedavg:q=1", "fedavg has no q; it has learning_rate"),
        ("q-fedavg:q", "is not name=value"),
        ("afl:gamma=-1", "gamma=-1.0 must be a finite number"),
    ],
)
def test_a_method_that_does_not_exist_so(words, message):
    with pytest.raises(ValueError, match=message):
        methods([words], USUAL, {})


def test_different_words_have_different_folders():
    words = ["fedavg", "q-fedavg:q=1", "q-fedavg:q=0.1", "q-fedavg:q=10", "fedavg:weights=equal"]
    assert len({slug(one) for one in words}) == len(words)
