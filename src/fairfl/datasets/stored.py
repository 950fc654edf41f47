"""What was read from published files, kept in a compact form so that it is read once.

A file per data set and state of its sources in the user's cache: a zip of arrays, whose checksums
tell when it is damaged. Whatever is wrong with it, it is made again from the sources.
"""

import hashlib
import os
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from fairfl.datasets.files import Paths
from fairfl.datasets.places import user_cache

Arrays = Mapping[str, np.ndarray]

VERSION = 2
"""Counts the changes of what the readers make of the same files."""

EDGE = 1 << 16
DIGEST = 8
"""Bytes of the digest in a name, so that vehicle-... is not taken for vehicle-subset-..."""


def stored(name: str, paths: Paths, read: Callable[[Paths], Arrays]) -> Arrays:
    """What `read` makes of the files: from the cache where it is there, else read and put there.

    FAIRFL_CACHE=0, or a cache that cannot be written, costs time and nothing else.

    >>> import numpy as np
    >>> from fairfl.datasets.stored import stored
    >>> stored("made-up", {}, lambda paths: {"labels": np.arange(3)})["labels"].tolist()
    [0, 1, 2]
    """
    if os.environ.get("FAIRFL_CACHE") == "0":
        return read(paths)
    place = user_cache() / "arrays" / f"{name}-{key(paths)}.npz"
    kept = _kept(place)
    if kept is not None:
        return kept
    arrays = read(paths)
    _keep(arrays, place, f"{name}-{'[0-9a-f]' * 2 * DIGEST}.npz")
    return arrays


def key(paths: Paths) -> str:
    """A digest of the sources: their names, sizes, times of change, first and last bytes.

    >>> from fairfl.datasets.stored import key
    >>> len(key({}))
    16
    """
    digest = hashlib.blake2b(f"{VERSION}".encode(), digest_size=DIGEST)
    for name, path in sorted(paths.items()):
        state = path.stat()
        digest.update(f"{name}|{path.suffix}|{state.st_size}|{state.st_mtime_ns}|".encode())
        with path.open("rb") as stream:
            digest.update(stream.read(EDGE))
            stream.seek(max(0, state.st_size - EDGE))
            digest.update(stream.read(EDGE))
    return digest.hexdigest()


def _kept(place: Path) -> Arrays | None:
    try:
        with place.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return None


def _keep(arrays: Arrays, place: Path, outdated: str) -> None:
    """Written beside its place and moved there whole, so that nobody reads half of it."""
    part = place.with_suffix(f".{os.getpid()}.part")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        for old in place.parent.glob(outdated):
            old.unlink(missing_ok=True)
        with part.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)
        os.replace(part, place)
    except OSError:
        _remove(part)


def _remove(part: Path) -> None:
    with suppress(OSError):
        part.unlink(missing_ok=True)
