"""Progress of a training run, on a terminal: rounds per second, the time left, and how the models
serve their clients so far."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from fairfl.metrics import Fairness
from fairfl.simulation.engine import Progress


@dataclass
class Meter:
    """Counts the rounds of every experiment and remembers each group's newest evaluation; `train`
    calls it after every chunk.

    >>> from fairfl.report.progress import Meter
    >>> Meter(total=100).done
    0
    """

    total: int
    groups: dict[int, int] = field(default_factory=dict)
    newest: dict[int, list[Fairness]] = field(default_factory=dict)
    began: tuple[int, float] | None = None
    rate: float | None = None
    bar: Bar | None = None

    @property
    def done(self) -> int:
        return sum(self.groups.values())

    def __call__(self, progress: Progress) -> None:
        group = progress.group
        self.groups[id(group)] = group.done * len(group.places)
        self.newest[id(group)] = newest(group.fairness)
        self._measure(progress.seconds)
        if self.bar is not None:
            found = [one for several in self.newest.values() for one in several]
            task, rate = self.bar.task_ids[0], spelled(self.rate)
            self.bar.update(task, completed=self.done, rate=rate, served=serving(found))

    def _measure(self, seconds: float) -> None:
        """Since the first report: what came before was mostly compiling."""
        if self.began is None:
            self.began = (self.done, seconds)
        elif seconds > self.began[1]:
            self.rate = (self.done - self.began[0]) / (seconds - self.began[1])


def spelled(rate: float | None) -> str:
    """Rounds of all experiments per second.

    >>> from fairfl.report.progress import spelled
    >>> spelled(None), spelled(1234.5)
    ('compiling', '1,234 rounds/s')
    """
    return "compiling" if rate is None else f"{rate:,.0f} rounds/s"


def newest(evaluations: Mapping[int, Sequence[list[Fairness] | None]]) -> list[Fairness]:
    """Of the evaluations by round and split, the last one of each model on the last split there is.

    >>> import fairfl
    >>> from fairfl.report.progress import newest
    >>> one, two = fairfl.fairness([60, 80]), fairfl.fairness([70, 90])
    >>> newest({100: ([one], None, [one]), 200: ([one], None, [two])})[0].average
    80.0
    """
    if not evaluations:
        return []
    return [found for found in evaluations[max(evaluations)] if found is not None][-1]


def serving(found: Sequence[Fairness]) -> str:
    """Average and worst 10 % of clients, means over all models.

    >>> import fairfl
    >>> from fairfl.report.progress import serving
    >>> serving([fairfl.fairness([60, 80]), fairfl.fairness([70, 90])])
    'average 75.0, worst 10% 65.0'
    >>> serving([])
    ''
    """
    if not found:
        return ""
    average, worst = (np.mean([getattr(one, n) for one in found]) for n in ("average", "worst10"))
    return f"average {average:#.3g}, worst 10% {worst:#.3g}"


@contextmanager
def shown(total: int, console: Console) -> Iterator[Meter]:
    """A meter whose bar is on the console while the block runs, where that is a terminal.

    >>> from rich.console import Console
    >>> from fairfl.report.progress import shown
    >>> with shown(100, Console(stderr=True, force_terminal=False)) as meter:
    ...     meter.done
    0
    """
    if not console.is_terminal:
        yield Meter(total)
        return
    columns = (
        TextColumn("training"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[served]}"),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        bar.add_task("training", total=total, rate=spelled(None), served="")
        yield Meter(total, bar=bar)
