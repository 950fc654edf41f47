"""Lines of a figure: levels, rounds to them, and learning rates, by hand."""

import numpy as np
import pytest

import fairfl
from fairfl.paper.curves import Line, level, line, rounds_to
from fairfl.paper.recipe import Curve, Pick

ROUNDS = np.array([10, 20, 30])


def made_up(values, falls=False):
    return Line("made up", ROUNDS, np.array(values, float), falls, 0.1)


def test_lines_that_rise_meet_at_the_lower_best():
    lines = [made_up([[50, 80, 70]]), made_up([[60, 60, 75]])]
    assert level(lines) == 75
    assert [rounds_to(found, 75) for found in lines] == [20, 30]


def test_lines_that_fall_meet_at_the_higher_best():
    lines = [made_up([[3, 2, 1]], falls=True), made_up([[3, 1.5, 1.5]], falls=True)]
    assert level(lines) == 1.5
    assert [rounds_to(found, 1.5) for found in lines] == [30, 20]


def test_the_mean_over_seeds_is_what_gets_there():
    assert rounds_to(made_up([[90, 70, 80], [50, 70, 80]]), 75) == 30


@pytest.fixture(scope="module")
def grid(data, model):
    """A learning rate of 1e-9 learns nothing."""
    family = fairfl.q_fedsgd(q=[0, 1], learning_rate=[1e-9, 0.1])
    return fairfl.train(data, model, family, rounds=12, cohort=4, seed=[1, 2], evaluate_every=3)


@pytest.mark.parametrize("tuned", ["plain", "own"])
def test_the_learning_rate_is_picked_from_the_grid(grid, tuned):
    found = line(grid, Curve("q=1", Pick("grid", (("q", 1.0),)), "objective", tuned))
    assert found.learning_rate == 0.1
    assert found.rounds.tolist() == [3, 6, 9, 12]
    assert found.values.shape == (2, 4)


def test_a_line_of_accuracies_is_the_one_that_the_history_has(grid):
    pick = Pick("grid", (("q", 1.0), ("learning_rate", 0.1)))
    found = line(grid, Curve("q=1", pick, "average"))
    history = grid.history
    chosen = (history["q"] == 1) & (history["learning_rate"] == 0.1) & (history["seed"] == 1)
    there = chosen & ~np.isnan(history["test_average"])
    assert found.values[0].tolist() == history["test_average"][there].tolist()
