"""What a report answers, in this order: how unfair is the plain model, which model is recommended
and what it costs, who gains and who loses, and then everything behind it."""

from collections.abc import Sequence
from typing import NamedTuple

from fairfl.choice import device_q
from fairfl.clients.federated import SplitName
from fairfl.report import charts, comparisons, points, sentences
from fairfl.report.entries import Entry, across, entries, shown_split, side_by_side, tuned
from fairfl.report.folders import Kept
from fairfl.report.page import Block, Figure, Listing, Notes, Page, Section, Tile, Tiles
from fairfl.report.reproducing import reproducing
from fairfl.report.tables import heading
from fairfl.runs import Result

EXPLAINED = (
    "Means over the seeds with 95 % intervals (Student's t). The average is over data points; all "
    "else counts every client once. With an angle, a KL divergence and a Gini coefficient of 0 and "
    "a Jain index of 1, all are served alike."
)

STEP = (
    "The effective step, the sum of the coefficients a_k: how far the server moves along the "
    "clients' updates. Under q-FFL it shrinks as q grows, so a larger q needs more rounds."
)

FEW = 30
"""Up to so many clients are all drawn by name."""

LISTED = 20_000
"""A page lists at most so many clients; clients.csv has all of them."""


class Shown(NamedTuple):
    """What a report is about: all models, the plain one, another beside it and the chosen one of
    the two, on a split."""

    several: Sequence[Entry]
    plain: Entry
    other: Entry | None
    chosen: Entry | None
    split: SplitName

    @property
    def pair(self) -> list[Entry]:
        return [self.plain] if self.other is None else [self.plain, self.other]

    @property
    def best(self) -> Entry:
        """The chosen model, or the plain one where there was nothing to choose."""
        return self.plain if self.chosen is None else self.chosen

    @property
    def marked(self) -> str | None:
        return None if self.chosen is None else self.chosen.label


def page(kept: Kept) -> Page:
    """The report of a run or a sweep.

    >>> import fairfl
    >>> from fairfl.report.contents import page
    >>> from fairfl.report.folders import Kept
    >>> from fairfl.runs.folder import configuration_of
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=2, cohort=5)
    >>> found = page(Kept("first", result, configuration_of(result), None, None, None))
    >>> [section.title for section in found.sections][:2]
    ['How evenly are clients served?', 'Client by client']
    """
    shown = _shown(kept)
    return Page(
        title=_title(kept),
        headline=_headline(kept, shown),
        blocks=[_tiles(shown)],
        sections=[
            _unfair(shown),
            *_recommended(kept, shown),
            _clients(shown),
            _distribution(shown),
            *_frontier(shown),
            _convergence(shown),
            _metrics(shown),
            Section("How to reproduce it", reproducing(kept)),
        ],
    )


def together(several: Sequence[Kept]) -> Page:
    """Several runs side by side; those on the same data are compared client by client."""
    groups: dict[str, dict[str, Result]] = {}
    for kept in several:
        groups.setdefault(kept.result.data.fingerprint, {})[kept.name] = kept.result
    shown = [_compared(side_by_side(results)) for results in groups.values()]
    many = len(shown) > 1
    return Page(
        title=f"{len(several)} runs side by side: {', '.join(kept.name for kept in several)}",
        headline=" ".join(_of_data(one, many) for one in shown),
        blocks=[],
        sections=[
            *(section for one in shown for section in _beside(one, many)),
            *_noted(several),
            *(Section(f"How to reproduce {kept.name}", reproducing(kept)) for kept in several),
        ],
    )


def _compared(several: Sequence[Entry]) -> Shown:
    """The first beside the most even of the others."""
    split = shown_split([entry.result for entry in several])
    return Shown(several, several[0], _evenest(several, several[0], split), None, split)


