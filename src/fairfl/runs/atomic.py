"""Files that are whole or not there, whenever the machine stops."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".fairfl-"
"""How the name of everything begins that is still being written."""


def beside(place: Path) -> Path:
    """A hidden name in the same folder that nobody else uses.

    >>> from pathlib import Path
    >>> from fairfl.runs.atomic import beside
    >>> beside(Path("runs/first")).parent == Path("runs")
    True
    """
    return place.with_name(f"{UNFINISHED}{uuid.uuid4().hex}")


@contextmanager
def replaced(file: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes are the file's when the block ends; the old ones stay where it fails.

    >>> import pathlib, tempfile
    >>> from fairfl.runs.atomic import replaced
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with replaced(pathlib.Path(parent, "notes.txt")) as stream:
    ...         _ = stream.write(b"whole")
    ...     pathlib.Path(parent, "notes.txt").read_bytes()
    b'whole'
    """
    unfinished = beside(file)
    try:
        with unfinished.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    settle(file.parent)


def settle(folder: Path) -> None:
    """Have the disk keep the names in a folder, where the system lets a folder be opened."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
