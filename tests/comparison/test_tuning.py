"""One protocol for all methods, on made-up results whose right answer is known."""

import math

import numpy as np
import pytest

import fairfl
from fairfl.comparison.tuning import tuned
from made_up_results import experiment, result


def offered(data, metrics, stopped=()):
    """A method whose settings x = 0, 1, 2 ... have these metrics on validation data."""
    members = [
        experiment(data, {"x": float(x)}, validation=found, stopped=x in stopped)
        for x, found in enumerate(metrics)
    ]
    return result(data, members)


@pytest.fixture
def plain(data):
    return tuned(offered(data, [(80.0, 500), (70.0, 100)]), "fedavg", None)[1]


def test_the_baseline_takes_the_best_average_whatever_its_variance(data):
    found, mean = tuned(offered(data, [(79.0, 10), (80.0, 500), (78.0, 5)]), "fedavg", None)
    assert (found.hyper, found.tried, found.reason) == ({"x": 1.0}, 3, "best average accuracy")
    assert mean.average == 80.0


def test_a_method_takes_the_lowest_variance_within_one_point_of_the_baseline(data, plain):
    found, _ = tuned(offered(data, [(85.0, 400), (79.0, 300), (78.9, 200)]), "fedavg", plain)
    assert found.hyper == {"x": 1.0}
    assert found.reason == "lowest variance within 1 point of fedavg"


def test_where_none_is_that_close_the_best_average_decides(data, plain):
    found, _ = tuned(offered(data, [(70.0, 1), (78.0, 400), (77.0, 2)]), "fedavg", plain)
    assert found.hyper == {"x": 1.0}
    assert found.reason == "best average accuracy: none is within 1 point of fedavg"


def test_a_setting_that_diverged_is_not_chosen_however_even(data, plain):
    metrics = [(80.0, 1), (math.nan, math.nan), (80.0, 400)]
    assert tuned(offered(data, metrics, stopped=[0]), "fedavg", plain)[0].hyper == {"x": 2.0}


def test_where_all_diverged_it_is_said(data, plain):
    found, _ = tuned(offered(data, [(10.0, 1), (20.0, 2)], stopped=[0, 1]), "fedavg", plain)
    assert found.reason == "all diverged for some seed"


def test_where_no_average_is_a_number_the_first_setting_is_shown(data, plain):
    nan = (math.nan, math.nan)
    assert tuned(offered(data, [nan, nan]), "fedavg", plain)[0].hyper == {"x": 0.0}


def test_seeds_count_by_their_mean(data, plain):
    members = [
        experiment(data, {"x": x}, seed, validation=(80.0, variance))
        for seed, variances in enumerate([(100, 300), (600, 300)])
        for x, variance in zip((0.0, 1.0), variances, strict=True)
    ]
    assert tuned(result(data, members), "fedavg", plain)[0].hyper == {"x": 1.0}


def test_the_test_split_is_never_read(data, plain):
    """Its metrics are missing altogether here."""
    assert tuned(offered(data, [(80.0, 2), (80.0, 1)]), "fedavg", plain)[0].hyper == {"x": 1.0}


def test_a_regression_may_cost_one_percent_of_the_loss():
    data = fairfl.from_arrays({"a": (np.ones((3, 1)), [0.5, 1.5, 2.5])})
    _, plain = tuned(offered(data, [(2.0, 5.0), (3.0, 1.0)]), "fedavg", None)
    found, _ = tuned(offered(data, [(2.01, 4.0), (2.03, 1.0)]), "fedavg", plain)
    assert (found.hyper, plain.average) == ({"x": 0.0}, 2.0)
    assert found.reason == "lowest variance within 1 percent of fedavg"
