"""What can be asked of a command: the options, their help, and where each is listed."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import click
import typer

from fairfl.algorithms import NAMED
from fairfl.algorithms.samplers import SAMPLERS
from fairfl.runs import request


def option(name: str, panel: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(name, rich_help_panel=panel, help=help, metavar=metavar, show_default=False)


METHOD, TRAINING, DATA, OUTPUT = "Algorithm", "Training", "Data", "Output"

Name = Annotated[
    str | None,
    option(
        "--algorithm",
        METHOD,
        f"{', '.join(NAMED)}; also with its settings: q-fedavg:q=5:sampler=uniform.",
        "NAME",
    ),
]
Several = Annotated[
    str | None,
    option(
        "--algorithms",
        METHOD,
        "Several, with settings after colons: fedavg,q-fedavg:q=1,afl:gamma=.1; all if not given.",
        "NAME,..",
    ),
]
Baseline = Annotated[
    str | None,
    option("--baseline", METHOD, "What the others are compared with; fedavg if there.", "NAME"),
]
Q = Annotated[
    str | None,
    option("--q", METHOD, "How much badly served clients count; 0 is FedAvg.", "NUMBER,.."),
]
Rate = Annotated[
    str | None, option("--learning-rate", METHOD, "Step size of the clients.", "NUMBER,..")
]
Lipschitz = Annotated[
    str | None,
    option("--L", METHOD, "Lipschitz estimate; 1 / learning rate if not given.", "NUMBER,.."),
]
Epochs = Annotated[
    int | None, option("--epochs", METHOD, "Local passes over a client's rows.", "N")
]
BatchSize = Annotated[int | None, option("--batch-size", METHOD, "Rows of a local step.", "N")]
Drawn = Annotated[
    str | None,
    option("--sampler", METHOD, f"How clients are drawn: {', '.join(SAMPLERS)}.", "NAME"),
]
Weights = Annotated[
    str | None, option("--weights", METHOD, "What a client counts for: size or equal.", "NAME")
]
ModelName = Annotated[
    str | None, option("--model", TRAINING, f"{', '.join(request.MODELS)}.", "NAME")
]
Rounds = Annotated[int | None, option("--rounds", TRAINING, "Rounds of training.", "N")]
Cohort = Annotated[int | None, option("--cohort", TRAINING, "Clients that train in a round.", "N")]
Seed = Annotated[
    int, option("--seed", TRAINING, "The first seed, of split, model, cohorts and shuffles.", "N")
]
Seeds = Annotated[int, option("--seeds", TRAINING, "How many seeds; 5 if not given.", "N")]
SplitSeed = Annotated[
    int | None,
    option("--split-seed", TRAINING, "One split for all seeds, drawn from this one.", "N"),
]
Evaluate = Annotated[
    int | None,
    option("--evaluate-every", TRAINING, "Rounds from one evaluation to the next.", "N"),
]
Client = Annotated[
    str | None, option("--client", DATA, "Table: the column that says whose row it is.", "COLUMN")
]
Label = Annotated[str | None, option("--label", DATA, "Table: the column to predict.", "COLUMN")]
Features = Annotated[
    str | None,
    option(
        "--features", DATA, "Table: what to predict from; all others if not given.", "COLUMN,.."
    ),
]
Columns = Annotated[
    str | None,
    option(
        "--columns", DATA, "Table: all its columns, for a CSV file without a header line.",
        "NAME,..",
    ),
]  # fmt: skip
Fractions = Annotated[
    str | None,
    option(
        "--split", DATA, "Table: shares that train, validate and test; 0.8,0.1,0.1 if not given.",
        "NUMBER,..",
    ),
]  # fmt: skip
Task = Annotated[
    str | None,
    option(
        "--task", DATA, "Table: binary, multiclass or regression; as the labels are if not given.",
        "NAME",
    ),
]  # fmt: skip
Alpha = Annotated[
    float | None,
    option(
        "--alpha",
        DATA,
        "Synthetic: deviation between the clients' models; partitions: how even the mixtures are.",
        "NUMBER",
    ),
]
Beta = Annotated[
    float | None,
    option("--beta", DATA, "Synthetic: deviation between the clients' inputs.", "NUMBER"),
]
Clients = Annotated[
    int | None,
    option("--clients", DATA, "Synthetic, partitions, roles and accounts: how many.", "N"),
]
Least = Annotated[
    int | None,
    option("--least", DATA, "Shakespeare and Sent140: the fewest rows of a client.", "N"),
]
Most = Annotated[
    int | None, option("--most", DATA, "Shakespeare: the most rows of a client, its first.", "N")
]
Partition = Annotated[
    str | None,
    option("--partition", DATA, "Images: dirichlet, iid, power-law or shards.", "NAME"),
]
Sizes = Annotated[
    str | None, option("--sizes", DATA, "Synthetic: sizes of clients, paper or heavy.", "NAME")
]
DataSeed = Annotated[
    int | None, option("--data-seed", DATA, "The seed that data are generated or dealt from.", "N")
]
DataDir = Annotated[
    Path | None, option("--data-dir", DATA, "Where data sets with files are kept.", "FOLDER")
]
Out = Annotated[
    Path | None,
    option(
        "--out", OUTPUT, "Where to write the run; a new folder in runs/ if not given.", "FOLDER"
    ),
]
Resume = Annotated[
    bool, option("--resume", OUTPUT, "Go on with the run that is there, if there is one.")
]
Track = Annotated[
    str | None,
    option(
        "--track", OUTPUT, "Send evaluated rounds to tensorboard, mlflow or wandb.", "NAME,.."
    ),
]  # fmt: skip
Overwrite = Annotated[bool, option("--overwrite", OUTPUT, "Replace the run that is there.")]
Json = Annotated[bool, option("--json", OUTPUT, "Print one JSON object and nothing else.")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AskedData:
    """What every command that trains is asked first."""

    context: click.Context
    data: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class AskedMethod:
    """One algorithm and its own parameters."""

    algorithm: Name = None
    q: Q = None
    L: Lipschitz = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class AskedMethods:
    """Several algorithms side by side, once for each seed."""

    algorithms: Several = None
    baseline: Baseline = None
    seeds: Seeds = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class AskedTraining:
    """How to train; None is left to the data set's defaults."""

    learning_rate: Rate = None
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
    columns: Columns = None
    split: Fractions = None
    task: Task = None
    alpha: Alpha = None
    beta: Beta = None
    partition: Partition = None
    clients: Clients = None
    sizes: Sizes = None
    least: Least = None
    most: Most = None
    data_seed: DataSeed = None
    data_dir: DataDir = None
    out: Out = None
    resume: Resume = False
    overwrite: Overwrite = False
    as_json: Json = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked(AskedTraining, AskedMethod, AskedData):
    """What can be asked of a command that trains one algorithm."""

    track: Track = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class AskedCompare(AskedTraining, AskedMethods, AskedData):
    """What can be asked of a comparison."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AskedSweep(Asked):
    """A sweep trains every combination of its lists of numbers, once for each seed."""

    seeds: Seeds = 5
