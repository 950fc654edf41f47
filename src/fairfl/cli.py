"""The command line: `fairfl run`, `fairfl sweep` and `fairfl datasets`."""

import dataclasses
import inspect
import io
import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import click
import typer
from click.core import ParameterSource
from rich.console import Console

from fairfl import __version__, datasets
from fairfl.algorithms import NAMED
from fairfl.algorithms.algorithm import whole
from fairfl.algorithms.samplers import SAMPLERS
from fairfl.choice import Choice, choose_q
from fairfl.report import tables
from fairfl.report.progress import shown
from fairfl.runs import Result, compiled, folder, request, train
from fairfl.runs.json import SCHEMA, as_object, text
from fairfl.runs.request import Plan

OURS, THEIRS, INTERRUPTED = 1, 2, 130
"""Exit codes: a mistake of ours, a mistake of the user's, Ctrl-C."""

RUNS = Path("runs")
"""Where a run is kept that does not say where."""

FAMILY = (0.0, 0.1, 1.0, 2.0, 5.0)
"""The q of a sweep that does not say which, beside the data set's own."""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)


class CommandError(Exception):
    """The command ends here, with an exit code and a sentence."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def _option(name: str, panel: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(name, rich_help_panel=panel, help=help, metavar=metavar, show_default=False)


METHOD, TRAINING, DATA, OUTPUT = "Algorithm", "Training", "Data", "Output"

Name = Annotated[
    str,
    _option(
        "--algorithm",
        METHOD,
        f"{', '.join(NAMED)}; also with its settings: q-fedavg:q=5:sampler=uniform.",
        "NAME",
    ),
]
Q = Annotated[
    str | None,
    _option("--q", METHOD, "How much badly served clients count; 0 is FedAvg.", "NUMBER,.."),
]
Rate = Annotated[
    str | None, _option("--learning-rate", METHOD, "Step size of the clients.", "NUMBER,..")
]
Lipschitz = Annotated[
    str | None,
    _option("--L", METHOD, "Lipschitz estimate; 1 / learning rate if not given.", "NUMBER,.."),
]
Epochs = Annotated[
    int | None, _option("--epochs", METHOD, "Local passes over a client's rows.", "N")
]
BatchSize = Annotated[int | None, _option("--batch-size", METHOD, "Rows of a local step.", "N")]
Drawn = Annotated[
    str | None,
    _option("--sampler", METHOD, f"How clients are drawn: {', '.join(SAMPLERS)}.", "NAME"),
]
Weights = Annotated[
    str | None, _option("--weights", METHOD, "What a client counts for: size or equal.", "NAME")
]
ModelName = Annotated[
    str | None, _option("--model", TRAINING, f"{', '.join(request.MODELS)}.", "NAME")
]
Rounds = Annotated[int | None, _option("--rounds", TRAINING, "Rounds of training.", "N")]
Cohort = Annotated[int | None, _option("--cohort", TRAINING, "Clients that train in a round.", "N")]
Seed = Annotated[
    int, _option("--seed", TRAINING, "The first seed, of split, model, cohorts and shuffles.", "N")
]
Seeds = Annotated[int, _option("--seeds", TRAINING, "How many seeds; 5 if not given.", "N")]
SplitSeed = Annotated[
    int | None,
    _option("--split-seed", TRAINING, "One split for all seeds, drawn from this one.", "N"),
]
Evaluate = Annotated[
    int | None,
    _option("--evaluate-every", TRAINING, "Rounds from one evaluation to the next.", "N"),
]
Client = Annotated[
    str | None, _option("--client", DATA, "Table: the column that says whose row it is.", "COLUMN")
]
Label = Annotated[str | None, _option("--label", DATA, "Table: the column to predict.", "COLUMN")]
Features = Annotated[
    str | None,
    _option(
        "--features", DATA, "Table: what to predict from; all others if not given.", "COLUMN,.."
    ),
]
Alpha = Annotated[
    float | None,
    _option("--alpha", DATA, "Synthetic: deviation between the clients' models.", "NUMBER"),
]
Beta = Annotated[
    float | None,
    _option("--beta", DATA, "Synthetic: deviation between the clients' inputs.", "NUMBER"),
]
Clients = Annotated[int | None, _option("--clients", DATA, "Synthetic: how many clients.", "N")]
Sizes = Annotated[
    str | None, _option("--sizes", DATA, "Synthetic: sizes of clients, paper or heavy.", "NAME")
]
DataSeed = Annotated[
    int | None, _option("--data-seed", DATA, "Synthetic: the seed that it is generated from.", "N")
]
DataDir = Annotated[
    Path | None, _option("--data-dir", DATA, "Where data sets with files are kept.", "FOLDER")
]
Out = Annotated[
    Path | None,
    _option(
        "--out", OUTPUT, "Where to write the run; a new folder in runs/ if not given.", "FOLDER"
    ),
]
Overwrite = Annotated[bool, _option("--overwrite", OUTPUT, "Replace the run that is there.")]
Json = Annotated[bool, _option("--json", OUTPUT, "Print one JSON object and nothing else.")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked:
    """What can be asked of a command that trains; None is left to the data set's defaults."""

    context: click.Context
    data: str
    algorithm: Name = "q-fedavg"
    q: Q = None
    learning_rate: Rate = None
    L: Lipschitz = None
    epochs: Epochs = None
    batch_size: BatchSize = None
    sampler: Drawn = None
    weights: Weights = None
    model: ModelName = None
    rounds: Rounds = None
    cohort: Cohort = None
    seed: Seed = 0
    split_seed: SplitSeed = None
    evaluate_every: Evaluate = None
    client: Client = None
    label: Label = None
    features: Features = None
    alpha: Alpha = None
    beta: Beta = None
    clients: Clients = None
    sizes: Sizes = None
    data_seed: DataSeed = None
    data_dir: DataDir = None
    out: Out = None
    overwrite: Overwrite = False
    as_json: Json = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class AskedSweep(Asked):
    """A sweep trains every combination of its lists of numbers, once for each seed."""

    seeds: Seeds = 5


