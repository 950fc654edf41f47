"""The tables of a report: every metric of every model, the price of evenness, every client."""

from collections.abc import Sequence

from fairfl.clients.federated import SPLITS, SplitName
from fairfl.report.entries import Entry, across, difference
from fairfl.report.measure import Measure
from fairfl.report.points import Rows
from fairfl.report.sheets import Column, Rounded, Sheet

METRICS = {
    "average": "average",
    "average_clients": "average over clients",
    "worst10": "worst 10 %",
    "best10": "best 10 %",
    "worst": "worst client",
    "best": "best client",
    "variance": "variance",
    "angle": "angle °",
    "kl": "KL nats",
    "jain": "Jain",
    "gini": "Gini",
}
"""The metrics that a report lists, and their headings."""

FIGURES = {"angle": ".1f", "kl": ".3f", "jain": ".3f", "gini": ".3f"}
"""Their digits, where they are not those of the accuracies or losses."""


def figures(metric: str, measure: Measure) -> str:
    """How a metric is written.

    >>> from fairfl.report.comparisons import figures
    >>> from fairfl.report.measure import ACCURACY
    >>> figures("average", ACCURACY), figures("variance", ACCURACY), figures("kl", ACCURACY)
    ('.1f', '.0f', '.3f')
    """
    usual = measure.squared if metric == "variance" else measure.figures
    return FIGURES.get(metric, usual)


def metrics(several: Sequence[Entry], split: SplitName, marked: Entry | None = None) -> Sheet:
    """Every metric of every model with its 95 % interval over the seeds.

    >>> import fairfl
    >>> from fairfl.report.comparisons import metrics
    >>> from fairfl.report.entries import entries
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=2, cohort=5)
    >>> [row[0] for row in metrics(entries(result), "test").rows]
    ['q = 0', 'q = 1']
    """
    rows = [[e.label, *(across(e, split, name) for name in METRICS)] for e in several]
    place = next((i for i, entry in enumerate(several) if entry is marked), None)
    return Sheet(
        "metrics",
        f"Fairness of {several[0].measure.noun} on {split} data",
        _columns("model", several[0].measure),
        rows,
        place,
    )


def splits(entry: Entry) -> Sheet:
    """Every metric of one model on every split that has rows."""
    rows = [
        [split, *(across(entry, split, name) for name in METRICS)]
        for split in SPLITS
        if len(entry.result.missing(split)) < entry.result.data.clients
    ]
    title = f"Fairness of {entry.measure.noun} on every split: {entry.label}"
    return Sheet("splits", title, _columns("split", entry.measure), rows)


def _columns(first: str, measure: Measure) -> list[Column]:
    return [Column(first), *(Column(title, figures(n, measure)) for n, title in METRICS.items())]


def price(plain: Entry, other: Entry, split: SplitName) -> Sheet:
    """Two models metric by metric, and the difference with its interval, seed by seed."""
    rows = [
        [
            title,
            *(Rounded(across(entry, split, name).mean, digits) for entry in (plain, other)),
            Rounded(difference(plain, other, split, name), f"+{digits}"),
        ]
        for name, title in METRICS.items()
        for digits in [figures(name, plain.measure)]
    ]
    columns = [Column(""), *(Column(e.label, "s") for e in (plain, other)), Column("change", "s")]
    return Sheet("price", f"{other.label} beside {plain.label} on {split} data", columns, rows)


def clients(rows: Rows, plain: Entry, other: Entry | None, split: SplitName) -> Sheet:
    """Every client: its rows, and how it is served before and after."""
    digits = plain.measure.figures
    columns = [Column("client"), Column("rows", ",.0f"), Column(plain.label, digits)]
    if other is None:
        cells = [[row["client"], row["rows"], row["before"]] for row in rows]
    else:
        columns += [Column(other.label, digits), Column("change", f"+{digits}")]
        cells = [
            [row["client"], row["rows"], row["before"], row["after"], row["after"] - row["before"]]
            for row in rows
        ]
    title = f"{plain.measure.title.capitalize()} of every client on {split} data"
    return Sheet("clients", title, columns, cells)
