"""Keeping a run in its folder while it is trained, so that it survives whatever happens.

configuration.json, data.json, preprocessing.json   from the start
checkpoints/                                        while it is trained
everything else (see folder.py)                     at the end, result.json last
"""

import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from fairfl.clients.about import About
from fairfl.runs import checkpoints, folder
from fairfl.runs.atomic import beside
from fairfl.runs.checkpoints import Manifest
from fairfl.runs.configuration import data_object, difference
from fairfl.runs.folder import CHECKPOINTS, CONFIGURATION, RESULT
from fairfl.runs.json import text
from fairfl.runs.loading import read_configuration
from fairfl.runs.lock import taken
from fairfl.runs.result import Result
from fairfl.runs.state import restore
from fairfl.simulation.engine import Group
from fairfl.simulation.round import Carry

SECONDS = 10.0
"""From one checkpoint to the next, at least."""

SHARE = 0.02
"""Of the time, at most, goes into checkpoints: large ones are written less often."""


@dataclass
class Keeper:
    """A run's folder, and what is to happen where there is one already.

    `folder` None stands for a fresh numbered one in `parent`. `command` is how to run it again.

    >>> from pathlib import Path
    >>> from fairfl.runs.keeping import Keeper
    >>> Keeper(Path("runs/first"), resume=True).manifest is None
    True
    """

    folder: Path | None
    resume: bool = False
    overwrite: bool = False
    parent: Path = Path("runs")
    label: str = "run"
    command: str | None = None
    manifest: Manifest | None = None
    groups: Sequence[Group] = ()
    fresh: bool = False
    finished: bool = False
    began: float = 0.0
    due: float = 0.0
    lock: BinaryIO | None = field(default=None, repr=False)

    def __enter__(self) -> "Keeper":
        return self

    def __exit__(self, *_: object) -> None:
        if self.lock is not None:
            self.lock.close()
            self.lock = None

    @property
    def place(self) -> Path:
        """The folder, which has its name once the run has begun."""
        assert self.folder is not None
        return self.folder

    @property
    def seconds(self) -> float:
        """How long the run has taken so far, interruptions left out."""
        before = self.manifest.seconds if self.manifest else 0.0
        return before + time.perf_counter() - self.began

    def check(self) -> None:
        """Refuse what can be refused before anything is read or trained."""
        if self.resume and self.overwrite:
            raise ValueError("--resume goes on and --overwrite begins anew; choose one of them")
        if self.resume and self.folder is None:
            raise ValueError("--resume goes on with a run; say with --out in which folder it is")
        if self.folder is None:
            folder.check_parent(self.parent)
        elif not (self.resume and _is_run(self.folder)):
            folder.check(self.folder, self.overwrite, self.resume)

    def begin(
        self, configuration: Mapping[str, Any], about: About, preprocessing: str | None = None
    ) -> None:
        """Make the folder, or find the run that is in it; `preprocessing` is JSON text."""
        self.check()
        if self.resume and _is_run(self.place):
            _check_same(self.place, configuration)
        else:
            files = {
                CONFIGURATION: text({**configuration, "command": self.command}),
                "data.json": text(data_object(about)),
                "preprocessing.json": preprocessing,
            }
            self._make({name: found for name, found in files.items() if found is not None})
        self.finished = (self.place / RESULT).is_file()
        if self.finished and not (self.place / CHECKPOINTS).exists():
            return
        self.lock = _locked(self.place)
        # Another process may have put its own run here, or finished this one.
        _check_same(self.place, configuration)
        self.finished = (self.place / RESULT).is_file()
        if self.finished:
            shutil.rmtree(self.place / CHECKPOINTS)

    def _make(self, files: Mapping[str, str]) -> None:
        reserved = self.folder is None
        if reserved:
            self.folder = folder.reserved(self.parent, self.label)
        try:
            _place(self.place, files)
        except BaseException:
            if reserved:
                self.place.rmdir()
            raise
        self.fresh = True

    def go_on(self, groups: Sequence[Group], shape: Callable[[Group], Carry]) -> None:
        """Bring the groups to where the newest whole checkpoint left them."""
        self.groups, self.began = groups, time.perf_counter()
        self.due = time.monotonic() + SECONDS
        found = checkpoints.newest(self.place / CHECKPOINTS)
        if found is None:
            return
        for number, content in found.states.items():
            try:
                restore(groups[number], content, shape(groups[number]))
            except (ValueError, IndexError) as error:
                raise ValueError(
                    f"the checkpoint in {str(self.place)!r} does not fit this run ({error}); use "
                    "the data, model and algorithm that it was begun with, or add --overwrite to "
                    "begin anew"
                ) from error
        self.manifest = found.manifest
        if found.damaged:
            warnings.warn(
                f"{', '.join(found.damaged)} in {str(self.place / CHECKPOINTS)!r}, so the run goes "
                f"on from the newest whole checkpoint, {self.rounds:,} rounds of all experiments",
                stacklevel=2,
            )

    @property
    def rounds(self) -> int:
        """How many rounds of all experiments the newest checkpoint holds."""
        entries = self.manifest.groups if self.manifest else {}
        return sum(entry.rounds * len(self.groups[n].places) for n, entry in entries.items())

    def after_chunk(self) -> None:
        """Save what has moved, where it is time to."""
        if time.monotonic() >= self.due:
            self.save()

    def save(self) -> None:
        """Write a checkpoint, and say when the next is due."""
        began = time.monotonic()
        try:
            self._save()
        except OSError as error:
            raise ValueError(self._unsaved(error)) from error
        now = time.monotonic()
        self.due = now + max(SECONDS, (now - began) / SHARE)

    def _save(self) -> None:
        seconds, place = self.seconds, self.place / CHECKPOINTS
        self.manifest = checkpoints.save(place, self.groups, seconds, self.manifest)
        self.began = time.perf_counter()

    def _unsaved(self, error: OSError) -> str:
        reason = error.strerror or str(error)
        kept = (
            f"the newest checkpoint holds {self.rounds:,} rounds of all experiments, so make room "
            "or give access, and go on with --resume"
            if self.rounds
            else "make room or give access, or name another folder with --out"
        )
        return f"cannot write in {str(self.place)!r} ({reason}); {kept}"

    def finish(self, result: Result, choice: Mapping[str, Any] | None = None) -> Path:
        """Write what was found, and let go of the checkpoints."""
        if self.finished:
            return self.place
        try:
            folder.save_result(self.place, result, choice)
        except OSError as error:
            raise ValueError(self._unsaved(error)) from error
        shutil.rmtree(self.place / CHECKPOINTS)
        self.finished = True
        return self.place

    def leave(self) -> None:
        """After a failure: a folder that this run made and that keeps nothing yet is removed."""
        if self.fresh and self.manifest is None:
            shutil.rmtree(self.place, ignore_errors=True)


