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
    return Path(named).expanduser()


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
