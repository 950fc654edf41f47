"""The checkpoints of a federated run: the two newest, each known by its digest to be whole."""

from collections.abc import Callable
from pathlib import Path

from flwr.app import ArrayRecord

from fairfl.flower.standing import Standing, States, as_bytes, from_bytes
from fairfl.runs.atomic import replaced
from fairfl.runs.checkpoints import digest_of

KEPT = 2


def save(place: Path, standing: Standing) -> None:
    """Write where the run stands; what is older than the round before goes."""
    content = as_bytes(standing)
    name = f"{standing.done:08d}-{digest_of(content)[:16]}.safetensors"
    with replaced(place / name) as stream:
        stream.write(content)
    for older in _newest_first(place)[KEPT:]:
        older.unlink()


def newest(place: Path, fresh: Callable[[ArrayRecord, int], States]) -> Standing | None:
    """Where the newest whole checkpoint left the run; None where there has been none.

    A checkpoint that is damaged makes way for the one before it; when none is whole, ValueError.
    """
    files = _newest_first(place)
    for file in files:
        content = file.read_bytes()
        if digest_of(content)[:16] == file.stem.split("-")[1]:
            return _fitting(place, content, fresh)
    if files:
        raise ValueError(
            f"no checkpoint in {str(place)!r} is whole; put back a copy of it, or ask for "
            "overwrite to begin anew"
        )
    return None


def _fitting(place: Path, content: bytes, fresh: Callable[[ArrayRecord, int], States]) -> Standing:
    try:
        return from_bytes(content, fresh)
    except ValueError as error:
        raise ValueError(
            f"the checkpoint in {str(place)!r} does not fit this run ({error}); use the algorithm "
            "that it was begun with, or ask for overwrite to begin anew"
        ) from error


def _newest_first(place: Path) -> list[Path]:
    return sorted(place.glob("*-*.safetensors"), reverse=True)