def _of_data(shown: Shown, many: bool) -> str:
    if len(shown.several) == 1:
        return sentences.headline(shown.plain, None, shown.split, None)
    said = sentences.compared(shown.several, shown.split)
    return f"{shown.plain.result.data.name}: {said[0].lower()}{said[1:]}" if many else said


def _beside(shown: Shown, many: bool) -> list[Section]:
    """The sections of the runs on one data set, which each names where there are several."""
    found = [
        _metrics(shown),
        *_frontier(shown),
        _distribution(shown),
        _clients(shown),
        _convergence(shown),
    ]
    if not many:
        return found
    name = shown.plain.result.data.name
    return [section._replace(title=f"{name}: {section.title}") for section in found]


def _noted(several: Sequence[Kept]) -> list[Section]:
    said = [f"{kept.name}: {note}" for kept in several for note in kept.result.notes]
    return [Section("What to know", [Notes("Before you rely on this", said)])] if said else []


def _title(kept: Kept) -> str:
    settings = kept.result.settings
    return heading(kept.result, settings["model"], settings["cohort"])[0]


def _headline(kept: Kept, shown: Shown) -> str:
    if kept.choice is None and len(shown.several) > 1:
        return sentences.compared(shown.several, shown.split)
    chosen = kept.choice and kept.choice.qualified
    return sentences.headline(shown.plain, shown.other, shown.split, chosen)


def _shown(kept: Kept) -> Shown:
    """The plain model is q = 0 or the first; beside it the chosen one, or the most even where none
    was chosen."""
    several, split = entries(kept.result), shown_split([kept.result])
    choice = kept.choice
    if choice is None:
        return Shown(several, several[0], _evenest(several, several[0], split), None, split)
    plain = tuned(several, {**choice.hyperparameters, "q": 0.0}) or several[0]
    if not choice.qualified:
        return Shown(several, plain, _evenest(several, plain, split), plain, split)
    chosen = tuned(several, choice.hyperparameters)
    return Shown(several, plain, chosen, chosen, split)


def _evenest(several: Sequence[Entry], plain: Entry, split: SplitName) -> Entry | None:
    """Of the others, the one with the lowest variance."""
    others = [entry for entry in several if entry is not plain]
    return min(others, key=lambda entry: across(entry, split, "variance").mean, default=None)


def _tiles(shown: Shown) -> Tiles:
    before, said = (sentences.levels(e, shown.split) for e in (shown.plain, shown.best))
    same = shown.best is shown.plain
    notes = ["" if same else f"{value} with {shown.plain.label}" for value in before]
    names = ("average", "worst 10 %", "best 10 %", "variance")
    return Tiles([Tile(*tile) for tile in zip(names, said, notes, strict=True)])


def _unfair(shown: Shown) -> Section:
    plain = shown.plain
    caption = (
        f"Each bar is a client, or a stretch of clients where there are many: its "
        f"{plain.measure.noun} on {shown.split} data, {sentences.seeds(plain)}."
    )
    is_plain = plain.hyper.get("q") == 0
    title = "How unfair is the plain model?" if is_plain else "How evenly are clients served?"
    figure = Figure("clients", charts.curve(plain, shown.split), caption)
    return Section(title, [sentences.unfairness(plain, shown.split), figure])


def _recommended(kept: Kept, shown: Shown) -> list[Section]:
    """The choice of q and its price; for a run without one, what is to be known about it."""
    notes = [Notes("Before you rely on this", kept.result.notes)] if kept.result.notes else []
    if kept.choice is None:
        why = [f"No q is recommended: {kept.unchosen}."] if len(shown.several) > 1 else []
        return [Section("What to know", [*why, *notes])] if why or notes else []
    title = "Which q is recommended, and what does it cost?"
    reason = f"Recommended: {kept.choice.reason}"
    return [Section(title, [reason, *_price(shown), *_own(kept), *notes])]


def _price(shown: Shown) -> list[Block]:
    if shown.other is None:
        return []
    two = shown.plain, shown.other, shown.split
    return [sentences.price(*two), comparisons.price(*two)]


