"""One process at a time in a run's folder; the lock of a killed process is gone with it."""

import sys
from pathlib import Path
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt

    def _take(stream: BinaryIO) -> None:
        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(stream: BinaryIO) -> None:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def taken(file: Path) -> BinaryIO:
    """The lock, held until the stream is closed; BlockingIOError where another process holds it.

    A file system that knows no locks gives none, and is used without.

    >>> import pathlib, tempfile
    >>> from fairfl.runs.lock import taken
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with taken(pathlib.Path(parent, "lock")):
    ...         try:
    ...             taken(pathlib.Path(parent, "lock"))
    ...         except BlockingIOError:
    ...             print("somebody is here")
    somebody is here
    """
    stream = file.open("ab")
    try:
        _take(stream)
    except (BlockingIOError, PermissionError) as error:
        stream.close()
        raise BlockingIOError(f"another process holds {str(file)!r}") from error
    except OSError:
        return stream
    return stream
