"""What a reproduction is asked for, and what that makes of a training."""

from pathlib import Path
from typing import Any, NamedTuple

from fairfl import datasets
from fairfl.algorithms import NAMED
from fairfl.paper.recipe import BudgetName, Size, Training
from fairfl.runs import request
from fairfl.runs.request import Plan


class Asked(NamedTuple):
    """How long it may take, how many seeds, and whose settings; `rounds` caps every training."""

    budget: BudgetName = "quick"
    seeds: int | None = None
    as_reference: bool = False
    data_dir: Path | None = None
    rounds: int | None = None


def size(training: Training, asked: Asked) -> Size:
    """Rounds and seeds. The reference runs one round more than it is told to.

    >>> from fairfl.paper.asked import Asked, size
    >>> from fairfl.paper.trainings import TRAININGS
    >>> size(TRAININGS["adult-size"], Asked(as_reference=True, seeds=2))
    Size(rounds=601, seeds=2)
    """
    found = training.size(asked.budget)
    rounds = min(found.rounds, asked.rounds or found.rounds) + asked.as_reference
    return Size(rounds, asked.seeds or found.seeds)


def source(data: str) -> tuple[str, dict[str, Any]]:
    """A data set's name and options, from the words with colons between.

    >>> from fairfl.paper.asked import source
    >>> source("synthetic:alpha=2:clients=50")
    ('synthetic', {'alpha': 2.0, 'clients': 50})
    """
    name, *pairs = data.split(":")
    given = dict(pair.split("=") for pair in pairs)
    return name, {key: int(v) if key == "clients" else float(v) for key, v in given.items()}


def used(training: Training, data_dir: Path | None) -> str | None:
    """The data set that is there: the paper's, the one that stands in for it, or none."""
    for data in (training.data, training.instead):
        if data and datasets.present(source(data)[0], data_dir):
            return data
    return None


def plan(training: Training, data: str, asked: Asked) -> Plan:
    """A training on one of its data sets, as data, model and algorithm.

    >>> from fairfl.paper.asked import Asked, plan
    >>> from fairfl.paper.trainings import TRAININGS
    >>> found = plan(TRAININGS["synthetic-uniform"], "synthetic", Asked())
    >>> found.algorithm.sampler.name, found.rounds, list(found.seeds)
    ('uniform', 2000, [1, 2, 3, 4, 5])
    """
    name, options = source(data)
    rounds, seeds = size(training, asked)
    words = {
        "algorithm": training.algorithm,
        "rounds": rounds,
        "evaluate_every": max(1, rounds // training.evaluations),
        "data_dir": asked.data_dir,
        **training.words,
        **(training.instead_words if data == training.instead else {}),
        **options,
        **(training.reference if asked.as_reference else {}),
    }
    return request.plan(name, words, seeds=range(1, seeds + 1), q=(0.0,))


def absent(training: Training, data_dir: Path | None) -> str | None:
    """Why a training cannot run here, in one sentence; None where it can."""
    name = training.algorithm.split(":")[0]
    if name not in NAMED:
        return f"there is no algorithm {name!r}"
    if used(training, data_dir) is None:
        return f"the data set {training.data!r} is not here; `fairfl datasets` says where to get it"
    return None
