"""The recipes are complete, and what they pick is trained."""

import pytest

from fairfl.algorithms import NAMED
from fairfl.paper.published import _rows, published
from fairfl.paper.recipes import RECIPES, THEORY, named
from fairfl.paper.trainings import TRAININGS
from fairfl.runs.request import algorithm

TABLES = sorted({row.table for row in _rows()})
PICKS = [(recipe, pick) for recipe in RECIPES.values() for pick in recipe.picks if pick.training]


@pytest.mark.parametrize("table", TABLES)
def test_every_published_number_has_a_recipe(table):
    panels = RECIPES[table].panels
    asked = {(panel.dataset, objective) for panel in panels for objective in panel.rows}
    assert {(row.dataset, row.objective) for row in published(table)} == asked


def test_every_figure_with_data_has_a_recipe():
    """Figure 1 is an example without an experiment."""
    assert {f"figure-{n}" for n in range(2, 11)} <= set(RECIPES)
    assert all(r.panels or r.races or r.spreads for r in RECIPES.values())


@pytest.mark.parametrize(("recipe", "pick"), PICKS, ids=lambda value: getattr(value, "name", ""))
def test_what_is_picked_is_trained(recipe, pick):
    training = TRAININGS[pick.training]
    if training.algorithm.split(":")[0] not in NAMED:
        pytest.skip("the algorithm is not there")
    experiments = algorithm(training.algorithm, {}, {}).experiments
    assert any(set(pick.hyper) <= set(experiment.items()) for experiment in experiments)


@pytest.mark.parametrize("training", TRAININGS.values(), ids=lambda training: training.name)
def test_no_budget_is_larger_than_the_paper(training):
    for budget in ("quick", "paper"):
        size = training.size(budget)
        assert size.rounds <= training.full.rounds
        assert 1 <= size.seeds <= training.full.seeds == 5


def test_every_training_is_read_by_a_recipe():
    assert {pick.training for _, pick in PICKS} == set(TRAININGS)


def test_names_are_checked():
    assert named(("all",)) == (*RECIPES, THEORY)
    with pytest.raises(ValueError, match="no 'tabel-1' to reproduce; did you mean table-1"):
        named(("tabel-1",))