A = TypeVar("A", bound=Asked)


def _command(asked: type[A]) -> Callable[[Callable[[A], None]], None]:
    """Register a function of a request as the command of its name, with the request's fields."""

    def register(function: Callable[[A], None]) -> None:
        def command(**options: Any) -> None:
            function(asked(**options))

        command.__doc__ = function.__doc__
        command.__annotations__ = get_type_hints(asked, include_extras=True)
        command.__signature__ = inspect.signature(asked)  # type: ignore[attr-defined]
        app.command(function.__name__)(command)

    return register


@app.callback(invoke_without_command=True)
def _begin(
    context: click.Context,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", show_default=False)
    ] = False,
) -> None:
    """Fair federated learning: train one model so that it serves every client."""
    if show_version:
        print(f"fairfl {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


@_command(Asked)
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
    result = _trained(plan)
    _report(asked, plan, result, None, [tables.single(result)])


@_command(AskedSweep)
def sweep(asked: AskedSweep) -> None:
    """Train one model for every q, compare how evenly they serve, and name the q to use.

    DATA is a data set by name (see fairfl datasets) or a path to a table of yours.

    fairfl sweep synthetic --q 0,0.1,1,5 --seeds 5

    fairfl sweep visits.parquet --client hospital --label readmitted
    """
    seeds = [asked.seed + i for i in range(whole("seeds", asked.seeds))]
    plan = _planned(asked, seeds, q=sorted({*FAMILY, datasets.defaults(asked.data).q}))
    result = _trained(plan)
    choice, said = _chosen(result)
    _report(asked, plan, result, choice, said)


def _chosen(result: Result) -> tuple[Choice | None, list[Any]]:
    """The choice of q where there is one, and what is to be said about the family."""
    try:
        choice = choose_q(result)
    except ValueError as error:
        return None, [tables.family(result), f"No q is recommended: {error}."]
    table = tables.family(result, chosen=choice.hyperparameters)
    plain = tables.plain_model(result, choice.hyperparameters)
    return choice, [table, plain, f"Recommended: {choice.reason}"]


@app.command("datasets")
def list_datasets(
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """List the data sets that have a name: where they come from, and whether they are here."""
    found = datasets.describe(data_dir)
    if as_json:
        listed = [dataclasses.asdict(description) for description in found]
        sys.stdout.write(text({"schema": SCHEMA, "datasets": listed}))
    else:
        _say([tables.catalogue(found), *tables.sources(found)])


def _planned(asked: Asked, seeds: Sequence[int], q: Sequence[float]) -> Plan:
    """Everything that can be refused is refused here, before anything is trained."""
    if asked.out is None:
        folder.check_parent(RUNS)
    else:
        folder.check(asked.out, asked.overwrite)
    plan = request.plan(asked.data, vars(asked), seeds, q)
    if plan.preprocessing is not None:
        lines = [f"  {line}" for line in plan.preprocessing.describe()]
        _say([f"{asked.data} was read as", *lines, ""], aside=asked.as_json)
    return plan


def _trained(plan: Plan) -> Result:
    with shown(plan.total, Console(stderr=True)) as meter:
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
                on_chunk=meter,
            )
        except KeyboardInterrupt:
            raise CommandError(
                INTERRUPTED,
                f"interrupted after {meter.done:,} of {plan.total:,} rounds of all experiments, "
                "and nothing was written; the same command begins anew",
            ) from None


def _report(
    asked: Asked, plan: Plan, result: Result, choice: Choice | None, found: list[Any]
) -> None:
    """Show what was found and keep it: a full disk or a closed pipe costs only the other one."""
    chosen = None if choice is None else dataclasses.asdict(choice)
    try:
        if asked.as_json:
            sys.stdout.write(text(as_object(result, chosen)))
            sys.stdout.flush()
        else:
            about = tables.heading(result, plan.model.name, plan.cohort)
            _say([*about, "", *found, *(f"Note: {note}" for note in result.notes)])
    finally:
        kept = _kept(asked, plan, result, chosen)
    _say([f"Written to {kept}"], asked.as_json)
    if all(member.stopped for member in result.members):
        raise CommandError(
            THEIRS,
            "every experiment stopped early because nothing finite was left to train; the last "
            f"good models are in {kept}, so try a smaller learning rate",
        )


def _kept(asked: Asked, plan: Plan, result: Result, chosen: dict[str, Any] | None) -> Path:
    what = {
        "choice": chosen,
        "settings": plan.settings,
        "preprocessing": plan.preprocessing and plan.preprocessing.to_json(),
        "command": _as_typed(asked.context),
    }
    if asked.out is not None:
        return folder.write(result, asked.out, overwrite=asked.overwrite, **what)
    label = f"{plan.data.name}-{asked.context.info_name}"
    return folder.write_numbered(result, RUNS, label, **what)


def _as_typed(context: click.Context) -> str:
    """The command again, without where its results go."""
    words = ["fairfl", str(context.info_name), context.params["data"]]
    for option in context.command.params:
        name = str(option.name)
        typed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if typed and name not in ("data", "out", "overwrite", "as_json", "data_dir"):
            words += [option.opts[0], str(context.params[name])]
    return shlex.join(words)


def _say(lines: Sequence[Any], aside: bool = False) -> None:
    """Print text and tables, aside for people who have the output read by a program."""
    console = Console(stderr=aside, highlight=False)
    for line in lines:
        console.print(line, markup=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; whatever goes wrong is one sentence."""
    warnings.showwarning = _note
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show ± shows a question mark.
            stream.reconfigure(errors="replace")
    compiled.keep()
    command = typer.main.get_command(app)
    command.suggest_commands = False  # type: ignore[attr-defined]  # click does it
    try:
        code = command.main(
            args=None if arguments is None else list(arguments),
            prog_name="fairfl",
            standalone_mode=False,
        )
    except Exception as error:
        return _complain(error)
    if code == INTERRUPTED:
        _error("interrupted; there is a run's folder only if it is complete")
    return code or 0


def _complain(error: Exception) -> int:
    """Say what went wrong, and give the exit code that tells whose mistake it was."""
    if os.environ.get("FAIRFL_DEBUG") == "1":
        traceback.print_exception(error)
    match error:
        case CommandError():
            code, sentence = error.code, str(error)
        case click.UsageError():
            code, sentence = THEIRS, _usage(error)
        case ValueError():
            code, sentence = THEIRS, str(error)
        case OSError():
            code, sentence = THEIRS, f"{error}; check that the place exists and is yours to use"
        case _:
            code = OURS
            sentence = (
                f"{type(error).__name__} ({error}); this is a bug in fairfl, so please report it "
                "with what FAIRFL_DEBUG=1 prints"
            )
    _error(sentence)
    return code


def _usage(error: click.UsageError) -> str:
    """What click says in two sentences, as one."""
    said = re.sub(r"\. (\(?)D", r"; \1d", error.format_message()).rstrip(".")
    command = error.ctx.command_path if error.ctx else "fairfl"
    return said if said.endswith("?") else f"{said}; see {command} --help"


def _error(sentence: str) -> None:
    print(f"Error: {' '.join(sentence.split())}", file=sys.stderr)


def _note(message: Warning | str, *_: Any) -> None:
    """A warning as a user reads it: without the line of our code that gave it."""
    print(f"Note: {message}", file=sys.stderr)
