"""A run's folder: each file whole or not at all, and refused before training where it cannot be.

    result.json              what was found, as `--json` prints it, without the time it took
    fairness.csv             how evenly each model serves its clients, per split
    clients.csv              every client of every experiment, per split
    personal_fairness.csv    both again for the models that clients keep (Ditto), where they do
    personal_clients.csv
    history.csv              every round of every experiment
    parameters.safetensors   every experiment's model, as <experiment>/<parameter>
    record.safetensors       every round and every evaluated client, as numbers keep their bits
    configuration.json       what was run, on which data, with which versions
    data.json                what the data were: clients, classes, fingerprint
    preprocessing.json       how a table's columns were read, for runs on a table
    timings.json             how long it took
    checkpoints/             while it is trained: the states to go on from (checkpoints.py)

All but timings.json are the same bytes for the same run. The schema number in configuration.json
stands for the CSV files too, which have no place for one.
"""

import csv
import errno
import io
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fairfl.clients.federated import SPLITS, SplitName
from fairfl.runs.atomic import UNFINISHED, beside, replaced
from fairfl.runs.configuration import configuration as configured
from fairfl.runs.configuration import data_object
from fairfl.runs.json import SCHEMA, as_object, text
from fairfl.runs.record import arrays_of
from fairfl.runs.result import Columns, Result
from fairfl.runs.tensors import packed
from fairfl.runs.trees import Arrays, named, skeleton

CONFIGURATION = "configuration.json"
"""The file by which a folder is known to be a run's."""

RESULT = "result.json"
"""The file by which a run is known to be finished."""

CHECKPOINTS = "checkpoints"
"""The folder inside a run's that is there while the run is unfinished."""


def check(
    folder: Path | str,
    overwrite: bool = False,
    resume: bool = False,
    mark: str = CONFIGURATION,
    kind: str = "run",
) -> None:
    """Refuse a folder that could not be written, before anything is trained.

    An empty folder is as good as none for a run that is to be resumed if there is one. `mark` is
    the file by which a folder is known to be of this kind.

    >>> import tempfile
    >>> from fairfl.runs.folder import check
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     check(parent + "/first")
    """
    place = Path(folder)
    if os.path.lexists(place):
        _check_replaceable(place, overwrite, resume, mark, kind)
    check_parent(place.parent)


def _check_replaceable(folder: Path, overwrite: bool, resume: bool, mark: str, kind: str) -> None:
    if not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is a file; name a folder with --out")
    is_one, is_empty = (folder / mark).is_file(), not any(folder.iterdir())
    if not (is_one or is_empty) and (overwrite or resume):
        option = "--overwrite" if overwrite else "--resume"
        raise ValueError(
            f"the folder {str(folder)!r} holds something other than a {kind}, so {option} leaves "
            "it alone; name another with --out"
        )
    if not overwrite and not (resume and is_empty):
        further = "--resume to go on with it, or " if is_one else ""
        raise ValueError(
            f"the folder {str(folder)!r} exists; add {further}--overwrite to replace it, or name "
            "another with --out"
        )
    if Path.cwd().is_relative_to(folder.resolve()) or os.path.ismount(folder):
        raise ValueError(
            f"the folder {str(folder)!r} is in use and cannot be replaced; name a folder inside it"
        )


def check_parent(parent: Path | str) -> None:
    """Refuse a parent in which no folder can be made, by trying it in the nearest that exists.

    >>> from fairfl.runs.folder import check_parent
    >>> check_parent("runs")
    """
    wanted = Path(parent).absolute()
    nearest = next(place for place in (wanted, *wanted.parents) if os.path.lexists(place))
    trial = beside(nearest / "trial")
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError as error:
        raise unwritable(nearest, error) from error


def unwritable(folder: Path, error: OSError) -> ValueError:
    reason = error.strerror or str(error)
    return ValueError(
        f"cannot write in {str(folder)!r} ({reason}); name a folder elsewhere with --out"
    )


def write(
    result: Result,
    folder: Path | str,
    *,
    choice: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    preprocessing: str | None = None,
    command: str | None = None,
) -> Path:
    """Write everything that was found into a folder, which appears only when it is complete.

    `command` is how to run it again and `preprocessing` the JSON text of a table's.

    >>> import pathlib, tempfile, fairfl
    >>> from fairfl.runs.folder import write
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=2, cohort=5)
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = write(result, pathlib.Path(parent, "first"))
    ...     sorted(file.name for file in folder.iterdir())[:3]
    ['clients.csv', 'configuration.json', 'data.json']
    """
    check(folder, overwrite)
    with _complete(Path(folder)) as unfinished:
        _save(unfinished / "data.json", text(data_object(result.data)))
        _save(unfinished / CONFIGURATION, text({**configuration_of(result), "command": command}))
        if preprocessing is not None:
            _save(unfinished / "preprocessing.json", preprocessing)
        save_result(unfinished, result, choice)
    return Path(folder)


