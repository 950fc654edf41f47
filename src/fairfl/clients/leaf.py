"""LEAF JSON (Caldas et al., 2018), in and out: the format that federated benchmarks exchange.

A file is {"users": [..], "num_samples": [..], "user_data": {user: {"x": [..], "y": [..]}}}; a
folder holds such files, or the folders `train` and `test` that do.
"""

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fairfl.clients.characters import ALPHABET, numbers_of
from fairfl.clients.federated import FederatedData, Fractions, Task, from_arrays

FOLDERS = {
    "train": ("train",),
    "validation": ("validation", "val"),
    "test": ("test",),
    "support": ("support",),
}
"""What the folders of a role may be called; they are written by the first name."""

Client = tuple[np.ndarray, np.ndarray]
Users = dict[Hashable, Client]


def from_leaf(
    path: str | Path,
    *,
    split: Fractions | Literal["given"] | None = "given",
    task: Task | None = None,
) -> FederatedData:
    """Data from LEAF JSON: a file, a folder of files, or one with the folders train and test.

    split="given" keeps train and test apart where the folder has them, and otherwise draws
    80 / 10 / 10 for every seed; fractions put all rows of a client together and draw from them, as
    the paper's code does. Rows of text, as in Shakespeare, become the numbers of their characters.

    >>> import json, pathlib, tempfile, fairfl
    >>> rows = {"x": [[1.0, 2.0], [3.0, 4.0]], "y": [[1], [-1]]}
    >>> leaf = {"users": ["f_00000"], "num_samples": [2], "user_data": {"f_00000": rows}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "mytrain.json")
    ...     _ = file.write_text(json.dumps(leaf))
    ...     data = fairfl.from_leaf(file)
    >>> data.ids, data.x.shape, data.classes.tolist(), data.y.tolist()
    (('f_00000',), (2, 2), [-1, 1], [1, 0])
    """
    path = Path(path).expanduser()
    parts = {role: users(files) for role, files in _files(path).items()}
    text = any(x.dtype == np.uint8 for part in parts.values() for x, _ in part.values())
    if split != "given" and "support" not in parts:
        parts = {"train": together(list(parts.values()))}
    fractions = (0.8, 0.1, 0.1) if split == "given" else split
    if "train" not in parts:
        raise ValueError(f"{str(path)!r} has no folder 'train'; put the rows to train on there")
    data = from_arrays(**parts, split=fractions, task=task, name=path.name.split(".")[0])
    return _as_text(data) if text else data


def to_leaf(data: FederatedData, folder: str | Path) -> None:
    """Writes LEAF JSON: data.json, or train/data.json and so on where the split is fixed.

    Labels are the user's own. What a token means (`embeddings`) has no place in the format.

    >>> import numpy as np, tempfile, fairfl
    >>> data = fairfl.from_arrays({"a": (np.eye(3), [0, 1, 1])}, test={"a": (np.ones((1, 3)), [0])})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fairfl.to_leaf(data, folder)
    ...     fairfl.from_leaf(folder).fingerprint == data.fingerprint
    True
    """
    folder = Path(folder).expanduser()
    if data.roles is None:
        _write(data, np.arange(len(data.y)), folder)
        return
    for role, name in enumerate(FOLDERS):
        rows = np.flatnonzero(data.roles == role)
        if len(rows):
            _write(data, rows, folder / name)


def users(files: Sequence[Path]) -> Users:
    """All clients of some files, in their order; no client may be in two of them.

    >>> from fairfl.clients.leaf import users
    >>> users([])
    {}
    """
    found: Users = {}
    for file in files:
        for id, pair in _users(file).items():
            if id in found:
                raise ValueError(
                    f"the client {id!r} is in {str(file)!r} and in another file beside it; keep a "
                    "client's rows in one file"
                )
            found[id] = pair
    return found


def together(parts: Sequence[Users]) -> Users:
    """Each client's rows of all parts, one after the other.

    >>> import numpy as np
    >>> from fairfl.clients.leaf import together
    >>> part = {"a": (np.ones((2, 1)), np.array([0, 1]))}
    >>> together([part, part])["a"][1].tolist()
    [0, 1, 0, 1]
    """
    ids = dict.fromkeys(id for part in parts for id in part)
    pairs = {id: [part[id] for part in parts if id in part] for id in ids}
    return {
        id: (np.concatenate([x for x, _ in found]), np.concatenate([y for _, y in found]))
        for id, found in pairs.items()
    }


def is_leaf(path: Path) -> bool:
    """Whether a path of the user's is LEAF JSON and not a table of rows.

    >>> import pathlib
    >>> from fairfl.clients.leaf import is_leaf
    >>> is_leaf(pathlib.Path("visits.csv"))
    False
    """
    if path.is_dir():
        return (path / "train").is_dir() or any(is_leaf(file) for file in _json_files(path)[:1])
    if not path.is_file() or not _is_json(path):
        return False
    try:
        start = _start(path)
    except (OSError, EOFError, zlib.error):
        return False
    return start.lstrip()[:1] == b"{" and any(
        key in start for key in (b'"users"', b'"num_samples"', b'"user_data"', b'"hierarchies"')
    )


