"""The tracker: called after every chunk, it writes what has been evaluated since."""

import importlib
import json
import math
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fairfl.clients.federated import SPLITS
from fairfl.runs.atomic import replaced
from fairfl.runs.json import SCHEMA, text
from fairfl.simulation.engine import Group, Progress

TOOLS = {"tensorboard": "tensorboard", "mlflow": "mlflow", "wandb": "wandb"}
"""The tools, and what has to be installed for each."""

METRICS = ("average", "worst10", "variance")
"""What is tracked of every split, beside the loss and the effective step."""

STATE = "tracking.json"


class Log(NamedTuple):
    """An open log of one experiment, which holds everything up to the round `last`."""

    write: Callable[[int, Mapping[str, float]], None]
    close: Callable[[], None]
    last: int


def check_tools(tools: Sequence[str]) -> None:
    """Refuse tools that do not exist, are not installed or cannot be reached, before training.

    >>> from fairfl.runs.tracking import check_tools
    >>> check_tools(["tensorbord"])
    Traceback (most recent call last):
    ValueError: there is no tracking tool 'tensorbord'; did you mean 'tensorboard'? the known ones \
are tensorboard, mlflow, wandb
    """
    for tool in tools:
        if tool not in TOOLS:
            near = get_close_matches(tool, TOOLS, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(
                f"there is no tracking tool {tool!r}; {hint}the known ones are {', '.join(TOOLS)}"
            )
        try:
            found = _module(tool)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"tracking with {tool} needs {error.name}, which is not installed; install it with "
                f"pip install 'fairfl[{tool}]'"
            ) from error
        found.check()


def _module(tool: str) -> Any:
    return importlib.import_module(f"fairfl.runs.tracking.{tool}")


@dataclass
class Tracker:
    """Writes every evaluated round of every experiment once, also where a run is resumed.

    `place` is the folder of the run, which has its name once the run has begun. A tool that fails
    is given up with a warning; training goes on.
    """

    tools: Sequence[str]
    place: Callable[[], Path]
    title: str
    logs: dict[tuple[str, str], Log] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    key: str = ""

    def __call__(self, progress: Progress) -> None:
        """Write what a group has evaluated since the last call."""
        group = progress.group
        if not group.fairness or not self._news(group):
            return
        if not self.key:
            self._begin()
        trace = {
            name: np.concatenate([chunk[name] for chunk in group.history])
            for name in ("loss", "effective_step")
        }
        for tool in self.tools:
            if tool not in self.lost:
                self._write(tool, group, trace)
        self._remember()

    def _news(self, group: Group) -> bool:
        last = max(group.fairness)
        names = [label(group, m) for m in range(len(group.places))]
        kept = [self.logs.get((tool, name)) for tool in self.tools for name in names]
        return any(log is None or log.last < last for log in kept)

    def _write(self, tool: str, group: Group, trace: Mapping[str, np.ndarray]) -> None:
        try:
            for m in range(len(group.places)):
                self._write_member(tool, group, trace, m)
        except Exception as error:
            self.lost.add(tool)
            warnings.warn(
                f"tracking with {tool} stopped ({type(error).__name__}: {error}); training goes on",
                stacklevel=2,
            )

    def _write_member(
        self, tool: str, group: Group, trace: Mapping[str, np.ndarray], m: int
    ) -> None:
        name = label(group, m)
        log = self.logs.get((tool, name)) or self._opened(tool, name, group, m)
        for done in sorted(group.fairness):
            if done > log.last:
                log.write(done, metrics(group, trace, m, done))
        self.logs[tool, name] = log._replace(last=max(group.fairness))

    def _opened(self, tool: str, name: str, group: Group, m: int) -> Log:
        settings = {"algorithm": group.task.algorithm.name, **group.task.members[m]}
        about = {**settings, "seed": group.task.seed, "data": self.title}
        last = self.rounds.get(f"{tool} {name}", 0)
        return _module(tool).open_log(self.place(), self.key, name, about, last)

    def _begin(self) -> None:
        """What an earlier process wrote of this run, so that nothing is written twice."""
        file = self.place() / STATE
        found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        self.key = found.get("key", uuid.uuid4().hex[:8])
        self.rounds = found.get("rounds", {})

    def _remember(self) -> None:
        self.rounds |= {f"{tool} {name}": log.last for (tool, name), log in self.logs.items()}
        self.place().mkdir(parents=True, exist_ok=True)
        with replaced(self.place() / STATE) as stream:
            kept = {"schema": SCHEMA, "key": self.key, "rounds": self.rounds}
            stream.write(text(kept).encode())

    def close(self) -> None:
        """Have every tool write what it still holds."""
        for (tool, _), log in self.logs.items():
            if tool not in self.lost:
                log.close()


@contextmanager
def tracker(
    tools: str | Sequence[str], place: Path | str | Callable[[], Path], title: str = "fairfl"
) -> Iterator[Tracker]:
    """A tracker for `train(..., on_chunk=tracker)`, whose logs are complete when the block ends.

    Tools are tensorboard, mlflow and wandb, one or several; what they keep in files goes under
    `place`, and `title` names the project or the data.

        with fairfl.tracker("tensorboard", "logs/first") as track:
            fairfl.train(data, model, algorithm, rounds=1000, on_chunk=track)

    >>> import fairfl
    >>> with fairfl.tracker([], "logs") as track:
    ...     track.logs
    {}
    """
    listed = [tools] if isinstance(tools, str) else list(tools)
    check_tools(listed)
    where = place if callable(place) else lambda: Path(place)
    found = Tracker(listed, where, title)
    try:
        yield found
    finally:
        found.close()


def label(group: Group, m: int) -> str:
    """An experiment's name: its hyper-parameters and its seed."""
    values = {**group.task.members[m], "seed": group.task.seed}
    return ",".join(f"{name}={value:g}" for name, value in values.items())


def metrics(group: Group, trace: Mapping[str, np.ndarray], m: int, done: int) -> dict[str, float]:
    """What is known of an experiment after so many rounds; what is not a number is left out."""
    found = {name: float(column[done - 1, m]) for name, column in trace.items()}
    for split, one in zip(SPLITS, group.fairness[done], strict=True):
        if one is not None:
            found |= {f"{split}/{name}": float(getattr(one[m], name)) for name in METRICS}
    return {name: value for name, value in found.items() if math.isfinite(value)}
