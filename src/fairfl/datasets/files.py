"""The files of a data set as they are published: found in the data folder, and opened."""

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from fairfl.datasets.places import folders

Paths = Mapping[str, Path]
"""Where the files of a data set lie, by their published names."""


@dataclass(frozen=True)
class File:
    """A published file, and where it is put in the data folder.

    A file that is compressed where it is published may lie there unpacked, and the other way round.
    `digest` is that of what `url` gives: the file, or a zip of which it is a `member`. Files called
    `others` serve as well, the first that is there.

    >>> from fairfl.datasets.files import File
    >>> File("adult", "adult.data", "https://archive.ics.uci.edu/adult.data").place
    'adult/adult.data'
    """

    folder: str
    name: str
    url: str | None = None
    digest: str | None = None
    member: str | None = None
    others: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where it lies, below the data folder."""
        return f"{self.folder}/{self.name}"


def found(file: File, folder: Path) -> Path | None:
    """The file in the data folder, or in the user cache where that folder cannot be written;
    packed or not; None where it is not there.

    >>> import pathlib
    >>> from fairfl.datasets.files import File, found
    >>> found(File("adult", "adult.data"), pathlib.Path("nowhere")) is None
    True
    """
    return next((place for place in _places(file, folder) if place.is_file()), None)


def in_the_way(file: File, folder: Path) -> Path | None:
    """A folder that lies where the file belongs, as unpacking leaves it; None where there is none.

    >>> import pathlib, tempfile
    >>> from fairfl.datasets.files import File, in_the_way
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pathlib.Path(folder, "adult", "adult.data").mkdir(parents=True)
    ...     in_the_way(File("adult", "adult.data"), pathlib.Path(folder)).name
    'adult.data'
    """
    return next((place for place in _places(file, folder) if place.is_dir()), None)


def _places(file: File, folder: Path) -> Iterator[Path]:
    known = (file.name, *file.others)
    names = [name for each in known for name in (each, each.removesuffix(".gz"), f"{each}.gz")]
    return (place / file.folder / name for place in folders(folder) for name in names)


def missing(files: Sequence[File], folder: Path) -> list[File]:
    """Those that are not in the data folder."""
    return [file for file in files if found(file, folder) is None]


def contents(path: Path) -> bytes:
    """The bytes of a file, unpacked if its name ends in .gz."""
    with opened(path) as stream:
        return stream.read()


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file to read from, unpacked if its name ends in .gz; damage is one sentence."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            yield cast(BinaryIO, stream)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(
            f"{str(path)!r} is damaged ({error}); delete it, and it is downloaded again or can be "
            "copied again"
        ) from error