def _is_run(place: Path) -> bool:
    return (place / CONFIGURATION).is_file()


def _check_same(place: Path, asked: Mapping[str, Any]) -> None:
    """Refuse to go on with a run of something else."""
    told = difference(read_configuration(place), asked)
    if told:
        raise ValueError(
            f"the folder {str(place)!r} holds another run: {told}; ask for the same again, or name "
            "another folder with --out"
        )


def _locked(place: Path) -> BinaryIO:
    try:
        (place / CHECKPOINTS).mkdir(exist_ok=True)
        return taken(place / CHECKPOINTS / "lock")
    except BlockingIOError as error:
        raise ValueError(
            f"another process trains in the folder {str(place)!r}; wait for it, or name another "
            "with --out"
        ) from error
    except OSError as error:
        raise folder.unwritable(place, error) from error


def _place(wanted: Path, files: Mapping[str, str]) -> None:
    """The first files of a run, all at once in the place of what is there."""
    place = wanted.resolve()
    unfinished = beside(place)
    try:
        if (place / CHECKPOINTS).is_dir():
            # Nobody may train in what is about to be replaced.
            _locked(place).close()
        place.parent.mkdir(parents=True, exist_ok=True)
        (unfinished / CHECKPOINTS).mkdir(parents=True)
        for name, content in files.items():
            (unfinished / name).write_bytes(content.encode())
        folder.take_place(unfinished, place)
    except OSError as error:
        raise folder.unwritable(wanted.parent, error) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
