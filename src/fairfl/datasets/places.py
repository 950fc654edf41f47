"""Where the files of data sets lie, and where what was made from them is kept."""

import os
import sys
from pathlib import Path


def data_folder(named: Path | str | None = None) -> Path:
    """The folder of the files as they are published: the one named, FAIRFL_DATA, or the user cache.

    >>> from fairfl.datasets.places import data_folder
    >>> data_folder("downloads").name
    'downloads'
    """
    if named is None:
        named = os.environ.get("FAIRFL_DATA") or user_cache() / "data"
    folder = Path(named).expanduser()
    if folder.is_file():
        raise ValueError(
            f"the data folder {str(folder)!r} is a file; name the folder above those of the data "
            "sets with --data-dir or FAIRFL_DATA"
        )
    return folder


def folders(folder: Path) -> tuple[Path, ...]:
    """Where files are looked for: in the folder, and where that cannot be written in the user
    cache too, because downloads go to the last of them.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from fairfl.datasets.places import folders
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(folders(Path(folder))), len(folders(Path(folder, "new")))
    (1, 1)
    """
    there = next(
        (place for place in (folder, *folder.absolute().parents) if place.exists()), folder
    )
    writable = there.is_dir() and os.access(there, os.W_OK)
    return (folder,) if writable else (folder, user_cache() / "data")


def user_cache() -> Path:
    """Where this system keeps what programs can make again.

    >>> from fairfl.datasets.places import user_cache
    >>> user_cache().name
    'fairfl'
    """
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"], "fairfl")
    caches = {"darwin": "Library/Caches", "win32": "AppData/Local"}
    return Path.home() / caches.get(sys.platform, ".cache") / "fairfl"