def _own(kept: Kept) -> list[Block]:
    """What it would bring that every client picks its own q, where there are rows to pick by."""
    result = kept.result
    if any(len(result.missing(s)) == result.data.clients for s in ("validation", "test")):
        return []
    return [sentences.own_q(device_q(result), result)]


def _clients(shown: Shown) -> Section:
    plain, other, rises = shown.plain, shown.other, shown.plain.measure.rises
    found = points.pairs(plain, other or plain, shown.split)
    rows = points.worst(found, rises, len(found))
    sheet = comparisons.clients(rows[:LISTED], plain, other, shown.split)
    listing = Listing(sheet, "Find a client", by=2, falling=not rises, rises=rises)
    listed = [*_cut(len(rows)), listing]
    if other is None:
        return Section("Client by client", listed)
    said = sentences.gains(rows, plain, other)
    moved = _moves(plain, other, shown.split, len(rows))
    return Section("Who gains and who loses?", [said, *moved, *listed])


def _moves(plain: Entry, other: Entry, split: SplitName, clients: int) -> list[Figure]:
    """The worst served by name, and all of them as points where not all are named."""
    named = clients if clients <= FEW else 10
    some = f"The {named} clients that {plain.label} serves worst"
    whom = "Every client" if named == clients else some
    told = f"{whom}: grey under {plain.label}, coloured under {other.label}."
    worst = Figure("worst", charts.moves(plain, other, split, named), told)
    if named == clients:
        return [worst]
    side = "Above" if plain.measure.rises else "Below"
    told = f"Every client. {side} the line, {other.label} serves it better."
    return [worst, Figure("before-after", charts.before_after(plain, other, split), told)]


def _cut(clients: int) -> list[Block]:
    if clients <= LISTED:
        return []
    return [
        f"The table lists the {LISTED:,} worst served of {clients:,} clients; clients.csv has all."
    ]


def _distribution(shown: Shown) -> Section:
    noun = shown.plain.measure.noun
    plural = "accuracies" if shown.plain.measure.rises else "losses"
    caption = f"Clients by {noun} on {shown.split} data; means over the seeds."
    figure = Figure("distribution", charts.distribution(shown.pair, shown.split), caption)
    return Section(f"How are the {plural} spread?", [figure])


def _frontier(shown: Shown) -> list[Section]:
    if len(shown.several) < 2:
        return []
    caption = (
        f"{'Up' if shown.plain.measure.rises else 'Down'} and to the left is better: a better "
        "average, more evenly. Bars are 95 % intervals over the seeds."
    )
    drawn = charts.frontier(shown.several, shown.split, shown.marked)
    return [Section("What does evenness cost?", [Figure("frontier", drawn, caption)])]


def _convergence(shown: Shown) -> Section:
    several, marked, noun = shown.several, shown.marked, shown.plain.measure.noun
    told = {
        "worst10": (f"{noun} of the worst 10 %", "The worst served tenth of the clients."),
        "average": (f"average {noun}", "All data points."),
    }
    rounds = [
        Figure(
            f"rounds-{name}",
            charts.convergence(several, shown.split, name, title, marked),
            f"{caption} {_evaluated(shown)}",
        )
        for name, (title, caption) in told.items()
    ]
    step = Figure("effective-step", charts.effective_step(several, marked), STEP)
    return Section("How did training go?", [*rounds, step])


def _evaluated(shown: Shown) -> str:
    return f"{shown.split.capitalize()} data, {sentences.seeds(shown.plain)}."


def _metrics(shown: Shown) -> Section:
    if len(shown.several) == 1:
        return Section("Fairness metrics", [EXPLAINED, comparisons.splits(shown.plain)])
    sheet = comparisons.metrics(shown.several, shown.split, shown.chosen)
    return Section("Fairness metrics", [EXPLAINED, sheet])
