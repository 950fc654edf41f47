"""The paper's protocol on made-up families whose right answer is known."""

import math

import numpy as np
import pytest

import fairfl
from fairfl.choice import Choice, choose_q
from fairfl.clients.about import about as described
from fairfl.metrics import Fairness
from fairfl.runs.result import Experiment, Result


def measured(average, variance, worst10=30.0):
    rest = dict.fromkeys(Fairness._fields, 0.0)
    return Fairness(**{**rest, "average": average, "variance": variance, "worst10": worst10})


def family(data, rows, **about):
    """A result whose experiments have these hyper-parameters and validation metrics."""
    members = [
        Experiment(
            hyper=hyper,
            seed=seed,
            params={},
            trace={"alive": np.array([not stopped])},
            fairness={1: {"train": None, "validation": measured(*metrics), "test": None}},
            evaluations={},
            quarantined=np.zeros(data.clients, int),
        )
        for hyper, seed, metrics, stopped in rows
    ]
    about = {"algorithm": "q-fedavg", "sampler": "by-size", "weights": "size", **about}
    return Result(data=described(data), rounds=1, seconds=0.0, members=members, **about)


def simple(data, metrics, **about):
    """One seed, one (average, variance[, worst10]) per q."""
    rows = [({"q": float(q)}, 0, found, False) for q, found in metrics.items()]
    return family(data, rows, **about)


def test_the_lowest_variance_within_one_point_wins(data):
    found = choose_q(simple(data, {0: (80.0, 500), 1: (79.5, 400), 2: (79.0, 300), 5: (78.9, 200)}))
    assert found.hyperparameters == {"q": 2.0}
    assert found.qualified


def test_the_reason_tells_gain_and_cost(data):
    found = choose_q(simple(data, {0: (83.8, 577.0, 27.8), 1: (83.3, 404.0, 40.0)}))
    assert found.reason == (
        "q=1 takes the variance of accuracy over clients from 577 to 404 (-30 %) and the worst "
        "10 % of clients from 27.8 to 40.0, at a cost of 0.5 points of average accuracy (83.8 to "
        "83.3; validation data, mean of 1 seed)."
    )


@pytest.mark.parametrize(
    ("average", "words"),
    [(85.0, "and gains 5.0 points of average"), (80.01, "at no cost in average")],
)
def test_a_rise_of_the_average_is_no_cost(data, average, words):
    found = choose_q(simple(data, {0: (80.0, 500), 1: (average, 400)}))
    assert found.qualified
    assert words in found.reason


def test_a_q_that_only_lifts_the_average_does_not_qualify(data):
    found = choose_q(simple(data, {0: (80.0, 500), 1: (90.0, 500)}))
    assert found == Choice({"q": 0.0}, False, found.reason)
    assert "no other q (1) lowers the variance of accuracy over clients, 500" in found.reason


def test_when_nothing_qualifies_the_cheapest_is_named_with_its_price(data):
    found = choose_q(simple(data, {0: (80.0, 500), 1: (77.0, 300), 2: (78.0, 400)}))
    assert (found.hyperparameters, found.qualified) == ({"q": 0.0}, False)
    assert "the cheapest, q=2, would take" in found.reason
    assert "from 500 to 400 (-20 %)" in found.reason
    assert "at a cost of 2.0 points" in found.reason


def test_metrics_are_means_over_the_seeds(data):
    rows = [
        ({"q": 0.0}, 0, (80.0, 500), False),
        ({"q": 1.0}, 0, (77.0, 300), False),
        ({"q": 2.0}, 0, (80.0, 499), False),
        ({"q": 0.0}, 1, (80.0, 500), False),
        ({"q": 1.0}, 1, (81.5, 450), False),
        ({"q": 2.0}, 1, (80.0, 100), False),
    ]
    found = choose_q(family(data, rows))
    assert found.hyperparameters == {"q": 2.0}
    assert "to 299.5" in found.reason
    assert "mean of 2 seeds" in found.reason


def test_other_hyper_parameters_come_from_the_best_plain_model(data):
    rates = {0.1: [(80.0, 500), (84.5, 400)], 0.3: [(85.0, 450), (84.5, 440)], 1.0: [(70.0, 300)]}
    rows = [
        ({"q": float(q), "learning_rate": rate}, 0, found, False)
        for rate, metrics in rates.items()
        for q, found in enumerate(metrics)
    ]
    assert choose_q(family(data, rows)).hyperparameters == {"q": 1.0, "learning_rate": 0.3}


def test_of_equal_variances_the_smaller_q_is_taken(data):
    found = choose_q(simple(data, {5: (80.0, 400), 0: (80.0, 500), 2: (80.0, 400)}))
    assert found.hyperparameters == {"q": 2.0}


def test_a_q_that_stopped_or_is_nan_does_not_qualify(data):
    rows = [
        ({"q": 0.0}, 0, (80.0, 500), False),
        ({"q": 1.0}, 0, (80.0, 100), True),
        ({"q": 2.0}, 0, (math.nan, math.nan), False),
        ({"q": 3.0}, 0, (80.0, 400), False),
    ]
    assert choose_q(family(data, rows)).hyperparameters == {"q": 3.0}


def test_regression_compares_losses_in_percent(data):
    regression = fairfl.from_arrays({"a": (np.ones((3, 1)), [0.5, 1.5, 2.5])})
    found = choose_q(simple(regression, {0: (2.0, 5.0), 1: (2.01, 4.0), 2: (2.1, 3.0)}))
    assert found.hyperparameters == {"q": 1.0}
    assert "at a cost of 0.5 percent of average loss (2 to 2.01" in found.reason


def test_without_q_there_is_nothing_to_choose(data):
    result = family(data, [({"learning_rate": 0.1}, 0, (80.0, 5.0), False)], algorithm="fedavg")
    with pytest.raises(ValueError, match="fedavg has no q to choose; train q_fedavg"):
        choose_q(result)


def test_without_q_0_there_is_nothing_to_compare_with(data):
    with pytest.raises(ValueError, match="compares with q=0, which was not trained; add q=0"):
        choose_q(simple(data, {1: (80.0, 5.0), 2: (80.0, 4.0)}))


def test_with_q_0_alone_there_is_nothing_to_choose(data):
    with pytest.raises(ValueError, match="only q=0 was trained; add others"):
        choose_q(simple(data, {0: (80.0, 5.0)}))


def test_a_stopped_q_0_is_no_baseline(data):
    rows = [({"q": 0.0}, 0, (80.0, 5.0), True), ({"q": 1.0}, 0, (80.0, 4.0), False)]
    with pytest.raises(ValueError, match="q=0, but its training stopped early"):
        choose_q(family(data, rows))


def test_a_split_without_rows_is_named(data):
    with pytest.raises(ValueError, match="no client has rows in the test split"):
        choose_q(simple(data, {0: (80.0, 5.0), 1: (80.0, 4.0)}), split="test")


def test_it_reads_what_train_returns(data, model):
    result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=2, cohort=3, seed=[0, 1])
    found = fairfl.choose_q(result)
    assert found.hyperparameters["q"] in (0.0, 1.0)
    assert found.reason.endswith("validation data, mean of 2 seeds).")
