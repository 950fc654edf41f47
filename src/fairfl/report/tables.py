"""Tables of results for a terminal of 80 columns, and the sentences that go with them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich import box
from rich.table import Table

from fairfl.clients.federated import SPLITS, SplitName
from fairfl.datasets import Description
from fairfl.metrics import interval
from fairfl.runs import Result

Rounding = Mapping[str, str]

METRICS = {
    "average": "average",
    "worst10": "worst 10%",
    "best10": "best 10%",
    "variance": "variance",
    "angle": "angle °",
    "kl": "KL nats",
}
"""The metrics of the paper's Table 4, and their headings."""

_OF_ACCURACIES = dict.fromkeys(METRICS, ".1f") | {"variance": ".0f", "kl": ".3f"}
_OF_LOSSES = dict.fromkeys(METRICS, ".3g") | {"angle": ".1f", "kl": ".3f"}


class Setting(NamedTuple):
    """One setting of the hyper-parameters, and the places of its experiments, one per seed."""

    hyper: Mapping[str, float]
    places: list[int]


def settings(result: Result) -> list[Setting]:
    """The settings of a sweep, in its order.

    >>> import fairfl
    >>> from fairfl.report.tables import settings
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> family = fairfl.q_fedavg(q=[0, 1])
    >>> result = fairfl.train(data, model, family, rounds=2, cohort=5, seed=[0, 1])
    >>> [(setting.hyper["q"], setting.places) for setting in settings(result)]
    [(0.0, [0, 2]), (1.0, [1, 3])]
    """
    found: dict[tuple[float, ...], Setting] = {}
    for place, member in enumerate(result.members):
        key = tuple(member.hyper.values())
        found.setdefault(key, Setting(member.hyper, [])).places.append(place)
    return list(found.values())


def family(
    result: Result, split: SplitName = "test", chosen: Mapping[str, float] | None = None
) -> Table:
    """One row per setting: mean over the seeds, and their deviation where there are several."""
    rows = settings(result)
    varying = _varying(rows)
    found, figures = result.fairness(split), figures_of(result)
    served = f"{noun_of(result)} over clients{_adapted(result)}"
    table = ruled(f"{split.capitalize()} {served}{_over_seeds(rows)}")
    for name in varying:
        table.add_column(name.replace("_", " "), justify="right", style="bold")
    _add_metrics(table)
    for row in rows:
        labels = [f"{row.hyper[name]:g}" for name in varying]
        cells = [spread(found[name][row.places], figures[name]) for name in METRICS]
        table.add_row(*labels, *cells, style="bold" if row.hyper == chosen else "")
    return table


def single(result: Result) -> Table:
    """One experiment: a row per split that has rows."""
    table = ruled(f"{noun_of(result).capitalize()} over clients{_adapted(result)}")
    table.add_column("split", style="bold")
    table.add_column("clients", justify="right")
    _add_metrics(table)
    for split in SPLITS:
        there = result.data.clients - len(result.missing(split))
        if there:
            found = result.fairness(split)
            cells = [f"{found[name][0]:{figures_of(result)[name]}}" for name in METRICS]
            table.add_row(split, f"{there:,}", *cells)
    return table


def personal(result: Result) -> list[Table]:
    """Under the table of the model for all, one of the models that clients keep, if they do."""
    own = result.personal
    if own is None:
        return []
    table = single(own) if len(own) == 1 else family(own)
    table.title = f"Each client with the model that it keeps\n{table.title}"
    return [table]


def spread(values: np.ndarray, figures: str) -> str:
    """The mean over seeds and its deviation.

    >>> import numpy as np
    >>> from fairfl.report.tables import spread
    >>> spread(np.array([79.0, 81.0]), ".1f"), spread(np.array([79.0]), ".1f")
    ('80.0 ±1.4', '79.0')
    """
    found = interval(values)
    rough = figures.replace("3g", "1g")
    mean = f"{found.mean:{figures}}"
    return mean if np.isnan(found.deviation) else f"{mean} ±{found.deviation:{rough}}"


def heading(result: Result, model: str, cohort: int) -> list[str]:
    """What was trained on what, how clients were drawn and weighed, and how long it took.

    >>> import fairfl
    >>> from fairfl.report.tables import heading
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=2, cohort=5)
    >>> print(heading(result, model.name, cohort=5)[0])
    q-fedavg on synthetic: softmax regression, 20 clients, 2,539 rows
    """
    data, rows = result.data, settings(result)
    varying = _varying(rows)
    fixed = [
        f"{name.replace('_', ' ')} {value:g}"
        for name, value in rows[0].hyper.items()
        if name not in varying
    ]
    seeds = [member.seed for member in (result.members[place] for place in rows[0].places)]
    named = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    return [
        f"{result.algorithm} on {data.name}: {model}, {data.clients:,} clients, {data.rows:,} rows",
        f"sampler {result.sampler}, weights {result.weights}, {result.rounds:,} rounds of "
        f"{'all' if result.sampler == 'everyone' else f'{cohort:,}'} clients, {named}",
        ", ".join([*fixed, f"trained in {result.seconds:,.1f} s"]),
    ]


