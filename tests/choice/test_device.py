"""A q for every client: who picks what, on which split, and what the mixture is worth."""

from dataclasses import replace

import numpy as np
import pytest

import fairfl
from fairfl.choice.device import best_of
from fairfl.simulation.evaluation import Evaluation


@pytest.fixture(scope="module")
def result(data, model):
    family = fairfl.q_fedavg(q=[0, 1, 5])
    return fairfl.train(data, model, family, rounds=20, cohort=4, seed=[0, 1])


def offer(accuracy, loss, size=None):
    sizes = np.ones(len(loss), int) if size is None else np.array(size)
    return Evaluation(np.array(accuracy, float), np.array(loss, float), sizes)


def test_the_most_accurate_model_is_picked_then_the_lower_loss_then_the_first():
    plain = offer([50.0, 50.0, 50.0, 90.0], [0.7, 0.7, 0.7, 0.1])
    other = offer([60.0, 50.0, 50.0, 80.0], [0.9, 0.6, 0.7, 0.01])
    assert best_of([plain, other], "binary").tolist() == [1, 1, 0, 0]


def test_a_regression_picks_the_lowest_loss():
    plain, other = offer([np.nan] * 2, [1.0, 2.0]), offer([np.nan] * 2, [2.0, 1.0])
    assert best_of([plain, other], "regression").tolist() == [0, 1]


def test_a_client_without_rows_keeps_the_plain_model():
    plain, other = offer([np.nan], [np.nan], [0]), offer([np.nan], [np.nan], [0])
    assert best_of([plain, other], "binary").tolist() == [0]


def test_a_model_that_is_not_a_number_is_never_picked():
    plain, other = offer([80.0], [np.nan]), offer([80.0], [3.0])
    assert best_of([plain, other], "binary").tolist() == [1]


def test_each_client_gets_the_numbers_of_the_model_it_picked(result):
    found, test = fairfl.device_q(result), result.clients("test")
    validation = result.clients("validation")
    for row in range(len(found.clients["client"])):
        who = found.clients["client"][row], found.clients["seed"][row]
        mine = (test["client"] == who[0]) & (test["seed"] == who[1])
        judged = mine & (test["q"] == found.clients["q"][row])
        assert found.clients["accuracy"][row] == test["accuracy"][judged]
        offered = (validation["client"] == who[0]) & (validation["seed"] == who[1])
        if offered.any():
            best = validation["accuracy"][offered].max()
            picked = offered & (validation["q"] == found.clients["q"][row])
            assert validation["accuracy"][picked] == best


def test_the_mixture_is_measured_per_seed(result):
    found = fairfl.device_q(result)
    assert found.fairness["seed"].tolist() == [0, 1]
    mine = found.clients["seed"] == 1
    direct = fairfl.fairness(found.clients["accuracy"][mine], found.clients["size"][mine])
    assert found.fairness["variance"][1] == direct.variance


def test_picked_on_the_judging_split_nobody_does_worse_than_plain(result):
    found = fairfl.device_q(result, split="test", judged="test")
    test = result.clients("test")
    plain = {(c, s): a for c, s, a in zip(*(test[n][test["q"] == 0] for n in
             ("client", "seed", "accuracy")), strict=True)}  # fmt: skip
    for client, seed, accuracy in zip(
        *(found.clients[name] for name in ("client", "seed", "accuracy")), strict=True
    ):
        assert accuracy >= plain[client, seed]


def test_a_model_that_stopped_is_not_on_offer(result):
    stopped = [
        replace(m, trace={**m.trace, "alive": np.zeros_like(m.trace["alive"])})
        if m.hyper["q"] == 5
        else m
        for m in result.members
    ]
    found = fairfl.device_q(replace(result, members=stopped))
    assert 5.0 not in found.clients["q"]
