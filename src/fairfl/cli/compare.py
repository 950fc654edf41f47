"""`fairfl compare`: methods side by side on one data set."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from fairfl import datasets
from fairfl.algorithms import Algorithm
from fairfl.algorithms.algorithm import whole
from fairfl.cli.app import command
from fairfl.cli.drawn import drawn
from fairfl.cli.errors import INTERRUPTED, THEIRS, CommandError
from fairfl.cli.options import AskedCompare
from fairfl.cli.output import say
from fairfl.cli.typed import PLACES, as_typed
from fairfl.comparison import Comparison, side_by_side
from fairfl.comparison.folder import Shelf
from fairfl.comparison.json import as_object
from fairfl.comparison.methods import Methods, methods, split
from fairfl.report import methods as shown
from fairfl.report import progress, reading
from fairfl.runs import request
from fairfl.runs.json import text
from fairfl.runs.request import METHOD, Plan

RUNS = Path("runs")
"""Where a comparison is kept that does not say where."""


@command(AskedCompare)
def compare(asked: AskedCompare) -> None:
    """Train several methods on the same splits, cohorts and batches, and say which differ.

    What is not said of a method is tuned on validation data, with as many settings for one as for
    another. Differences are paired by seed, with intervals.

    fairfl compare synthetic --algorithms fedavg,q-fedavg,afl --rounds 500

    fairfl compare synthetic --algorithms fedavg,q-fedavg:q=1 --learning-rate .1
    """
    _shelf(asked, None).check()
    chosen = _methods(asked)
    plan = _plan(asked)
    shelf = _shelf(asked, plan)
    try:
        found = _compared(asked, plan, chosen, shelf)
    except KeyboardInterrupt:
        raise CommandError(INTERRUPTED, _interrupted(shelf)) from None
    if asked.as_json:
        sys.stdout.write(text(as_object(found)))
        sys.stdout.flush()
    else:
        say(shown.lines(found))
    say([f"Written to {shelf.place}", *drawn(shelf.place)], asked.as_json)
    _refuse_if_all_stopped(found, shelf)


def _methods(asked: AskedCompare) -> Methods:
    """Every method with what it is tried with; all there are, where none is named."""
    said = {name: getattr(asked, name, None) for name in METHOD}
    named = None if asked.algorithms is None else split(asked.algorithms)
    return methods(named, vars(datasets.defaults(asked.data)), said)


def _plan(asked: AskedCompare) -> Plan:
    """Data, model, rounds and cohort; the methods are said apart, so any one stands in."""
    seeds = [asked.seed + i for i in range(whole("seeds", asked.seeds))]
    said = {name: value for name, value in vars(asked).items() if name not in METHOD}
    plan = request.plan(asked.data, {**said, "algorithm": "fedavg"}, seeds, q=())
    if plan.data.preprocessing is not None:
        read = reading.columns(plan.data.preprocessing.describe())
        say([f"{asked.data} was read as", read, ""], aside=asked.as_json)
    return plan


def _shelf(asked: AskedCompare, plan: Plan | None) -> Shelf:
    return Shelf(
        asked.out,
        resume=asked.resume,
        overwrite=asked.overwrite,
        parent=RUNS,
        label=f"{plan.data.name}-compare" if plan else "",
        command=as_typed(asked.context, PLACES),
    )


def _compared(asked: AskedCompare, plan: Plan, chosen: Methods, shelf: Shelf) -> Comparison:
    every = asked.algorithms is None
    return side_by_side.compared(
        plan.data,
        plan.model,
        chosen,
        side_by_side.How(
            rounds=plan.rounds,
            cohort=plan.cohort,
            seed=plan.seeds,
            split_seed=plan.split_seed,
            evaluate_every=plan.evaluate_every,
        ),
        baseline=asked.baseline,
        leaves_out=every,
        watch=_watch(plan, len(chosen)),
        shelf=shelf,
    )


def _watch(plan: Plan, count: int) -> side_by_side.Watch:
    """Says which method trains, with a bar where there is a terminal."""
    console, begun = Console(stderr=True, highlight=False), []

    @contextmanager
    def watched(name: str, method: Algorithm) -> Iterator[progress.Meter]:
        begun.append(name)
        tried = len(method.experiments)
        if console.is_terminal:
            console.print(
                f"{len(begun)} of {count}: {name}, {tried} setting{'s' * (tried > 1)}, "
                f"{len(plan.seeds)} seed{'s' * (len(plan.seeds) > 1)}",
                markup=False,
            )
        with progress.shown(plan.rounds * tried * len(plan.seeds), console) as meter:
            yield meter

    return watched


def _interrupted(shelf: Shelf) -> str:
    """How to go on, where anything was kept."""
    if shelf.folder is None or not shelf.place.is_dir():
        return "interrupted before anything was kept; the same command begins anew"
    context = click.get_current_context()
    again = f"{as_typed(context, ())} --out {shlex.quote(str(shelf.place))} --resume"
    return f"interrupted; what was trained is kept, go on with: {again}"


def _refuse_if_all_stopped(found: Comparison, shelf: Shelf) -> None:
    if all(member.stopped for method in found.methods for member in found[method].members):
        raise CommandError(
            THEIRS,
            "every method stopped early because nothing finite was left to train; the last good "
            f"models are in {shelf.place}, so try a smaller learning rate",
        )
