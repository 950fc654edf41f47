"""load_run: a run's folder gives its result again, without the data."""

import json
import shlex
from pathlib import Path
from typing import Any

import jax

from fairfl.runs.configuration import data_of
from fairfl.runs.folder import CHECKPOINTS, CONFIGURATION, RESULT
from fairfl.runs.json import SCHEMA
from fairfl.runs.record import experiment_of
from fairfl.runs.result import Experiment, Result
from fairfl.runs.tensors import unpacked


def load_run(folder: Path | str) -> Result:
    """The result that a run's folder keeps: the same numbers and parameters, bit for bit.

    Parameters come back as dicts and lists of arrays, whatever kind of tree the model made them.

    >>> import tempfile, fairfl
    >>> from fairfl.runs import folder
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=2, cohort=5)
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     again = fairfl.load_run(folder.write(result, parent + "/first"))
    >>> again.history["loss"].tolist() == result.history["loss"].tolist()
    True
    """
    place = Path(folder)
    configuration = read_configuration(place)
    _check_finished(place, configuration)
    found = read(place, RESULT)
    return Result(
        data=data_of(read(place, "data.json")),
        algorithm=configuration["algorithm"],
        sampler=configuration["sampler"],
        weights=configuration["weights"],
        rounds=configuration["rounds"],
        seconds=read(place, "timings.json")["seconds"],
        members=_members(place, configuration["experiments"]),
        notes=found["notes"],
        settings=configuration["settings"],
    )


def _check_finished(folder: Path, configuration: dict[str, Any]) -> None:
    if (folder / RESULT).is_file() or not (folder / CHECKPOINTS).is_dir():
        return
    command = configuration.get("command")
    raise ValueError(
        f"the run in {str(folder)!r} is unfinished; "
        + (
            f"go on with {command} --out {shlex.quote(str(folder))} --resume"
            if command
            else f"go on with fairfl.train(..., out={str(folder)!r}, resume=True)"
        )
    )


def read_configuration(folder: Path) -> dict[str, Any]:
    """The configuration of a run, or a sentence about why this is not a run's folder."""
    if not (folder / CONFIGURATION).is_file():
        raise ValueError(
            f"{str(folder)!r} is not a run's folder, which holds a {CONFIGURATION}; name the "
            "folder that a run was written to"
        )
    return read(folder, CONFIGURATION)


def read(folder: Path, name: str) -> dict[str, Any]:
    """One of the folder's JSON files."""
    try:
        found = json.loads((folder / name).read_text(encoding="utf-8"))
        schema = found["schema"]
    except FileNotFoundError as error:
        raise _broken(folder, name, "it is missing") from error
    except (ValueError, TypeError, KeyError) as error:
        raise _broken(folder, name, str(error) or "it is not JSON") from error
    if schema != SCHEMA:
        raise ValueError(
            f"{str(folder / name)!r} has schema {schema} but this fairfl reads schema {SCHEMA}; "
            "use the version of fairfl that wrote it"
        )
    return found


def _broken(folder: Path, name: str, reason: str) -> ValueError:
    return ValueError(
        f"{str(folder / name)!r} cannot be read ({reason}); the run must be trained again"
    )


def _members(folder: Path, labels: list[dict[str, Any]]) -> list[Experiment]:
    tensors, about = _tensors(folder, "parameters.safetensors")
    records, _ = _tensors(folder, "record.safetensors")
    return [
        experiment_of(
            _below(records, place),
            label,
            jax.tree.map(lambda name, place=place: tensors[f"{place}/{name}"], about["skeleton"]),
        )
        for place, label in enumerate(labels)
    ]


def _tensors(folder: Path, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        return unpacked((folder / name).read_bytes())
    except FileNotFoundError as error:
        raise _broken(folder, name, "it is missing") from error
    except ValueError as error:
        raise _broken(folder, name, str(error)) from error


def _below(tensors: dict[str, Any], place: int) -> dict[str, Any]:
    start = f"{place}/"
    return {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}
