"""FederatedData: the rows of all clients back to back, with offsets; splits as row indices."""

import hashlib
import itertools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float, Int, Int8, Shaped
from numpy.typing import ArrayLike

from fairfl.clients.preprocessing import Preprocessing
from fairfl.clients.randomness import Stream, permutations
from fairfl.clients.task import Task, check_task

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
Fractions = tuple[float, float, float]
Pairs = Mapping[Hashable, tuple[ArrayLike, ArrayLike]]


class Rows(NamedTuple):
    """The rows of one split, client by client: client k owns places[offsets[k]:offsets[k + 1]]."""

    places: Int[np.ndarray, " rows"]
    offsets: Int[np.ndarray, " offsets"]

    @property
    def sizes(self) -> Int[np.ndarray, " clients"]:
        return np.diff(self.offsets)

    def of(self, client: int) -> Int[np.ndarray, " rows_of_client"]:
        return self.places[self.offsets[client] : self.offsets[client + 1]]


class Split(NamedTuple):
    """Which rows train, validate and test, and which a client adapts on before that (MAML).

    For a client that adapts, `train` holds the query rows of its training task and `test` those of
    a held-out one. A client with support and test rows but no train rows is for evaluation only.
    """

    train: Rows
    validation: Rows
    test: Rows
    support: Rows


def halved(split: Split) -> Split:
    """Every second training row of a client becomes a support row; a client of one row has none.

    >>> import numpy as np, fairfl
    >>> from fairfl.clients.federated import halved
    >>> data = fairfl.from_arrays({"a": (np.zeros((5, 2)), [0, 1, 1, 0, 1])}, split=None)
    >>> found = halved(data.split(seed=0))
    >>> len(found.train.of(0)), len(found.support.of(0))
    (3, 2)
    """
    places, offsets = split.train
    owner = np.repeat(np.arange(len(offsets) - 1), split.train.sizes)
    second = (np.arange(len(places)) - offsets[owner]) % 2 == 1
    clients = len(offsets) - 1
    return split._replace(
        train=_rows(places, ~second, owner, clients), support=_rows(places, second, owner, clients)
    )


