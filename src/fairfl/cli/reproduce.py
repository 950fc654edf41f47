"""`fairfl reproduce`: the paper's tables and figures, published and ours side by side."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.console import Console

from fairfl.algorithms.algorithm import whole
from fairfl.cli.app import app
from fairfl.cli.errors import INTERRUPTED, CommandError
from fairfl.cli.options import TRAINING, DataDir, Json, Out, Resume, option
from fairfl.cli.output import say
from fairfl.paper import page, report, shown
from fairfl.paper.asked import Asked
from fairfl.paper.found import reproduce
from fairfl.paper.objects import as_object
from fairfl.paper.recipe import BudgetName, Training
from fairfl.paper.recipes import named
from fairfl.report import progress
from fairfl.report.writing import write_page
from fairfl.runs import folder
from fairfl.runs.atomic import replaced
from fairfl.runs.json import text
from fairfl.runs.request import Plan

RUNS = Path("runs")
"""Where a reproduction is kept that does not say where."""

Budget = Annotated[
    str,
    option(
        "--budget",
        TRAINING,
        "quick: minutes, with fewer rounds; paper: the paper's rounds where they take minutes.",
        "NAME",
    ),
]
Seeds = Annotated[
    int | None,
    option("--seeds", TRAINING, "Runs of each training: seeds 1 to N; 5 if affordable.", "N"),
]
Rounds = Annotated[
    int | None, option("--rounds", TRAINING, "At most so many rounds of each training.", "N")
]
AsReference = Annotated[
    bool,
    option(
        "--as-reference",
        TRAINING,
        "With the settings of the reference code where they differ from the paper's.",
    ),
]
Names = Annotated[
    list[str], typer.Argument(help="table-1 to table-12, figure-2 to figure-10, theory, or all.")
]


@app.command("reproduce")
def reproduce_paper(
    names: Names,
    budget: Budget = "quick",
    seeds: Seeds = None,
    rounds: Rounds = None,
    as_reference: AsReference = False,
    data_dir: DataDir = None,
    out: Out = None,
    resume: Resume = False,
    as_json: Json = False,
) -> None:
    """Run the experiments behind the paper's tables and figures, and compare number by number.

    fairfl reproduce table-1

    fairfl reproduce all --budget paper --out reproduction --resume
    """
    if budget not in get_args(BudgetName):
        raise ValueError(f"--budget {budget} is neither quick nor paper; choose one")
    for name, value in {"seeds": seeds, "rounds": rounds}.items():
        if value is not None:
            whole(name, value)
    wanted = named(tuple(names))
    place = _place(out, resume)
    asked = Asked(cast(BudgetName, budget), seeds, as_reference, data_dir, rounds)
    try:
        found = reproduce(wanted, asked, place, resume=True, watch=_watched)
    except KeyboardInterrupt:
        raise CommandError(INTERRUPTED, _interrupted(names, asked, place)) from None
    if as_json:
        sys.stdout.write(text(as_object(found)))
        sys.stdout.flush()
    else:
        say(list(shown.lines(found)))
    written = place / "reproduction.md"
    command = _command(names, asked)
    with replaced(written) as stream:
        stream.write(page.markdown(found, command).encode())
    shown_at = write_page(report.page(found, command), place)
    say([f"Written to {written} and {shown_at}"], aside=as_json)


def _place(out: Path | None, resume: bool) -> Path:
    """The folder of the runs: a new one, or one that is to be gone on with."""
    if out is None:
        if resume:
            raise ValueError("--resume goes on; say with --out in which folder")
        return folder.reserved(RUNS, "reproduce")
    if out.exists() and not resume and (out.is_file() or any(out.iterdir())):
        raise ValueError(
            f"the folder {str(out)!r} exists; add --resume to go on with what is there, or name "
            "another with --out"
        )
    folder.check_parent(out.parent)
    out.mkdir(parents=True, exist_ok=True)
    return out


@contextmanager
def _watched(training: Training, plan: Plan) -> Iterator[progress.Meter]:
    """Says what is trained, with a bar where there is a terminal."""
    console = Console(stderr=True, highlight=False)
    console.print(
        f"{training.name}: {plan.total // plan.rounds} experiments of {plan.rounds:,} rounds"
    )
    with progress.shown(plan.total, console) as meter:
        yield meter


def _command(names: Sequence[str], asked: Asked) -> str:
    """The command again, without where its results go."""
    words = ["fairfl", "reproduce", *names, "--budget", asked.budget]
    for option_name in ("seeds", "rounds"):
        value = getattr(asked, option_name)
        words += [] if value is None else [f"--{option_name}", str(value)]
    return shlex.join(words + (["--as-reference"] if asked.as_reference else []))


def _interrupted(names: Sequence[str], asked: Asked, place: Path) -> str:
    again = f"{_command(names, asked)} --out {shlex.quote(str(place))} --resume"
    return f"interrupted; go on with: {again}"
