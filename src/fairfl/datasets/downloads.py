"""Files fetched from their public addresses: whole or not at all, and on from where they stopped.

What has arrived lies beside its place, in a file that ends in .part, until all of it is there and
its digest is right. A transfer that breaks off goes on as long as every attempt brings something.
"""

import hashlib
import http.client
import os
import re
import shutil
import ssl
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from fairfl.datasets.files import File

BLOCK = 1 << 18
SECONDS = 30
"""How long a server may stay silent."""

UNREACHABLE = (
    urllib.error.URLError,
    http.client.HTTPException,
    ConnectionError,
    TimeoutError,
    ssl.SSLError,
)
GONE_ON_TOO_FAR = 416


Meter = Callable[[int, int | None], object]
"""Is told how much has arrived, and of how much where that is known."""


def download(file: File, folder: Path) -> Path:
    """Where the file now lies in the folder, from its public address.

    >>> from pathlib import Path
    >>> from fairfl.datasets.downloads import download
    >>> from fairfl.datasets.files import File
    >>> download(File("vehicle", "mytrain.json"), Path("data"))
    Traceback (most recent call last):
    ValueError: vehicle/mytrain.json has no public address; put it into 'data' yourself
    """
    if file.url is None:
        raise ValueError(
            f"{file.place} has no public address; put it into {str(folder)!r} yourself"
        )
    place = folder / file.place
    part = place.with_name(f"{place.name}.part")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _arrived(file, part)
        _put(file, part, place)
    except UNREACHABLE as error:
        raise ValueError(_sentence(file, folder, _reason(error))) from error
    except OSError as error:
        raise ValueError(
            f"{str(place)!r} cannot be written ({error.strerror or error}); make room or name "
            "another folder with --data-dir or FAIRFL_DATA: what has arrived is kept"
        ) from error
    except _RefusedError as error:
        raise ValueError(_sentence(file, folder, str(error))) from error
    return place


class _RefusedError(Exception):
    """What came is not the file."""


def _sentence(file: File, folder: Path, reason: str) -> str:
    return (
        f"{file.place} cannot be downloaded from {file.url} ({reason}); try again, which goes on "
        f"where it stopped, or put it into {str(folder)!r} yourself"
    )


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code} {error.reason}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return f"there is no connection: {str(reason) or type(error).__name__}"


# ---- transfer ----


def _arrived(file: File, part: Path) -> None:
    """All of what the address gives, in `part`. Nothing tells whether a part without a digest
    belongs to what would follow it, so such a file begins anew."""
    if file.digest is None:
        part.unlink(missing_ok=True)
    resumed = _size(part) > 0
    _transfer(file, part)
    if resumed and not _is_whole(part, file):
        part.unlink()
        _transfer(file, part)
    if not _is_whole(part, file):
        part.unlink()
        raise _RefusedError(f"what came has another checksum than {file.digest}")


def _transfer(file: File, part: Path) -> None:
    with _shown(file) as meter:
        while True:
            before = _size(part)
            try:
                if _all_of(str(file.url), part, meter):
                    return
                problem: Exception = ConnectionError("the transfer broke off")
            except urllib.error.HTTPError as error:
                if error.code != GONE_ON_TOO_FAR or not before:
                    raise
                part.unlink()
                continue
            except UNREACHABLE as error:
                problem = error
            if _size(part) <= before:
                raise problem


def _all_of(url: str, part: Path, meter: Meter) -> bool:
    """One attempt: whether everything is there now."""
    begun = _size(part)
    headers = {"User-Agent": "fairfl"} | ({"Range": f"bytes={begun}-"} if begun else {})
    request = urllib.request.Request(url, headers=headers)
    with closing(urllib.request.urlopen(request, timeout=SECONDS)) as answer:
        if answer.headers.get_content_type() == "text/html":
            raise _RefusedError("the server sends a web page instead")
        # A server that does not know ranges sends everything again.
        begun = begun if answer.status == http.client.PARTIAL_CONTENT else 0
        length = answer.headers.get("Content-Length")
        total = None if length is None else begun + int(length)
        _check_room(part, begun, total)
        _pour(answer, part, begun, total, meter)
    return total is None or _size(part) == total


def _pour(
    answer: http.client.HTTPResponse, part: Path, begun: int, total: int | None, meter: Meter
) -> None:
    with part.open("ab" if begun else "wb") as stream:
        while block := answer.read(BLOCK):
            stream.write(block)
            meter(stream.tell(), total)


def _check_room(part: Path, begun: int, total: int | None) -> None:
    free = shutil.disk_usage(part.parent).free
    if total is not None and total - begun > free:
        raise OSError(
            f"{(total - begun) / 1e6:,.0f} MB are to come but {free / 1e6:,.0f} MB are free"
        )


def _size(part: Path) -> int:
    return part.stat().st_size if part.is_file() else 0


def _is_whole(part: Path, file: File) -> bool:
    if file.digest is None:
        return True
    kind, _, expected = file.digest.partition(":")
    with part.open("rb") as stream:
        return hashlib.file_digest(stream, kind).hexdigest() == expected


# ---- arrival ----


def _put(file: File, part: Path, place: Path) -> None:
    """Moved to its place whole, so that nobody reads half of it."""
    if file.member is None:
        os.replace(part, place)
        return
    unpacked = place.with_name(f"{place.name}.unpacked")
    try:
        with (
            zipfile.ZipFile(part) as archive,
            archive.open(file.member) as source,
            unpacked.open("wb") as target,
        ):
            shutil.copyfileobj(source, target)
    except (KeyError, zipfile.BadZipFile, zlib.error) as error:
        unpacked.unlink(missing_ok=True)
        part.unlink()
        raise _RefusedError(f"what came is no zip with {file.member}") from error
    os.replace(unpacked, place)
    part.unlink()


@contextmanager
def _shown(file: File) -> Iterator[Meter]:
    """Says on stderr what is fetched from where, with a bar where there is a terminal."""
    console = Console(stderr=True, highlight=False)
    console.print(f"Downloading {file.place} from {file.url}", markup=False, soft_wrap=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(re.sub(r".*/", "", str(file.url)), total=None)
        yield lambda arrived, total: bar.update(task, completed=arrived, total=total)
