"""`fairfl run` and `fairfl sweep`."""

import dataclasses
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from fairfl import datasets
from fairfl.algorithms.algorithm import whole
from fairfl.choice import Choice, choose_q
from fairfl.cli.app import command
from fairfl.cli.drawn import drawn
from fairfl.cli.errors import INTERRUPTED, THEIRS, CommandError
from fairfl.cli.options import Asked, AskedSweep
from fairfl.cli.output import say
from fairfl.cli.typed import PLACES, as_typed
from fairfl.report import reading, tables
from fairfl.report.progress import shown
from fairfl.runs import Result, request, train
from fairfl.runs.json import as_object, text
from fairfl.runs.keeping import Keeper
from fairfl.runs.request import Plan
from fairfl.runs.tracking import check_tools, tracker
from fairfl.simulation.engine import Progress

RUNS = Path("runs")
"""Where a run is kept that does not say where."""

FAMILY = (0.0, 0.1, 1.0, 2.0, 5.0)
"""The q of a sweep that does not say which, beside the data set's own."""


@command(Asked)
def run(asked: Asked) -> None:
    """Train one model and show how evenly it serves its clients.

    DATA is a data set by name (see fairfl datasets) or a path to a table of yours. What is not
    given is as in the paper: fairfl run synthetic is the paper's experiment.

    fairfl run synthetic --q 1 --rounds 2000
    """
    plan = _planned(asked, [asked.seed], q=(datasets.defaults(asked.data).q,))
    if len(plan.algorithm.experiments) > 1:
        raise ValueError(
            f"run trains one experiment but this asks for {len(plan.algorithm.experiments)}; "
            "use fairfl sweep to compare several"
        )
    with _keeper(asked, plan) as keeper:
        result = _trained(plan, keeper, request.names(asked.track) or [])
        found = [tables.single(result), *tables.personal(result)]
        _report(asked, plan, keeper, result, None, found)


@command(AskedSweep)
def sweep(asked: AskedSweep) -> None:
    """Train one model for every q, compare how evenly they serve, and name the q to use.

    DATA is a data set by name (see fairfl datasets) or a path to a table of yours.

    fairfl sweep synthetic --q 0,0.1,1,5 --seeds 5

    fairfl sweep visits.parquet --client hospital --label readmitted
    """
    seeds = [asked.seed + i for i in range(whole("seeds", asked.seeds))]
    plan = _planned(asked, seeds, q=sorted({*FAMILY, datasets.defaults(asked.data).q}))
    with _keeper(asked, plan) as keeper:
        result = _trained(plan, keeper, request.names(asked.track) or [])
        choice, said = _chosen(result)
        said[1:1] = tables.personal(result)
        _report(asked, plan, keeper, result, choice, said)


def _chosen(result: Result) -> tuple[Choice | None, list[Any]]:
    """The choice of q where there is one, and what is to be said about the family."""
    try:
        choice = choose_q(result)
    except ValueError as error:
        return None, [tables.family(result), f"No q is recommended: {error}."]
    table = tables.family(result, chosen=choice.hyperparameters)
    plain = tables.plain_model(result, choice.hyperparameters)
    return choice, [table, plain, f"Recommended: {choice.reason}"]


def _planned(asked: Asked, seeds: Sequence[int], q: Sequence[float]) -> Plan:
    """Everything that can be refused is refused here, before anything is trained."""
    _keeper(asked, None).check()
    check_tools(request.names(asked.track) or [])
    plan = request.plan(asked.data, vars(asked), seeds, q)
    if plan.data.preprocessing is not None:
        read = reading.columns(plan.data.preprocessing.describe())
        say([f"{asked.data} was read as", read, ""], aside=asked.as_json)
    return plan


def _keeper(asked: Asked, plan: Plan | None) -> Keeper:
    """What keeps the run; what it keeps of the plan is not needed to see whether it can."""
    return Keeper(
        asked.out,
        resume=asked.resume,
        overwrite=asked.overwrite,
        parent=RUNS,
        label=f"{plan.data.name}-{asked.context.info_name}" if plan else "",
        command=as_typed(asked.context, PLACES),
    )


def _trained(plan: Plan, keeper: Keeper, tools: Sequence[str]) -> Result:
    with (
        shown(plan.total, Console(stderr=True)) as meter,
        tracker(tools, lambda: keeper.place, plan.data.name) as track,
    ):

        def after(progress: Progress) -> None:
            meter(progress)
            track(progress)

        try:
            return train(
                plan.data,
                plan.model,
                plan.algorithm,
                rounds=plan.rounds,
                cohort=plan.cohort,
                seed=plan.seeds,
                split_seed=plan.split_seed,
                evaluate_every=plan.evaluate_every,
                on_chunk=after,
                out=keeper,
            )
        except KeyboardInterrupt:
            raise CommandError(INTERRUPTED, _interrupted(plan, keeper)) from None


def _interrupted(plan: Plan, keeper: Keeper) -> str:
    """How to go on, where anything was kept."""
    if keeper.manifest is None:
        return "interrupted before anything was kept; the same command begins anew"
    context = click.get_current_context()
    place = shlex.quote(str(keeper.place))
    return (
        f"interrupted, with {keeper.rounds:,} of {plan.total:,} rounds of all experiments kept; "
        f"go on with: {as_typed(context, ())} --out {place} --resume"
    )


def _report(
    asked: Asked,
    plan: Plan,
    keeper: Keeper,
    result: Result,
    choice: Choice | None,
    found: list[Any],
) -> None:
    """Show what was found and keep it: a full disk or a closed pipe costs only the other one."""
    chosen = None if choice is None else dataclasses.asdict(choice)
    try:
        if asked.as_json:
            sys.stdout.write(text(as_object(result, chosen)))
            sys.stdout.flush()
        else:
            about = tables.heading(result, plan.model.name, plan.cohort)
            say([*about, "", *found, *(f"Note: {note}" for note in result.notes)])
    finally:
        done = "Nothing was left to train in" if keeper.finished else "Written to"
        kept = keeper.finish(result, chosen)
        page = drawn(kept)
    say([f"{done} {kept}", *page], asked.as_json)
    if all(member.stopped for member in result.members):
        raise CommandError(
            THEIRS,
            "every experiment stopped early because nothing finite was left to train; the last "
            f"good models are in {kept}, so try a smaller learning rate",
        )
