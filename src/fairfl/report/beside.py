"""The page of a comparison: every method at its setting, and which differences are real."""

from pathlib import Path

from fairfl.clients.federated import SplitName
from fairfl.comparison import Comparison, load_comparison
from fairfl.comparison.differences import COMPARED
from fairfl.comparison.folder import asked_in
from fairfl.comparison.notes import notes
from fairfl.metrics import Interval
from fairfl.report import charts, comparisons, sentences
from fairfl.report.entries import Entry
from fairfl.report.methods import DIVERGED, heading, mark
from fairfl.report.page import Block, Code, Figure, Notes, Page, Section
from fairfl.report.sheets import Column, Sheet
from fairfl.report.tables import METRICS, figures_of
from fairfl.runs.result import Columns

SPLIT: SplitName = "test"

MARKS = (
    "Means over the pairs of a seed, with 95 % intervals (Student's t). * is real: its interval "
    "leaves out 0. ** still does so when corrected for all that were tested (Bonferroni)."
)


def page_of(folder: Path) -> Page:
    """The page of the comparison that a folder keeps."""
    return page(load_comparison(folder), asked_in(folder)["command"])


def page(found: Comparison, command: str | None = None) -> Page:
    """The report of a comparison.

    >>> import fairfl
    >>> from fairfl.report.beside import page
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> methods = [fairfl.fedavg(), fairfl.q_fedavg()]
    >>> found = fairfl.compare(data, model, methods, rounds=3, cohort=5, seeds=2)
    >>> [section.title for section in page(found).sections][:2]
    ['How evenly are clients served?', 'Which differences are real?']
    """
    several = entries(found)
    two = len(several) > 1
    return Page(
        title=heading(found)[0],
        headline=sentences.compared(several, SPLIT),
        blocks=[Notes("Before you rely on this", notes(found))],
        sections=[
            Section("How evenly are clients served?", [comparisons.metrics(several, SPLIT)]),
            *([Section("Which differences are real?", [MARKS, differences(found)])] * two),
            *_drawn(several),
            Section("How was each method tuned?", [settings(found)]),
            Section("How to reproduce it", _again(found, command)),
        ],
    )


def entries(found: Comparison) -> list[Entry]:
    """Each method at its setting, by its name in the comparison."""
    return [
        Entry(method + DIVERGED * any(m.stopped for m in shown.members), shown, places, hyper)
        for method in found.methods
        for shown in [found[method]]
        for places, hyper in [(range(len(shown)), found.tuned[method].hyper)]
    ]


def differences(found: Comparison) -> Sheet:
    """Each method minus the baseline with its 95 % interval; * is real, ** also when corrected."""
    compared, figures = found.differences(SPLIT), figures_of(found[found.baseline])
    columns, rows = [Column("method")], []
    for metric in COMPARED:
        columns += [Column(METRICS[metric], f"+{figures[metric]}"), Column(f"{METRICS[metric]}?")]
    for first in range(0, len(compared["method"]), len(COMPARED)):
        places = range(first, first + len(COMPARED))
        cells = [
            cell for place in places for cell in (_span(compared, place), mark(compared, place))
        ]
        rows.append([str(compared["method"][first]), *cells])
    return Sheet("differences", f"Difference to {found.baseline}, paired by seed", columns, rows)


def _span(compared: Columns, place: int) -> Interval:
    mean, low, high, deviation = (
        float(compared[name][place]) for name in ("difference", "low", "high", "deviation")
    )
    return Interval(mean, low, high, deviation, int(compared["seeds"][place]))


def settings(found: Comparison) -> Sheet:
    """The setting that each method is shown with, of how many, and why."""
    rows = [
        [
            method,
            ", ".join(f"{n.replace('_', ' ')} = {v:g}" for n, v in tuned.hyper.items()),
            tuned.tried,
            tuned.reason,
        ]
        for method, tuned in found.tuned.items()
    ]
    columns = [Column("method"), Column("setting"), Column("of", "d"), Column("chosen for")]
    return Sheet("settings", "Settings, chosen on validation data", columns, rows)


def _drawn(several: list[Entry]) -> list[Section]:
    if len(several) == 1:
        return []
    price = Figure(
        "frontier",
        charts.frontier(several, SPLIT),
        "Average against variance; bars are 95 % intervals over the seeds.",
    )
    rounds = [
        Figure(f"rounds-{metric}", charts.convergence(several, SPLIT, metric, title), caption)
        for metric, title, caption in (
            ("worst10", "worst 10 %", "The worst served tenth of the clients, over the rounds."),
            ("average", "average", "All data points, over the rounds."),
        )
    ]
    return [Section("What does evenness cost?", [price]), Section("How did training go?", rounds)]


def _again(found: Comparison, command: str | None) -> list[Block]:
    said = "The same versions and data give the same numbers, bit for bit."
    return [*([Code(command)] if command else []), said, *heading(found)[1:]]