def configuration_of(result: Result) -> dict[str, Any]:
    """The configuration that gave a result."""
    return configured(
        result.data,
        result.algorithm,
        result.sampler,
        result.weights,
        result.rounds,
        result.settings,
        result.experiments,
    )


def save_result(folder: Path, result: Result, choice: Mapping[str, Any] | None = None) -> None:
    """Write what was found into a run's folder, each file whole or not at all.

    result.json comes last: a folder with it is finished.
    """
    _save_columns(folder / "fairness.csv", _per_split(result, "fairness"))
    _save_columns(folder / "clients.csv", _per_split(result, "clients"))
    if result.personal:
        _save_columns(folder / "personal_fairness.csv", _per_split(result.personal, "fairness"))
        _save_columns(folder / "personal_clients.csv", _per_split(result.personal, "clients"))
    _save_columns(folder / "history.csv", [result.history])
    _save(folder / "parameters.safetensors", _parameters(result))
    _save(folder / "record.safetensors", _record(result))
    _save(folder / "timings.json", text({"schema": SCHEMA, "seconds": result.seconds}))
    for leftover in folder.glob(f"{UNFINISHED}*"):
        leftover.unlink()
    _save(folder / RESULT, text(_timeless(as_object(result, choice))))


def reserved(parent: Path, label: str) -> Path:
    """An empty folder of the parent: 0001-label, 0002-label ...; the next one where another run
    was faster.

    >>> import pathlib, tempfile
    >>> from fairfl.runs.folder import reserved
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     [reserved(pathlib.Path(parent), "synthetic-run").name for _ in range(2)]
    ['0001-synthetic-run', '0002-synthetic-run']
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        numbers = [int(place.name[:4]) for place in parent.iterdir() if place.name[:4].isdigit()]
        number = max(numbers, default=0)
        while True:
            number += 1
            folder = parent / f"{number:04d}-{label}"
            try:
                folder.mkdir()
                return folder
            except FileExistsError:
                continue
    except OSError as error:
        raise unwritable(parent, error) from error


@contextmanager
def _complete(folder: Path) -> Iterator[Path]:
    """A folder beside the wanted one, which takes its place when everything in it is written."""
    wanted = folder.resolve()
    unfinished = beside(wanted)
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        unfinished.mkdir()
        yield unfinished
        take_place(unfinished, wanted)
    except OSError as error:
        raise unwritable(folder.parent, error) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def take_place(complete: Path, wanted: Path) -> None:
    """Put a folder where another is or none; one that is empty makes room by itself."""
    try:
        complete.rename(wanted)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    else:
        return
    aside = beside(wanted)
    wanted.rename(aside)
    try:
        complete.rename(wanted)
    except BaseException:
        aside.rename(wanted)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _save(file: Path, content: str | bytes) -> None:
    with replaced(file) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


def _timeless(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name != "seconds"}


def _parameters(result: Result) -> bytes:
    tensors = _of_experiments([named(member.params) for member in result.members])
    return packed(tensors, skeleton=skeleton(result.members[0].params))


def _record(result: Result) -> bytes:
    return packed(_of_experiments([arrays_of(member) for member in result.members]))


def _of_experiments(parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
    return {
        f"{place}/{name}": array for place, part in enumerate(parts) for name, array in part.items()
    }


def _per_split(result: Result, what: str) -> list[Columns]:
    """The columns of every split that has rows, with the split beside them."""
    parts: list[tuple[SplitName, Columns]] = [
        (split, getattr(result, what)(split))
        for split in SPLITS
        if len(result.missing(split)) < result.data.clients
    ]
    return [{"split": np.full(len(columns["seed"]), split), **columns} for split, columns in parts]


def _save_columns(file: Path, parts: Sequence[Columns]) -> None:
    """CSV with a header; NaN is an empty cell."""
    with replaced(file) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(parts[0])
        for columns in parts:
            writer.writerows(zip(*map(_cells, columns.values()), strict=True))
        lines.detach()


def _cells(column: np.ndarray) -> list[Any]:
    if column.dtype.kind != "f":
        return column.tolist()
    # A 32-bit number is written in the few digits that tell it from its neighbours.
    cells = column.astype(str) if column.dtype == np.float32 else column.astype(object)
    return np.where(np.isnan(column), "", cells.astype(object)).tolist()
