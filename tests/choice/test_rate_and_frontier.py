"""The learning rate of FedAvg, and which settings no other beats."""

from dataclasses import replace

import numpy as np
import pytest

import fairfl
from fairfl.choice.frontier import efficient


@pytest.fixture(scope="module")
def result(data, model):
    family = fairfl.q_fedavg(q=[0, 1], learning_rate=[1e-6, 0.1])
    return fairfl.train(data, model, family, rounds=20, cohort=4, seed=[0, 1])


def test_the_rate_with_the_best_average_at_q_0_is_taken(result):
    found = result.fairness("validation")
    plain = {
        rate: found["average"][(found["q"] == 0) & (found["learning_rate"] == rate)].mean()
        for rate in (1e-6, 0.1)
    }
    assert fairfl.choose_rate(result) == max(plain, key=lambda rate: plain[rate])


def test_a_rate_that_stopped_is_out(result):
    members = [
        replace(m, trace={**m.trace, "alive": np.zeros_like(m.trace["alive"])})
        if m.hyper["learning_rate"] == 0.1
        else m
        for m in result.members
    ]
    assert fairfl.choose_rate(replace(result, members=members)) == 1e-6


def test_a_regression_takes_the_rate_with_the_lowest_loss():
    draw = np.random.default_rng(0)
    clients = {}
    for name in "abcd":
        x = draw.normal(size=(30, 2)).astype(np.float32)
        clients[name] = (x, (x @ [1.0, -2.0]).astype(np.float32) + 0.5)
    data = fairfl.from_arrays(clients)
    grid = fairfl.q_fedavg(q=[0, 1], learning_rate=[1e-5, 0.05])
    result = fairfl.train(data, fairfl.models.mlp(data), grid, rounds=30, cohort=2)
    assert fairfl.choose_rate(result) == 0.05
    assert fairfl.choose_q(result).hyperparameters["learning_rate"] == 0.05


def test_settings_that_another_beats_are_not_efficient():
    gain = np.array([80.0, 80.0, 79.0, 79.0, np.nan])
    price = np.array([500.0, 600.0, 300.0, 300.0, 1.0])
    assert efficient(gain, price).tolist() == [True, False, True, True, False]


def test_the_frontier_has_means_and_intervals_over_the_seeds(result):
    found, test = fairfl.frontier(result), result.fairness("test")
    assert len(found["q"]) == 4
    values = test["average"][(test["q"] == found["q"][0]) & (test["learning_rate"] == 1e-6)]
    span = fairfl.interval(values)
    assert found["learning_rate"][0] == 1e-6
    row = [found[name][0] for name in ("average", "average_low", "average_high")]
    assert row == [span.mean, span.low, span.high]