# ---- files ----


def _files(path: Path) -> dict[str, list[Path]]:
    if path.is_file():
        return {"train": [path]}
    if not path.is_dir():
        raise ValueError(f"there is no file or folder {str(path)!r}; check the path")
    parts = {
        role: [file for name in names for file in _json_files(path / name)]
        for role, names in FOLDERS.items()
    }
    parts = {role: files for role, files in parts.items() if files}
    parts = parts or {"train": _json_files(path)}
    if not parts["train" if "train" in parts else next(iter(parts))]:
        raise ValueError(
            f"the folder {str(path)!r} holds no LEAF JSON; put files that end in .json into it, "
            "or into its folders 'train' and 'test'"
        )
    return parts


def _json_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.is_file() and _is_json(file))


def _is_json(file: Path) -> bool:
    return file.name.removesuffix(".gz").endswith(".json") and not file.name.startswith(".")


def _start(file: Path, size: int = 4096) -> bytes:
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
        return stream.read(size)


def _loaded(file: Path) -> Any:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            return json.load(stream)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise ValueError(
            f"{str(file)!r} is no complete JSON file ({error}); copy or export it again"
        ) from error


# ---- clients ----


def _users(file: Path) -> Users:
    found = _loaded(file)
    if not isinstance(found, dict) or not isinstance(found.get("user_data"), dict):
        raise ValueError(
            f"{str(file)!r} is no LEAF JSON: it has no 'user_data'; a table of rows is read with "
            "fairfl.from_table"
        )
    rows = found["user_data"]
    names = found.get("users", list(rows))
    counts = found.get("num_samples", [None] * len(names))
    if len(set(names)) < len(names):
        repeated = Counter(names).most_common(1)[0][0]
        raise ValueError(f"{str(file)!r} lists the client {repeated!r} twice; list it once")
    if set(names) != set(rows) or len(counts) != len(names):
        raise ValueError(
            f"{str(file)!r} lists {len(names)} users, {len(counts)} numbers of samples and the "
            f"data of {len(rows)} users, which do not agree; export it again"
        )
    pairs = {id: _pair(rows[id], id, count) for id, count in zip(names, counts, strict=True)}
    return {id: pair for id, pair in pairs.items() if len(pair[1])}


def _pair(rows: Any, id: str, count: int | None) -> Client:
    if not isinstance(rows, dict) or not {"x", "y"} <= set(rows):
        raise ValueError(f"client {id!r} has no 'x' or no 'y'; give it both")
    x, y = _array(rows["x"], id, "x"), _array(rows["y"], id, "y")
    if len(x) != len(y) or count not in (None, len(y)):
        said = "" if count is None else f" and num_samples says {count}"
        raise ValueError(
            f"client {id!r} has {len(x)} rows of x and {len(y)} labels{said}; export it again"
        )
    return x, y.reshape(len(y)) if y.ndim == 2 and y.shape[1] == 1 else y


def _array(values: Any, id: str, part: str) -> np.ndarray:
    if values and all(isinstance(value, str) for value in values):
        return _of_text(values, id) if part == "x" else np.array(values)
    try:
        return np.array(values)
    except ValueError:
        raise ValueError(
            f"client {id!r}: the rows of {part} have different lengths; give them the same"
        ) from None


def _of_text(rows: list[str], id: str) -> np.ndarray:
    if len({len(row) for row in rows}) > 1:
        raise ValueError(
            f"client {id!r}: the rows of x are texts of different lengths, which are not numbers "
            "yet; turn them into numbers first, and load them with fairfl.from_arrays"
        )
    return np.stack([numbers_of(row) for row in rows])


def _as_text(data: FederatedData) -> FederatedData:
    """Next characters as numbers of the same alphabet, and the rows in a byte per character."""
    classes = data.classes
    if classes is None or classes.dtype.kind != "U" or any(len(label) != 1 for label in classes):
        return data
    y = np.concatenate([numbers_of(label) for label in classes])[data.y]
    alphabet = np.array(list(ALPHABET))
    x = data.x.astype(np.uint8)
    return replace(data, x=x, y=y.astype(np.int32), classes=alphabet, task="multiclass")


def _write(data: FederatedData, rows: np.ndarray, folder: Path) -> None:
    owner = np.searchsorted(data.offsets, rows, side="right") - 1
    labels = data.y if data.classes is None else data.classes[data.y]
    found = {
        str(data.ids[client]): {
            "x": data.x[rows[owner == client]].tolist(),
            "y": labels[rows[owner == client]].tolist(),
        }
        for client in np.unique(owner).tolist()
    }
    folder.mkdir(parents=True, exist_ok=True)
    leaf = {
        "users": list(found),
        "num_samples": [len(pair["y"]) for pair in found.values()],
        "user_data": found,
    }
    (folder / "data.json").write_text(json.dumps(leaf), encoding="utf-8")
