"""A reproduction as one JSON object, for programs."""

from typing import Any

from fairfl.paper.figures import Raced, Spreads
from fairfl.paper.found import Reproduced, Reproduction, tally
from fairfl.paper.reproduction import Compared, Run, capped
from fairfl.paper.verdict import Cell
from fairfl.runs.json import SCHEMA


def as_object(found: Reproduction) -> dict[str, Any]:
    """Everything that was found, as plain dicts and lists.

    >>> from fairfl.paper.asked import Asked
    >>> from fairfl.paper.found import Reproduction
    >>> from fairfl.paper.objects import as_object
    >>> as_object(Reproduction(Asked(), (), None, {}, 0.0))["budget"]
    'quick'
    """
    theory = found.theory
    return {
        "schema": SCHEMA,
        **found.asked._replace(data_dir=None)._asdict(),
        "seconds": found.seconds,
        "verdicts": dict(tally(found)),
        "reproduced": [_recipe(one) for one in found.reproduced],
        "lemmas": [check._asdict() for check in theory.checks] if theory else [],
        "bounds": [bound._asdict() for bound in theory.bounds] if theory else [],
        "trainings": [_run(run, capped(run, found.asked)) for run in found.runs.values()],
    }


def _recipe(one: Reproduced) -> dict[str, Any]:
    return {
        "name": one.recipe.name,
        "title": one.recipe.title,
        "panels": [_panel(panel) for panel in one.panels],
        "races": [_race(race) for race in one.races],
        "spreads": [_spread(spread) for spread in one.spreads],
    }


def _panel(found: Compared) -> dict[str, Any]:
    return {
        "dataset": found.panel.dataset,
        "label": found.panel.label,
        "missing": found.missing,
        "cells": [_cell(cell) for cell in found.cells],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    theirs, ours = cell.published, cell.ours
    return {
        "objective": theirs.objective,
        "split": theirs.split,
        "metric": theirs.metric,
        "published": {"mean": theirs.value, "deviation": theirs.deviation},
        "ours": ours._asdict(),
        "verdict": cell.verdict,
        "within_standard_errors": cell.strictly,
    }


def _race(found: Raced) -> dict[str, Any]:
    return {
        "dataset": found.race.dataset,
        "claim": found.race.claim,
        "verdict": None if found.missing else found.verdict,
        "missing": found.missing,
        "level": found.level,
        "lines": [
            {
                "label": line.label,
                "learning_rate": line.learning_rate,
                "rounds_to_level": rounds,
                "rounds": line.rounds.tolist(),
                "mean": line.mean.tolist(),
            }
            for line, rounds in zip(found.lines, found.rounds, strict=True)
        ],
    }


def _spread(found: Spreads) -> dict[str, Any]:
    return {
        "dataset": found.spread.dataset,
        "split": found.spread.split,
        "verdict": None if found.missing else found.verdict,
        "missing": found.missing,
        "rows": [
            {
                "label": row.label,
                "clients": row.clients.tolist(),
                "variance": row.variance._asdict(),
            }
            for row in found.rows
        ],
    }


def _run(run: Run, shorter: str | None) -> dict[str, Any]:
    return {
        "name": run.training.name,
        "data": run.data,
        "missing": run.missing,
        "capped": shorter,
        "seconds": None if run.result is None else run.result.seconds,
    }
