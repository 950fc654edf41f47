"""Progress of a training run: a bar with rounds per second and the time left, on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from fairfl.simulation.engine import Progress


@dataclass
class Meter:
    """Counts the rounds of every experiment; `train` calls it after every chunk.

    >>> from fairfl.report.progress import Meter
    >>> Meter(total=100).done
    0
    """

    total: int
    groups: dict[int, int] = field(default_factory=dict)
    began: tuple[int, float] | None = None
    rate: float | None = None
    bar: Bar | None = None

    @property
    def done(self) -> int:
        return sum(self.groups.values())

    def __call__(self, progress: Progress) -> None:
        group = progress.group
        self.groups[id(group)] = group.done * len(group.places)
        self._measure(progress.seconds)
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=self.done, rate=spelled(self.rate))

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
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        bar.add_task("training", total=total, rate=spelled(None))
        yield Meter(total, bar=bar)
