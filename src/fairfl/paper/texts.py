"""What a reproduction says in words, on a terminal and on a page alike."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fairfl.paper.asked import Asked
from fairfl.paper.figures import Raced, Spreads
from fairfl.paper.found import Reproduction, tally
from fairfl.paper.lemmas import Bounded, Checked
from fairfl.paper.recipe import Pick, Quantity, Training
from fairfl.paper.reproduction import Compared, Run, Runs, capped, lasting
from fairfl.paper.verdict import Cell, Verdict, digits
from fairfl.report.tables import METRICS

HEADINGS = {**METRICS, "average_clients": "by clients"}
COLUMNS = ("objective", "metric", "published", "ours", "95 % interval", "verdict")


def row(cell: Cell) -> tuple[str, ...]:
    """One published number and ours beside it, as cells of a table."""
    theirs, ours, places = cell.published, cell.ours, digits(cell.published.metric)
    within = f"{ours.low:.{places}f} to {ours.high:.{places}f}"
    return (
        theirs.objective,
        HEADINGS.get(theirs.metric, theirs.metric),
        _spread(theirs.value, theirs.deviation, places),
        _spread(ours.mean, ours.deviation, places),
        "" if math.isnan(ours.low) else within,
        cell.verdict,
    )


def _spread(mean: float | int, deviation: float | int | None, places: int) -> str:
    known = deviation is not None and not math.isnan(deviation)
    return f"{mean:,.{places}f} ±{deviation:.{places}f}" if known else f"{mean:,.{places}f}"


def heading(found: Compared) -> str:
    """The data set of a panel, and how it differs from the next one.

    >>> from fairfl.paper.recipe import Panel
    >>> from fairfl.paper.reproduction import Compared
    >>> from fairfl.paper.texts import heading
    >>> heading(Compared(Panel("synthetic", {}, "after 1,000 rounds"), ()))
    'synthetic, after 1,000 rounds'
    """
    return ", ".join(part for part in (found.panel.dataset, found.panel.label) if part)


def labels(picks: Sequence[Pick], runs: Runs, asked: Asked) -> list[str]:
    """What keeps the numbers of some picks from being the paper's experiment, a sentence each."""
    used = {pick.training: runs[pick.training] for pick in picks if pick.training}
    said: dict[str, None] = {}
    for run in used.values():
        for sentence in (_stand_in(run.data, run.training.data), _shorter(run, asked)):
            if sentence:
                said.setdefault(sentence)
    return list(said)


def panel_labels(found: Compared, runs: Runs, asked: Asked) -> list[str]:
    """The same for a panel, trained or counted."""
    counted = _stand_in(found.data, found.panel.dataset)
    trained = labels(list(found.panel.rows.values()), runs, asked)
    return [counted, *trained] if counted else trained


def _stand_in(used: str | None, asked: str) -> str | None:
    if used in (None, asked):
        return None
    return f"On {used}, because the files of {asked} are not here."


def _shorter(run: Run, asked: Asked) -> str | None:
    found = capped(run, asked)
    return f"{run.training.name}: {found}." if found else None


def lesson(found: Compared) -> str | None:
    """What the rows say of fairness: the variance and the average of every row against the first.

    >>> from fairfl.paper.recipe import Panel
    >>> from fairfl.paper.reproduction import Compared
    >>> from fairfl.paper.texts import lesson
    >>> lesson(Compared(Panel("synthetic", {}), ())) is None
    True
    """
    cells = {(cell.published.objective, cell.published.metric): cell for cell in found.cells}
    first, *others = dict.fromkeys(cell.published.objective for cell in found.cells) or ("",)
    if (first, "variance") not in cells or not others:
        return None
    return " ".join(
        f"{other} against {first}: variance {_moved(cells, first, other, 'variance')}, "
        f"average {_moved(cells, first, other, 'average')}."
        for other in others
    )


def _moved(cells: dict[tuple[str, str], Cell], first: str, other: str, metric: str) -> str:
    a, b, places = cells[first, metric], cells[other, metric], digits(metric)
    ours = f"{a.ours.mean:.{places}f} to {b.ours.mean:.{places}f}"
    return f"{ours} (paper: {a.published.value:g} to {b.published.value:g})"


def differing(found: Compared, runs: Runs, asked: Asked) -> str | None:
    """Why some numbers of a panel differ, as far as it was found."""
    count = sum(cell.verdict == "differs" for cell in found.cells)
    if not count:
        return None
    own = found.panel.reason
    reasons = [own] if own else _circumstances(found, runs, asked)
    said = "; ".join(dict.fromkeys(reason for reason in reasons if reason))
    return f"Why {count} differ: {said or 'reason not found'}."


