"""Per-client cells of a MAT file, as multi-task benchmarks have them: X{k} and Y{k} of client k.

Level 5 of the format (MATLAB 5 to 7.2, `save -v7`): elements of a tag and its bytes, some of them
compressed. Only what such files need is read: cells of full real matrices.
"""

import math
import struct
import zlib
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairfl.clients.federated import FederatedData, Fractions, Task, from_arrays

Clients = dict[Hashable, tuple[np.ndarray, np.ndarray]]

HEADER = 128
MATRIX, COMPRESSED = 14, 15
CELL = 1
FULL = range(6, 16)
COMPLEX = 0x0800
NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
"""How the numbers of an element are stored, by the type in its tag."""


def from_mat(
    path: str | Path,
    *,
    x: str = "X",
    y: str = "Y",
    standardise: bool = False,
    split: Fractions | None = (0.8, 0.1, 0.1),
    task: Task | None = None,
) -> FederatedData:
    """Data from a MAT file with a cell per client: X{k} has its rows, Y{k} its labels.

    `standardise` makes each feature (v - mean) / deviation within each client, 0 where its
    deviation is 0. Clients are called f_00000, f_00001 and so on.

    >>> import fairfl
    >>> fairfl.from_mat("nowhere.mat")
    Traceback (most recent call last):
    ValueError: there is no file 'nowhere.mat'; check the path
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}; check the path")
    clients = cells(path, path.read_bytes(), x, y)
    if standardise:
        clients = {id: (standardised(rows), labels) for id, (rows, labels) in clients.items()}
    return from_arrays(clients, split=split, task=task, name=path.stem)


def cells(path: Path, content: bytes, x: str, y: str) -> Clients:
    """Each client's rows and labels, from two cell arrays of the same length."""
    variables = _variables(path, content)
    for name in (x, y):
        if not isinstance(variables.get(name), list):
            raise ValueError(
                f"{str(path)!r} has no cell array {name!r}; it has {', '.join(variables)}, so say "
                "which hold the rows and the labels with x= and y="
            )
    rows, labels = variables[x], variables[y]
    if len(rows) != len(labels):
        raise ValueError(
            f"{str(path)!r} has {len(rows)} cells in {x!r} but {len(labels)} in {y!r}; give every "
            "client one of each"
        )
    pairs = zip(rows, labels, strict=True)
    return {f"f_{k:05d}": (a, b.reshape(-1)) for k, (a, b) in enumerate(pairs)}


def standardised(x: np.ndarray) -> np.ndarray:
    """(v - mean) / deviation of each feature, 0 where the deviation is 0.

    >>> import numpy as np
    >>> from fairfl.clients.mat import standardised
    >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    # The mean of equal numbers can be a rounding error away from them: never divide by that.
    deviation = np.where(x.max(axis=0) == x.min(axis=0), 0.0, x.std(axis=0))
    centred = x - x.mean(axis=0)
    return np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 0)


# ---- the format ----

Value = np.ndarray | list[np.ndarray]


class _DamagedError(Exception):
    """The bytes are not what the format says."""


class _Element(NamedTuple):
    type: int
    data: memoryview
    next: int


@dataclass(frozen=True)
class _Reader:
    """Elements in the byte order of their file, < or >."""

    order: str

    def element(self, content: memoryview, at: int) -> _Element:
        if at + 8 > len(content):
            raise _DamagedError("it ends within an element")
        tag, size = struct.unpack_from(f"{self.order}II", content, at)
        if tag >> 16:  # a small element: its size and type share four bytes, its data the others
            size, tag, start, padded = tag >> 16, tag & 0xFFFF, at + 4, 4
        else:
            start, padded = at + 8, size if tag == COMPRESSED else -(-size // 8) * 8
        if start + size > len(content):
            raise _DamagedError("it ends within an element")
        return _Element(tag, content[start : start + size], start + padded)

    def matrix(self, content: memoryview) -> tuple[str, Value]:
        """The name and value of a matrix; a cell array is the list of its cells."""
        flags = self.element(content, 0)
        dimensions = self.element(content, flags.next)
        name = self.element(content, dimensions.next)
        kind = int(self.numbers(flags)[0])
        shape = tuple(self.numbers(dimensions).tolist())
        value = self.value(kind, shape, content, name.next)
        return bytes(name.data).decode("latin-1"), value

    def value(self, kind: int, shape: tuple[int, ...], content: memoryview, at: int) -> Value:
        if kind & 0xFF == CELL:
            return self.cell(math.prod(shape), content, at)
        if kind & 0xFF not in FULL or kind & COMPLEX:
            return np.empty(0)
        values = self.numbers(self.element(content, at))
        if values.size != math.prod(shape):
            raise _DamagedError("a matrix has another size than it says")
        return values.reshape(shape, order="F")

    def cell(self, count: int, content: memoryview, at: int) -> list[np.ndarray]:
        found = []
        for _ in range(count):
            element = self.element(content, at)
            _, value = self.matrix(element.data)
            found.append(value if isinstance(value, np.ndarray) else np.empty(0))
            at = element.next
        return found

    def numbers(self, element: _Element) -> np.ndarray:
        if element.type not in NUMBERS:
            raise _DamagedError(f"numbers of the type {element.type}")
        return np.frombuffer(element.data, f"{self.order}{NUMBERS[element.type]}")


def _variables(path: Path, content: bytes) -> dict[str, Value]:
    orders = {b"IM": "<", b"MI": ">"}
    if content[:10] == b"MATLAB 7.3" or content[:8] == b"\x89HDF\r\n\x1a\n":
        raise ValueError(
            f"{str(path)!r} is of version 7.3, which is another format; save it with -v7"
        )
    if content[126:128] not in orders:
        raise ValueError(f"{str(path)!r} is no MAT file of version 5 to 7; save it with -v7")
    reader = _Reader(orders[content[126:128]])
    try:
        return dict(_elements(reader, memoryview(content)))
    except (_DamagedError, zlib.error) as error:
        raise ValueError(f"{str(path)!r} is damaged ({error}); copy or save it again") from error


def _elements(reader: _Reader, content: memoryview) -> list[tuple[str, Value]]:
    found, at = [], HEADER
    while at < len(content):
        element = reader.element(content, at)
        at = element.next
        if element.type == COMPRESSED:
            element = reader.element(memoryview(zlib.decompress(element.data)), 0)
        if element.type == MATRIX:
            found.append(reader.matrix(element.data))
    return found