@dataclass(frozen=True, eq=False)
class FederatedData:
    """The rows of all clients, back to back: client k owns rows offsets[k] to offsets[k + 1].

    `roles` fixes the split (0 train, 1 validation, 2 test, 3 support); where it is None every seed
    draws a split of its own with the given `fractions`, and no row is for support. With both, every
    seed draws from the rows that `roles` has for training alone (see `with_validation`). `classes`
    maps class numbers back to the user's labels and is None for regression. Where x holds indices
    of tokens, `embeddings` may fix what each token means: row i is the vector of token i. Rows of a
    table know by `preprocessing` how its columns were read.
    """

    x: Shaped[np.ndarray, "rows ..."]
    y: Shaped[np.ndarray, " rows"]
    offsets: Int[np.ndarray, " offsets"]
    ids: tuple[Hashable, ...]
    task: Task
    classes: Shaped[np.ndarray, " classes"] | None
    roles: Int8[np.ndarray, " rows"] | None = None
    fractions: Fractions | None = None
    name: str = "arrays"
    embeddings: Float[np.ndarray, "tokens dimensions"] | None = None
    preprocessing: Preprocessing | None = None

    @property
    def clients(self) -> int:
        return len(self.ids)

    @property
    def sizes(self) -> Int[np.ndarray, " clients"]:
        return np.diff(self.offsets)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that training sees; two data sets with the same one are equal."""
        digest = hashlib.blake2b(digest_size=16)
        for array in (self.x, self.y, self.offsets, self.roles, self.embeddings):
            if array is not None:
                digest.update(repr((array.dtype.str, array.shape)).encode())
                digest.update(np.ascontiguousarray(array).data)
        classes = None if self.classes is None else self.classes.tolist()
        digest.update(repr((self.ids, self.task, classes, self.fractions)).encode())
        return digest.hexdigest()

    def split(self, seed: int) -> Split:
        """The split of a seed, as row indices over the one copy of the rows.

        >>> import numpy as np, fairfl
        >>> data = fairfl.from_arrays({"a": (np.zeros((10, 2)), np.arange(10) % 2)})
        >>> [rows.sizes.tolist() for rows in data.split(seed=0)]
        [[8], [1], [1], [0]]
        """
        order, roles = self._drawn(seed) if self.fractions or self.roles is None else self._fixed()
        owner = np.repeat(np.arange(self.clients), self.sizes)
        return Split(*(_rows(order, roles == role, owner, self.clients) for role in range(4)))

    def _fixed(self) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(len(self.y), dtype=np.int32), np.asarray(self.roles)

    def _drawn(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        fractions = self.fractions or (1.0, 0.0, 0.0)
        order = np.arange(len(self.y), dtype=np.int32)
        roles = np.zeros(len(self.y), np.int8) if self.roles is None else self.roles.copy()
        for client, (start, stop) in enumerate(itertools.pairwise(self.offsets.tolist())):
            free = start + np.flatnonzero(roles[start:stop] == 0)
            order[free] = free[permutations(len(free), 1, seed, Stream.SPLIT, client=client)[0]]
            roles[free] = np.repeat(np.arange(3, dtype=np.int8), split_sizes(len(free), fractions))
        return order, roles

    def renamed(self, name: str) -> "FederatedData":
        return replace(self, name=name)


def split_sizes(rows: int, fractions: Fractions) -> tuple[int, int, int]:
    """How many of a client's rows train, validate and test: the reference's rounding, at least one
    to train, and none where too few are left.

    >>> from fairfl.clients.federated import split_sizes
    >>> split_sizes(1164, (0.8, 0.1, 0.1)), split_sizes(1, (0.8, 0.1, 0.1))
    ((931, 116, 117), (1, 0, 0))
    """
    train = min(rows, max(1, int(fractions[0] * rows + 1e-9)))
    held_out = fractions[1] + fractions[2]
    share = fractions[1] / held_out if held_out else 0.0
    validation = int(share * (rows - train) + 1e-9)
    if not held_out:
        return rows, 0, 0
    return train, validation, rows - train - validation


def _rows(
    order: np.ndarray, chosen: Bool[np.ndarray, " rows"], owner: np.ndarray, clients: int
) -> Rows:
    counts = np.bincount(owner[chosen], minlength=clients)
    return Rows(order[chosen], np.concatenate([[0], np.cumsum(counts)]))


def from_arrays(
    train: Pairs,
    validation: Pairs | None = None,
    test: Pairs | None = None,
    split: Fractions | None = (0.8, 0.1, 0.1),
    task: Task | None = None,
    name: str = "arrays",
    support: Pairs | None = None,
) -> FederatedData:
    """Data from arrays, one pair (x, y) per client and split.

    `split` applies when only `train` is given, drawn anew for every seed; `split=None` keeps all
    rows for training. A client that has no rows in `train` is for evaluation only. `support` holds
    the rows on which a client adapts the model before its other rows are read (maml, q-maml).
    Whole-number, boolean and text labels are classes; other numbers make a regression.

    >>> import numpy as np, fairfl
    >>> data = fairfl.from_arrays({"a": (np.eye(3), [0, 1, 1]), "b": (np.ones((2, 3)), [1, 0])})
    >>> data.clients, data.sizes.tolist(), data.task
    (2, [3, 2], 'binary')
    """
    given = [train, validation or {}, test or {}, support or {}]
    check_fractions(split)
    ids = tuple(dict.fromkeys(id for pairs in given for id in pairs))
    if not train:
        raise ValueError("there are no clients: `train` is empty; give at least one client")
    check_task(task)
    _check_support(ids, given)
    blocks = [
        (role, _arrays(id, pairs[id]))
        for id in ids
        for role, pairs in enumerate(given)
        if id in pairs
    ]
    owners = [id for id in ids for pairs in given if id in pairs]
    # Labels first: what encoding them needs is gone before the large copy of x is made.
    y, classes, task = encoded(np.concatenate([pair[1] for _, pair in blocks]), task)
    x = _stacked(owners, [pair[0] for _, pair in blocks])
    lengths = [len(pair[1]) for _, pair in blocks]
    fixed = any(pairs is not None for pairs in (validation, test, support))
    roles = np.repeat(np.array([role for role, _ in blocks], np.int8), lengths) if fixed else None
    rows_of = dict.fromkeys(ids, 0)
    for id, length in zip(owners, lengths, strict=True):
        rows_of[id] += length
    return FederatedData(
        x=x,
        y=y,
        offsets=np.concatenate([[0], np.cumsum(list(rows_of.values()))]),
        ids=ids,
        task=task,
        classes=classes,
        roles=roles,
        fractions=None if fixed else split,
        name=name,
    )


def _check_support(ids: tuple[Hashable, ...], given: list[Pairs]) -> None:
    for id in ids:
        if not any(id in pairs for pairs in given[:3]):
            raise ValueError(
                f"client {id!r} has support rows only, so it would neither train nor be tested; "
                "give it rows in train or test, or leave it out"
            )


def check_fractions(split: Fractions | None) -> None:
    if split is None:
        return
    adds_up = len(split) == 3 and abs(sum(split) - 1) <= 1e-6
    if not adds_up or min(split) < 0 or split[0] == 0:
        raise ValueError(
            f"split={split} must be three fractions (train, validation, test) that add to 1, "
            "with some rows to train on; use for example (0.8, 0.1, 0.1)"
        )


def _arrays(id: Hashable, pair: tuple[ArrayLike, ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(pair[0]), np.asarray(pair[1])
    if x.ndim < 2:
        raise ValueError(
            f"client {id!r}: x has shape {x.shape}; give one row per example, (rows, features)"
        )
    if x.dtype.kind not in "fiub":
        raise ValueError(
            f"client {id!r}: x holds {x.dtype.name} values, which are not real numbers; "
            "turn them into numbers first, or load a table with fairfl.from_table"
        )
    if x.dtype.kind in "iu" and x.size and not -(2**31) <= x.min() <= x.max() < 2**31:
        raise ValueError(
            f"client {id!r}: x holds whole numbers from {x.min()} to {x.max()}, beyond 32 bits; "
            "give them as floats"
        )
    if len(x) == 0:
        raise ValueError(f"client {id!r} has no rows; leave it out or give it at least one")
    if y.ndim != 1 or len(y) != len(x):
        raise ValueError(
            f"client {id!r}: x has {len(x)} rows but y has shape {y.shape}; "
            "give one label per row, shape (rows,)"
        )
    return x, y


def _stacked(owners: list[Hashable], xs: list[np.ndarray]) -> np.ndarray:
    shape = xs[0].shape[1:]
    for id, x in zip(owners, xs, strict=True):
        if x.shape[1:] != shape:
            raise ValueError(
                f"client {id!r}: a row of x has shape {x.shape[1:]} but client {owners[0]!r} has "
                f"{shape}; all clients need the same features"
            )
    whole = all(np.issubdtype(x.dtype, np.integer) for x in xs)
    # `dtype=` spares a second copy of data that may be gigabytes.
    stacked = np.concatenate(xs, dtype=np.int32 if whole else np.float32, casting="same_kind")
    if not whole:
        _check_finite(owners, [len(x) for x in xs], stacked)
    return stacked


def _check_finite(owners: list[Hashable], lengths: list[int], x: np.ndarray) -> None:
    start = 0
    for id, length in zip(owners, lengths, strict=True):
        bad = ~np.isfinite(x[start : start + length])
        if bad.any():
            where = np.argwhere(bad)[0]
            raise ValueError(
                f"client {id!r}: x[{', '.join(map(str, where))}] is "
                f"{x[start + where[0]][tuple(where[1:])]}; "
                "fill in or drop missing and infinite values before training"
            )
        start += length


def encoded(labels: np.ndarray, task: Task | None) -> tuple[np.ndarray, np.ndarray | None, Task]:
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("a label is NaN or infinite; drop rows without a label")
    if task == "regression" or (task is None and _is_real(labels)):
        return labels.astype(np.float32), None, "regression"
    if labels.dtype.kind == "O" and any(label is None for label in labels):
        raise ValueError("a label is None; drop rows without a label")
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(
            f"every label is {classes.tolist()[0]!r}; "
            "a classifier needs at least two different labels"
        )
    if task == "binary" and len(classes) > 2:
        raise ValueError(
            f"task='binary' but there are {len(classes)} different labels; use task='multiclass'"
        )
    y = np.searchsorted(classes, labels).astype(np.int32)
    return y, classes, task or ("binary" if len(classes) == 2 else "multiclass")


def _is_real(labels: np.ndarray) -> bool:
    return labels.dtype.kind == "f" and bool((labels != np.round(labels)).any())


def labels_of(data: FederatedData, y: Int[np.ndarray, " rows"]) -> np.ndarray:
    """Class numbers back to the user's own labels."""
    if data.classes is None:
        raise ValueError("a regression has no classes")
    return data.classes[y]


def as_mapping(data: FederatedData) -> dict[Any, tuple[np.ndarray, np.ndarray]]:
    """Each client's rows as (x, y), in the order they were given."""
    bounds = zip(data.ids, data.offsets, data.offsets[1:], strict=False)
    return {id: (data.x[a:b], data.y[a:b]) for id, a, b in bounds}
