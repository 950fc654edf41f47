"""A reproduction: everything that was asked for, run and compared."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fairfl.paper import lemmas
from fairfl.paper.asked import Asked
from fairfl.paper.figures import Raced, Spreads, raced, spreads
from fairfl.paper.lemmas import Bounded, Checked
from fairfl.paper.recipe import Recipe
from fairfl.paper.recipes import RECIPES, THEORY
from fairfl.paper.reproduction import Compared, Runs, Watch, compared, run, trainings
from fairfl.paper.verdict import Verdict


class Reproduced(NamedTuple):
    """One table or figure with what was found."""

    recipe: Recipe
    panels: tuple[Compared, ...] = ()
    races: tuple[Raced, ...] = ()
    spreads: tuple[Spreads, ...] = ()


class Theory(NamedTuple):
    """The lemmas, checked, and the bound of some trained models."""

    checks: tuple[Checked, ...]
    bounds: tuple[Bounded, ...]


class Reproduction(NamedTuple):
    """Tables and figures, the theory where it was asked for, and the runs behind them."""

    asked: Asked
    reproduced: tuple[Reproduced, ...]
    theory: Theory | None
    runs: Runs
    seconds: float


def reproduce(
    names: Sequence[str], asked: Asked, folder: Path, resume: bool, watch: Watch
) -> Reproduction:
    """Train what the named recipes need in a folder, where it goes on, and compare.

    >>> import tempfile
    >>> from contextlib import nullcontext
    >>> from pathlib import Path
    >>> from fairfl.paper.asked import Asked
    >>> from fairfl.paper.found import reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tiny = Asked(rounds=2, seeds=1)
    ...     unseen = lambda training, plan: nullcontext()
    ...     found = reproduce(["table-11"], tiny, Path(folder), resume=False, watch=unseen)
    >>> len(found.reproduced[0].panels[0].cells)
    30
    """
    start = time.perf_counter()
    recipes = [RECIPES[name] for name in names if name in RECIPES]
    runs = {
        training.name: run(training, folder, asked, resume, watch)
        for training in trainings(recipes)
    }
    reproduced = tuple(_reproduced(recipe, runs, asked) for recipe in recipes)
    theory = _theory() if THEORY in names else None
    return Reproduction(asked, reproduced, theory, runs, time.perf_counter() - start)


def _reproduced(recipe: Recipe, runs: Runs, asked: Asked) -> Reproduced:
    return Reproduced(
        recipe,
        tuple(compared(recipe, runs, asked)),
        tuple(raced(recipe, runs)),
        tuple(spreads(recipe, runs)),
    )


def _theory() -> Theory:
    return Theory(tuple(lemmas.checks()), tuple(lemmas.bounds()))


def tally(found: Reproduction) -> Counter[Verdict]:
    """How many printed numbers match, go the same way, or differ.

    >>> from fairfl.paper.asked import Asked
    >>> from fairfl.paper.found import Reproduction, tally
    >>> tally(Reproduction(Asked(), (), None, {}, 0.0)).total()
    0
    """
    return Counter(
        cell.verdict for one in found.reproduced for panel in one.panels for cell in panel.cells
    )
