"""A comparison's folder: one ordinary run's folder per method, and what puts them side by side.

    comparison.json   what is compared: methods, in which folder each is, the baseline; and, when
                      all are trained, the settings chosen, means over seeds and differences
    <method>/         a run's folder (see runs/folder.py) with every setting of the method

comparison.json is there from the start, so a comparison that was interrupted is known as one.
"""

import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairfl.comparison.comparison import Comparison, comparison_of
from fairfl.comparison.json import compared
from fairfl.comparison.methods import slug
from fairfl.comparison.notes import notes
from fairfl.runs import Result, load_run
from fairfl.runs.atomic import beside, replaced
from fairfl.runs.folder import CHECKPOINTS, RESULT, check, check_parent, reserved, take_place
from fairfl.runs.folder import unwritable as _unwritable
from fairfl.runs.json import SCHEMA, text
from fairfl.runs.keeping import Keeper
from fairfl.runs.loading import read
from fairfl.runs.lock import taken

COMPARISON = "comparison.json"
"""The file by which a folder is known to be a comparison's."""


@dataclass
class Shelf:
    """The folder of a comparison; None stands for a fresh numbered one in `parent`.

    >>> from pathlib import Path
    >>> from fairfl.comparison.folder import Shelf
    >>> Shelf(Path("all")).keeper("q-fedavg:q=1").folder.as_posix()
    'all/q-fedavg-q-1'
    """

    folder: Path | None
    resume: bool = False
    overwrite: bool = False
    parent: Path = Path("runs")
    label: str = "compare"
    command: str | None = None

    @property
    def place(self) -> Path:
        """The folder, which has its name once the comparison has begun."""
        assert self.folder is not None
        return self.folder

    def check(self) -> None:
        """Refuse what can be refused before anything is read or trained."""
        if self.resume and self.overwrite:
            raise ValueError("--resume goes on and --overwrite begins anew; choose one of them")
        if self.resume and self.folder is None:
            raise ValueError(
                "--resume goes on with a comparison; say with --out in which folder it is"
            )
        if self.folder is None:
            check_parent(self.parent)
        elif not (self.resume and is_comparison(self.folder)):
            check(self.folder, self.overwrite, self.resume, COMPARISON, "comparison")

    def begin(self, methods: Sequence[str], baseline: str, said: Sequence[str]) -> None:
        """Make the folder, or go on with the comparison that is in it."""
        self.check()
        asked = text(self._asked(methods, baseline, said))
        if self.folder is None:
            self.folder = reserved(self.parent, self.label)
        if self.resume and is_comparison(self.folder):
            _save(self.folder, asked)
        else:
            _place(self.folder, asked)

    def keeper(self, method: str) -> Keeper:
        """What keeps one method, going on with what is there."""
        return Keeper(self.place / slug(method), resume=True)

    def finish(self, found: Comparison) -> Path:
        """Write what was compared, beside what each method keeps of itself."""
        asked = self._asked(found.methods, found.baseline, found.said)
        told = compared(found)
        for method in told["methods"]:
            method["folder"] = slug(method["method"])
        _save(self.place, text({**asked, **told, "finished": True, "notes": notes(found)}))
        return self.place

    def leave(self) -> None:
        """Let go of a folder in which no method keeps anything, as after a failure of the first."""
        if not any(child.is_dir() for child in self.place.iterdir()):
            shutil.rmtree(self.place, ignore_errors=True)

    def _asked(self, methods: Sequence[str], baseline: str, said: Sequence[str]) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "kind": "comparison",
            "command": self.command,
            "finished": False,
            "baseline": baseline,
            "methods": [{"method": method, "folder": slug(method)} for method in methods],
            "said": list(said),
        }


def is_comparison(place: Path) -> bool:
    """Whether a folder holds a comparison, finished or not.

    >>> from pathlib import Path
    >>> from fairfl.comparison.folder import is_comparison
    >>> is_comparison(Path("nowhere"))
    False
    """
    return (place / COMPARISON).is_file()


def load_comparison(folder: Path | str) -> Comparison:
    """The comparison that a folder keeps, from the runs of its methods.

    >>> import tempfile, fairfl
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     place = parent + "/both"
    ...     methods = [fairfl.fedavg(), fairfl.q_fedavg()]
    ...     found = fairfl.compare(data, model, methods, rounds=3, cohort=5, seeds=2, out=place)
    ...     again = fairfl.load_comparison(place)
    >>> again.summary()["average"].tolist() == found.summary()["average"].tolist()
    True
    """
    place = Path(folder)
    asked = asked_in(place)
    folders = {one["method"]: place / one["folder"] for one in asked["methods"]}
    _check_finished(place, asked, folders)
    results: dict[str, Result] = {name: load_run(found) for name, found in folders.items()}
    return comparison_of(results, asked["baseline"], asked["said"])


def asked_in(place: Path) -> dict[str, Any]:
    """What a folder's comparison.json says, or a sentence about why there is none."""
    if not is_comparison(place):
        raise ValueError(
            f"{str(place)!r} is not a comparison's folder, which holds a {COMPARISON}; name the "
            "folder that a comparison was written to"
        )
    return read(place, COMPARISON)


def _check_finished(place: Path, asked: Mapping[str, Any], folders: Mapping[str, Path]) -> None:
    left = [name for name, found in folders.items() if not (found / RESULT).is_file()]
    if not left:
        return
    command = asked["command"] or "fairfl.compare(..., resume=True)"
    again = f"{command} --out {shlex.quote(str(place))} --resume" if asked["command"] else command
    raise ValueError(
        f"the comparison in {str(place)!r} is unfinished, {len(left)} of {len(folders)} methods "
        f"are still to be trained; go on with {again}"
    )


def _save(place: Path, content: str) -> None:
    try:
        with replaced(place / COMPARISON) as stream:
            stream.write(content.encode())
    except OSError as error:
        raise _unwritable(place, error) from error


def _place(wanted: Path, content: str) -> None:
    """A fresh folder in the place of what is there."""
    place = wanted.resolve()
    _check_idle(place)
    unfinished = beside(place)
    try:
        unfinished.mkdir(parents=True)
        (unfinished / COMPARISON).write_bytes(content.encode())
        take_place(unfinished, place)
    except OSError as error:
        raise _unwritable(wanted.parent, error) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _check_idle(place: Path) -> None:
    """Nobody may train in what is about to be replaced."""
    for held in place.glob(f"*/{CHECKPOINTS}/lock"):
        try:
            taken(held).close()
        except BlockingIOError as error:
            raise ValueError(
                f"another process trains in the folder {str(place)!r}; wait for it, or name "
                "another with --out"
            ) from error