def plain_model(result: Result, chosen: Mapping[str, float], split: SplitName = "test") -> str:
    """How unevenly the model of q = 0 serves its clients, with the other settings as chosen."""
    hyper = {**chosen, "q": 0.0}
    plain = next(row for row in settings(result) if row.hyper == hyper)
    found, figures = result.fairness(split), figures_of(result)
    average, worst, best = (
        f"{np.mean(found[name][plain.places]):{figures[name]}}"
        for name in ("average", "worst10", "best10")
    )
    noun, unit = noun_of(result).split()[0], "" if result.data.task == "regression" else " %"
    return (
        f"The plain model (q=0) has an average {noun} of {average}{unit}, but {worst}{unit} for "
        f"the worst tenth of the clients and {best}{unit} for the best."
    )


def catalogue(descriptions: Sequence[Description]) -> Table:
    """The data sets by name: how large each is, whether it is here, and what it is."""
    table = ruled("Data sets")
    table.add_column("name", style="bold", no_wrap=True)
    for column in ("clients", "rows", "rows of a client"):
        table.add_column(column, justify="right")
    table.add_column("what it is")
    for found in descriptions:
        table.add_row(found.name, *_counts(found), found.title)
    return table


def _counts(found: Description) -> list[str]:
    if found.mean is None:
        return ["-", "-", "not here"]
    return [f"{found.clients:,}", f"{found.rows:,}", f"{found.mean:,.0f} ± {found.deviation:,.0f}"]


def absent(descriptions: Sequence[Description], folder: Path) -> list[str]:
    """Which file to put where for the data sets that are not here.

    >>> from pathlib import Path
    >>> from fairfl.datasets import describe
    >>> from fairfl.report.tables import absent
    >>> absent(describe(data_dir="empty")[4:5], Path("empty"))[0]
    "vehicle-subset is not here: put vehicle/mytrain.ditto_subsampled.json.gz into 'empty'"
    """
    return [
        f"{found.name} is not here: {_put(found)} into {str(folder)!r}"
        for found in descriptions
        if not found.present
    ]


def _put(found: Description) -> str:
    """How the files get there: by themselves where all have an address."""
    own, others = (
        " and ".join(file.place for file in files) for files in (found.files, found.instead)
    )
    by_itself = "it is downloaded when it is first loaded; or "
    fetched = by_itself if all(file.url for file in found.files) else ""
    return f"{fetched}put {own}{f', or else {others},' if others else ''}"


def sources(descriptions: Sequence[Description]) -> list[str]:
    """Where the data sets come from and their licences, those of one source together.

    >>> from fairfl.datasets import describe
    >>> from fairfl.report.tables import sources
    >>> sources(describe(data_dir="an empty folder")[:1])[0][:49]
    'synthetic: generated as in the q-FFL paper (Li et'
    """
    places: dict[tuple[str, str], list[str]] = {}
    for found in descriptions:
        places.setdefault((found.source, found.licence), []).append(found.name)
    return [
        f"{', '.join(names)}: {source}; licence: {licence}"
        for (source, licence), names in places.items()
    ]


def ruled(title: str) -> Table:
    """A table with a title and one rule under its header."""
    return Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )


def _add_metrics(table: Table) -> None:
    for title in METRICS.values():
        table.add_column(title, justify="right")


def _varying(rows: Sequence[Setting]) -> list[str]:
    """The hyper-parameters that differ between settings."""
    return [name for name in rows[0].hyper if len({row.hyper[name] for row in rows}) > 1]


def _over_seeds(rows: Sequence[Setting]) -> str:
    seeds = len(rows[0].places)
    return f", mean ± deviation of {seeds} seeds" if seeds > 1 else ""


def _adapted(result: Result) -> str:
    steps = result.settings.get("personal_steps")
    return "" if steps is None else f", each after {steps} steps on its own rows"


def noun_of(result: Result) -> str:
    """What is measured of each client."""
    return "loss" if result.data.task == "regression" else "accuracy in percent"


def figures_of(result: Result) -> Rounding:
    """How many figures each metric is shown with."""
    return _OF_LOSSES if result.data.task == "regression" else _OF_ACCURACIES
