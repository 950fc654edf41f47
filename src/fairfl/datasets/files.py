"""The files of a data set as they are published: found in the data folder, and opened."""

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Paths = Mapping[str, Path]
"""Where the files of a data set lie, by their published names."""


@dataclass(frozen=True)
class File:
    """A published file, and where it is put in the data folder.

    A file that is compressed where it is published may lie there unpacked, and the other way round.

    >>> from fairfl.datasets.files import File
    >>> File("adult", "adult.data", "https://archive.ics.uci.edu/adult.data").place
    'adult/adult.data'
    """

    folder: str
    name: str
    url: str | None = None
    digest: str | None = None

    @property
    def place(self) -> str:
        """Where it lies, below the data folder."""
        return f"{self.folder}/{self.name}"


def found(file: File, folder: Path) -> Path | None:
    """The file in the data folder, packed or not; None where it is not there.

    >>> import pathlib
    >>> from fairfl.datasets.files import File, found
    >>> found(File("adult", "adult.data"), pathlib.Path("nowhere")) is None
    True
    """
    bare = file.name.removesuffix(".gz")
    places = (folder / file.folder / name for name in (file.name, bare, f"{bare}.gz"))
    return next((place for place in places if place.is_file()), None)


def missing(files: Sequence[File], folder: Path) -> list[File]:
    """Those that are not in the data folder."""
    return [file for file in files if found(file, folder) is None]


def contents(path: Path) -> bytes:
    """The bytes of a file, unpacked if its name ends in .gz."""
    try:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(
            f"{str(path)!r} is damaged ({error}); delete it, and it is downloaded again or can be "
            "copied again"
        ) from error
