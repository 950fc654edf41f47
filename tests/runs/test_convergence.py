"""Convergence: the objective by hand, and traces whose verdict is plain to see."""

import numpy as np
import pytest

from fairfl.runs.convergence import EVALUATIONS, objective, still_falling
from fairfl.runs.result import Experiment
from fairfl.simulation.evaluation import Evaluation


def member(losses, sizes=None, rounds=None, **hyper):
    """An experiment whose clients' training losses [evaluations, clients] are these."""
    losses = np.array(losses, float)
    clients = losses.shape[1]
    size = np.array([1] * clients if sizes is None else sizes)
    rounds = range(1, len(losses) + 1) if rounds is None else rounds
    nothing = Evaluation(np.full(clients, np.nan), np.full(clients, 1e9), size)
    evaluations = {
        done: {
            "train": Evaluation(np.full(clients, np.nan), loss, size),
            "validation": nothing,
            "test": nothing,
        }
        for done, loss in zip(rounds, losses, strict=True)
    }
    trace = {"alive": np.ones(1, bool)}
    return Experiment(hyper, 0, {}, trace, {}, evaluations, np.zeros(clients, int))


def trace(*values, **hyper):
    return member([[value] for value in values], **hyper)


# --- the objective --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hyper", "expected"),
    [
        # p = (1/4, 3/4), F = (1, 2): 1/4 + 6/4; sqrt(1/4 + 3); cube root of 1/4 + 6.
        ({}, 1.75),
        ({"q": 0.0}, 1.75),
        ({"q": 1.0}, np.sqrt(3.25)),
        ({"q": 2.0}, 6.25 ** (1 / 3)),
        ({"q": 0.5}, (0.25 + 0.75 * 2**1.5) ** (1 / 1.5)),
    ],
)
def test_the_objective_by_hand(hyper, expected):
    found = objective(member([[1, 2]], sizes=[10, 30], **hyper))
    np.testing.assert_allclose(found, [expected], rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_a_large_q_sees_the_largest_loss_whatever_its_scale(scale):
    """F^q overflows float64 at q = 100."""
    found = objective(member([[1 * scale, 2 * scale]], sizes=[10, 30], q=1000.0))
    np.testing.assert_allclose(found, [2 * scale * 0.75 ** (1 / 1001)], rtol=1e-12)


def test_a_solved_federation_has_objective_zero():
    assert objective(member([[0, 0]], q=2.0)).tolist() == [0]


def test_clients_without_training_rows_do_not_count():
    found = objective(member([[1, np.nan, 3]], sizes=[5, 0, 5], q=1.0))
    np.testing.assert_allclose(found, [np.sqrt(5)])


def test_a_client_with_rows_whose_loss_is_not_finite_counts():
    found = objective(member([[1, np.nan], [1, np.inf], [1, 1]]))
    assert np.isnan(found).tolist() == [True, True, False]


def test_evaluations_come_in_the_order_of_rounds():
    assert objective(member([[1], [2], [3]], rounds=[30, 10, 20])).tolist() == [2, 3, 1]


# --- does it still fall? --------------------------------------------------------------------------


def test_a_trace_that_halves_still_falls():
    assert still_falling(trace(*0.5 ** np.arange(9))) is True


@pytest.mark.parametrize(
    "values",
    [
        np.ones(9),
        np.arange(1, 10),
        [9, 5, 2, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1.3, 0.7, 1, 0.7, 1.3, 1],
        1 - 0.001 * np.arange(9),
    ],
    ids=["flat", "rising", "fell long ago", "noise", "hardly falling"],
)
def test_a_trace_that_has_settled_does_not(values):
    assert still_falling(trace(*values)) is False


@pytest.mark.parametrize(("fall", "expected"), [(0.03, True), (0.021, True), (0.019, False)])
def test_two_per_cent_from_third_to_third_is_the_border(fall, expected):
    values = [5, 5, 5, 1, 1, 1, 1 - fall, 1 - fall, 1 - fall]
    assert still_falling(trace(*values)) is expected


def test_the_last_two_thirds_are_compared_where_three_does_not_divide():
    # Eight evaluations: the thirds are places 4-5 and 6-7, counted from 0.
    assert still_falling(trace(9, 9, 9, 9, 1, 1, 1, 1)) is False
    assert still_falling(trace(0, 0, 0, 0, 2, 2, 1, 1)) is True


@pytest.mark.parametrize("n", range(1, EVALUATIONS))
def test_few_evaluations_tell_nothing(n):
    assert still_falling(trace(*0.5 ** np.arange(n))) is None


def test_enough_evaluations_tell():
    assert still_falling(trace(*0.5 ** np.arange(EVALUATIONS))) is True


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_trace_that_is_not_finite_tells_nothing(bad):
    assert still_falling(trace(1, bad, 1, 1, 1, 1, 1)) is None


def test_each_experiment_is_judged_by_its_own_q():
    """The mean falls, the largest loss does not: q = 0 still learns, q = 100 does not."""
    losses = [[1, 0.5**t] for t in range(9)]
    assert still_falling(member(losses, q=0.0)) is True
    assert still_falling(member(losses, q=100.0)) is False
