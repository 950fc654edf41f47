"""Checkpoints of a run: the newest two of every group of experiments, and manifests that name them.

    00000007.json                        the manifest: of every group its file, rounds and digest
    0002-00000450-5be6f01c.safetensors   group 2 after 450 rounds
    lock                                 held by the process that trains

A manifest is written after the files that it names, and the files of the two newest stay, so that
whatever is cut off or damaged, there is one before it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fairfl.runs.atomic import replaced
from fairfl.runs.json import SCHEMA, text
from fairfl.runs.state import packed_state
from fairfl.simulation.engine import Group


class Entry(NamedTuple):
    """A group's file, and by what it is known to be whole."""

    file: str
    rounds: int
    digest: str


class Manifest(NamedTuple):
    """A checkpoint of the run: one file of every group that has begun.

    `seconds` is how long the run has taken so far.
    """

    number: int
    seconds: float
    groups: Mapping[int, Entry]

    @property
    def rounds(self) -> int:
        """Rounds of all groups together."""
        return sum(entry.rounds for entry in self.groups.values())


class Whole(NamedTuple):
    """The newest whole state of every group, the manifest to count on from, and what is damaged."""

    manifest: Manifest
    states: Mapping[int, bytes]
    damaged: Sequence[str]


def save(place: Path, groups: Sequence[Group], seconds: float, last: Manifest | None) -> Manifest:
    """Write the groups that have moved since the last manifest, then the manifest."""
    entries = dict(last.groups) if last else {}
    for number, group in enumerate(groups):
        if group.carry is not None and _moved(group, entries.get(number)):
            entries[number] = _write(place, number, group)
    manifest = Manifest(last.number + 1 if last else 1, seconds, entries)
    with replaced(place / _name(manifest.number)) as stream:
        stream.write(_as_text(manifest).encode())
    _clear(place, [manifest, last] if last else [manifest])
    return manifest


def _moved(group: Group, entry: Entry | None) -> bool:
    # A group that died is evaluated after its last round, without another one.
    return entry is None or group.done > entry.rounds or group.dead


def _write(place: Path, number: int, group: Group) -> Entry:
    content = packed_state(group)
    digest = digest_of(content)
    file = f"{number:04d}-{group.done:08d}-{digest[:8]}.safetensors"
    with replaced(place / file) as stream:
        stream.write(content)
    return Entry(file, group.done, digest)


def newest(place: Path) -> Whole | None:
    """The newest whole checkpoint; None where there has been none yet.

    Groups stand alone, so that one whose newest file is damaged goes on from an older one.
    """
    manifests, damaged = _manifests(place)
    if not manifests:
        if damaged:
            raise ValueError(_nothing_whole(place, damaged))
        return None
    states, entries = {}, {}
    for manifest in manifests:
        for number, entry in manifest.groups.items():
            if number in states:
                continue
            content, reason = _read(place / entry.file, entry)
            if content is None:
                damaged.append(f"{entry.file} {reason}")
            else:
                states[number], entries[number] = content, entry
    if damaged and not states:
        raise ValueError(_nothing_whole(place, damaged))
    return Whole(Manifest(max(_numbered(place)), manifests[0].seconds, entries), states, damaged)


def _manifests(place: Path) -> tuple[list[Manifest], list[str]]:
    """Those that can be read, the newest first, and what is wrong with the others."""
    found, damaged = [], []
    for number, file in sorted(_numbered(place).items(), reverse=True):
        try:
            found.append(_of_text(number, file.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, OtherSchemaError):
                raise
            damaged.append(f"{file.name} is not whole")
    return found, damaged


class OtherSchemaError(ValueError):
    """A file that another version of fairfl wrote."""


def _of_text(number: int, words: str) -> Manifest:
    found = json.loads(words)
    if found["schema"] != SCHEMA:
        raise OtherSchemaError(
            f"the checkpoints have schema {found['schema']} but this fairfl reads schema {SCHEMA}; "
            "use the version of fairfl that wrote them"
        )
    groups = {int(place): Entry(**entry) for place, entry in found["groups"].items()}
    return Manifest(number, float(found["seconds"]), groups)


def _as_text(manifest: Manifest) -> str:
    groups = {str(number): entry._asdict() for number, entry in manifest.groups.items()}
    return text({"schema": SCHEMA, "seconds": manifest.seconds, "groups": groups})


def _read(file: Path, entry: Entry) -> tuple[bytes | None, str]:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None, "is missing"
    return (content, "") if digest_of(content) == entry.digest else (None, "is damaged")


def _nothing_whole(place: Path, damaged: Sequence[str]) -> str:
    return (
        f"no checkpoint in {str(place)!r} is whole ({', '.join(damaged)}); put back a copy of it, "
        "or add --overwrite to begin anew"
    )


def digest_of(content: bytes) -> str:
    """What tells whether a file is what was written.

    >>> from fairfl.runs.checkpoints import digest_of
    >>> len(digest_of(b"whole"))
    32
    """
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _numbered(place: Path) -> dict[int, Path]:
    """The manifests by their numbers."""
    return {int(file.stem): file for file in place.glob("*.json") if file.stem.isdigit()}


def _name(number: int) -> str:
    return f"{number:08d}.json"


def _clear(place: Path, manifests: Sequence[Manifest]) -> None:
    """Remove what neither manifest names, but for the lock."""
    kept = {_name(manifest.number) for manifest in manifests}
    kept |= {entry.file for manifest in manifests for entry in manifest.groups.values()}
    for file in place.iterdir():
        if file.name not in kept and file.name != "lock":
            file.unlink()