def _circumstances(found: Compared, runs: Runs, asked: Asked) -> Iterator[str]:
    """What other data and fewer rounds do to the numbers of a panel's trainings."""
    for pick in found.panel.rows.values():
        if pick.training:
            run = runs[pick.training]
            yield run.training.standing if run.data == run.training.instead else ""
            yield run.training.shorter if capped(run, asked) else ""


RACE = ("line", "learning rate", "rounds to it", "at the end")


def race_rows(found: Raced) -> list[tuple[str, ...]]:
    return [
        (line.label, f"{line.learning_rate:g}", f"{rounds:,}", f"{end.mean:.4g}")
        for line, rounds, end in zip(found.lines, found.rounds, found.ends, strict=True)
    ]


def raced(found: Raced) -> str:
    """The level that all lines get to, and whether the paper's claim holds here."""
    named = QUANTITIES[found.race.curves[0].quantity]
    holds = "holds" if found.verdict == "same direction" else "does not hold"
    return f"All get to {found.level:.4g} in the {named}. {found.race.claim}: {holds} here."


QUANTITIES: Mapping[Quantity, str] = {
    "objective": "objective",
    "average": "average accuracy",
    "worst": "accuracy of the client served worst",
}


def spread_rows(found: Spreads) -> list[tuple[str, ...]]:
    """Clients per ten points of accuracy, and the variance."""
    return [
        (row.label, *(f"{count:.1f}" for count in row.clients), f"{row.variance.mean:.0f}")
        for row in found.rows
    ]


BINS = ("line", *(f"{low}-" for low in range(0, 100, 10)), "variance")


def spread_claim(found: Spreads) -> str:
    first, last = found.rows[0].label, found.rows[-1].label
    holds = "holds" if found.verdict == "same direction" else "does not hold"
    return f"{last} is more even over clients than {first}: {holds} here."


def check(found: Checked) -> tuple[str, ...]:
    return found.name, found.statement, f"{found.held:,} of {found.cases:,}", f"{found.least:.1e}"


CHECKS = ("lemma", "statement", "held", "least margin")
BOUNDS = ("q", "bound on the error, %", "error on fresh rows, %")
THEORY = "theory: the lemmas on random convex problems, solved to optimality"
GENERALISES = (
    "The generalisation bound (Lemma 8, equal weights, 95 %) of models on the synthetic data"
)


def bounded(found: Bounded) -> tuple[str, ...]:
    return f"{found.q:g}", f"{found.bound:.1f}", f"{found.error:.1f}"


def followed(training: Training) -> str:
    """How a training is set up, in one line."""
    beside = ", ".join(f"{name} {value}" for name, value in training.words.items())
    words = f"{training.algorithm}{', ' + beside if beside else ''}"
    return words + (f"; {training.because}" if training.because else "")


VERDICTS: tuple[Verdict, ...] = ("matches", "same direction", "differs")


def verdicts(found: Reproduction) -> str:
    """All verdicts in one sentence.

    >>> from fairfl.paper.asked import Asked
    >>> from fairfl.paper.found import Reproduction
    >>> from fairfl.paper.texts import verdicts
    >>> verdicts(Reproduction(Asked(), (), None, {}, 0.0))[:34]
    'Of 0 published numbers 0 match, 0 '
    """
    count = tally(found)
    return (
        f"Of {count.total():,} published numbers {count['matches']:,} match, "
        f"{count['same direction']:,} go the same direction and {count['differs']:,} differ."
    )


def summary(found: Reproduction) -> str:
    """All verdicts, how many matches are strict, and how long it took."""
    strictly = sum(
        cell.strictly for one in found.reproduced for panel in one.panels for cell in panel.cells
    )
    return (
        f"{verdicts(found)} {strictly:,} match within two standard errors of the means. "
        f"It took {lasting(found.seconds)}."
    )


class Trained(NamedTuple):
    """A training that was run: its name, how it is set up and why, how long it was and took."""

    name: str
    how: str
    size: str


def trained(found: Reproduction) -> Iterator[Trained]:
    """Every training that could be run.

    >>> from fairfl.paper.asked import Asked
    >>> from fairfl.paper.found import Reproduction
    >>> from fairfl.paper.texts import trained
    >>> list(trained(Reproduction(Asked(), (), None, {}, 0.0)))
    []
    """
    for run in found.runs.values():
        if run.result is not None:
            seeds = len(run.result.settings["seeds"])
            size = (
                f"{run.result.rounds:,} rounds, seeds 1 to {seeds}, {lasting(run.result.seconds)}"
            )
            yield Trained(run.training.name, followed(run.training), size)
