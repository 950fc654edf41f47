"""What a report says in words about how evenly clients are served."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fairfl.choice import DeviceQ
from fairfl.clients.federated import SplitName
from fairfl.metrics import interval
from fairfl.report.entries import Entry, across, difference
from fairfl.report.measure import measure
from fairfl.report.points import Rows
from fairfl.report.sheets import written
from fairfl.runs import Result


class Levels(NamedTuple):
    """How an entry serves its clients, as means over the seeds, in words with units."""

    average: str
    worst10: str
    best10: str
    variance: str


def levels(entry: Entry, split: SplitName) -> Levels:
    """The four numbers that a reader asks for first."""
    means = {name: across(entry, split, name).mean for name in Levels._fields}
    average, worst, best = (entry.measure.said(means[n]) for n in ("average", "worst10", "best10"))
    return Levels(average, worst, best, f"{means['variance']:{entry.measure.squared}}")


def worst_served(clients: int) -> str:
    """Who the worst 10 % are.

    >>> from fairfl.report.sentences import worst_served
    >>> worst_served(100), worst_served(15)
    ('the worst tenth of its clients', 'its worst client')
    """
    return "its worst client" if clients < 20 else "the worst tenth of its clients"


def called(entry: Entry) -> str:
    """An entry as the subject of a sentence."""
    return "The plain model" if entry.hyper.get("q") == 0 else entry.label


def headline(plain: Entry, other: Entry | None, split: SplitName, chosen: bool | None) -> str:
    """How unfair the plain model is, and what the recommended one makes of it; `chosen` is None
    where there was nothing to choose."""
    first = levels(plain, split)
    begin = f"{called(plain)} serves {_unevenly(plain, first, split)}."
    if other is None or chosen is None or present(plain, split) == 1:
        return begin
    if not chosen:
        return f"{begin} None of the others is more even and nearly as good on average."
    second = levels(other, split)
    return (
        f"{begin} {other.label} takes the worst to {second.worst10}, and the average from "
        f"{first.average} to {second.average}."
    )


def _unevenly(entry: Entry, found: Levels, split: SplitName) -> str:
    clients = present(entry, split)
    if clients == 1:
        return f"its one client at {found.average}"
    noun = "" if entry.measure.rises else "a loss of "
    return f"{worst_served(clients)} at {noun}{found.worst10} and the best at {found.best10}"


def present(entry: Entry, split: SplitName) -> int:
    """How many clients have rows in the split of any seed."""
    return int(np.any([member.final[split].size > 0 for member in entry.members], axis=0).sum())


def unfairness(entry: Entry, split: SplitName) -> str:
    """The plain model's numbers, in a paragraph."""
    found, measure = levels(entry, split), entry.measure
    clients = present(entry, split)
    over = (
        f"On {split} data, {seeds(entry)}, the {measure.noun} is {found.average} over data points"
    )
    if clients == 1:
        return f"{over}. There is one client, so there is nobody to be unfair to."
    mean = measure.said(across(entry, split, "average_clients").mean)
    return (
        f"{over} and {mean} over the {clients:,} clients. The worst tenth of them "
        f"({_tenth(clients)}) is served at {found.worst10}, the best tenth at {found.best10}; the "
        f"variance over clients is {found.variance}."
    )


def _tenth(clients: int) -> str:
    count = max(1, clients // 10)
    return "1 client" if count == 1 else f"{count:,} clients"


def seeds(entry: Entry) -> str:
    """How many seeds a number is a mean of."""
    count = len(entry.places)
    return f"mean of {count} seeds" if count > 1 else f"seed {entry.members[0].seed}"


def price(plain: Entry, other: Entry, split: SplitName) -> str:
    """What the other model changes on the split that neither choice nor training has seen."""
    how = plain.measure
    figures = {"variance": how.squared, "average": how.figures, "worst10": how.figures}
    found = [
        written(difference(plain, other, split, name), f"+{digits}")
        for name, digits in figures.items()
    ]
    said = (
        f"On {split} data, {other.label} changes the variance by {found[0]}, the average by "
        f"{found[1]} and the worst 10 % by {found[2]}."
    )
    sure = "±" in "".join(found)
    return f"{said} A change smaller than its interval may be luck." if sure else said


def gains(rows: Rows, before: Entry, after: Entry) -> str:
    """How many clients gain, lose or stay, and who gains and who loses most."""
    changes = [row["change"] for row in rows]
    gain, lose, same = (changes.count(name) for name in ("gains", "loses", "same"))
    counted = (
        f"From {before.label} to {after.label}, {gain:,} of {len(rows):,} clients gain, "
        f"{lose:,} lose and {same:,} {'is' if same == 1 else 'are'} served as before."
    )
    ends = sorted(rows, key=lambda row: row["gain"])
    said = [counted]
    if gain:
        said.append(f"{ends[-1]['client']} gains most, {_moved(ends[-1], after)}.")
    if lose:
        said.append(f"{ends[0]['client']} loses most, {_moved(ends[0], after)}.")
    return " ".join(said)


def _moved(row: dict, entry: Entry) -> str:
    said = entry.measure.said
    return f"from {said(row['before'])} to {said(row['after'])}"


def compared(several: Sequence[Entry], split: SplitName) -> str:
    """Of several models, which serves the worst clients best, and which is best on average."""
    rises = several[0].measure.rises
    worst, average = (_best(several, split, name, rises) for name in ("worst10", "average"))
    said = levels(worst, split)
    begin = f"Of {len(several)} models, {worst.label} serves the worst clients best, at "
    if worst is average:
        return f"{begin}{said.worst10}, and has the best average too, {said.average}."
    other = levels(average, split)
    return (
        f"{begin}{said.worst10} with an average of {said.average}; {average.label} has the best "
        f"average, {other.average}, with {other.worst10} for the worst."
    )


def _best(several: Sequence[Entry], split: SplitName, metric: str, rises: bool) -> Entry:
    found = np.array([across(entry, split, metric).mean for entry in several])
    ranked = np.where(np.isfinite(found), found if rises else -found, -np.inf)
    return several[int(np.argmax(ranked))]


def own_q(found: DeviceQ, result: Result) -> str:
    """What it brings that every client picks the q that serves it best on its own data."""
    how, mixed = measure(result), found.fairness
    average, worst = (how.said(interval(mixed[name]).mean) for name in ("average", "worst10"))
    return (
        "If every client picked its own q on its validation data, the average would be "
        f"{average}, the worst 10 % {worst} and the variance "
        f"{interval(mixed['variance']).mean:{how.squared}}."
    )
