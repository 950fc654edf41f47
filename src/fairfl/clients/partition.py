"""Partitioners: the rows of one data set dealt to clients, each row to one and each client at least
one.

A partitioner gives every row's owner, `partitioned` the data. All are functions of their seed, and
all end: what an unlucky draw leaves without rows is topped up from the largest client instead of
being drawn again, so a concentration near 0 and more clients than rows of a class are no trouble.
"""

import heapq
import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from fairfl.clients.federated import (
    FederatedData,
    Fractions,
    Task,
    check_fractions,
    from_arrays,
)
from fairfl.clients.randomness import Stream, generator

Number = int | float
Owners = Int[np.ndarray, " rows"]

SMALLEST_ALPHA = 1e-300
"""Below this log(U) / alpha overflows; each class has long been with one client by then."""


def dirichlet(
    labels: ArrayLike, clients: Number, alpha: Number, seed: int = 0, least: int = 1
) -> Owners:
    """Label skew: of each class client k gets a share s_k, where s ~ Dirichlet(alpha, ..., alpha).

    alpha = 0 gives every class to one client, a large alpha gives every client the same mixture.

    >>> import numpy as np
    >>> from fairfl.clients.partition import dirichlet
    >>> owners = dirichlet(np.repeat([0, 1], 50), clients=4, alpha=0.1)
    >>> len(set(owners.tolist())), len(owners)
    (4, 100)
    """
    labels = _labels(labels)
    clients = _check(len(labels), clients, least)
    if not isinstance(alpha, Real) or not 0 <= float(alpha) < math.inf:
        raise ValueError(
            f"alpha={alpha!r} must be a finite number of at least 0; for clients that all look "
            "alike use iid"
        )
    draw = generator(seed, Stream.PARTITION)
    owners = np.empty(len(labels), np.int64)
    for name in np.unique(labels):
        rows = draw.permutation(np.flatnonzero(labels == name))
        owners[rows] = _dealt(len(rows), _shares(draw, clients, float(alpha)))
    return _topped_up(owners, clients, least)


def iid(labels: ArrayLike, clients: Number, seed: int = 0) -> Owners:
    """Rows dealt at random, as many to each client as can be.

    >>> import numpy as np
    >>> from fairfl.clients.partition import iid
    >>> np.bincount(iid(np.zeros(10), clients=4)).tolist()
    [2, 3, 3, 2]
    """
    rows = len(_labels(labels))
    clients = _check(rows, clients, 1)
    return _shuffled(_dealt(rows, np.full(clients, 1 / clients)), seed)


def power_law(
    labels: ArrayLike, clients: Number, exponent: Number = 2.0, seed: int = 0, least: int = 1
) -> Owners:
    """Rows dealt at random to clients of very different sizes: P(size > n) ~ n^-exponent.

    The sizes are the law's quantiles, (1 - p)^(-1 / exponent), in a seeded order.

    >>> import numpy as np
    >>> from fairfl.clients.partition import power_law
    >>> sorted(np.bincount(power_law(np.zeros(100), clients=5, exponent=1)).tolist())
    [6, 8, 11, 19, 56]
    """
    rows = len(_labels(labels))
    clients = _check(rows, clients, least)
    if not isinstance(exponent, Real) or not 0 < float(exponent) < math.inf:
        raise ValueError(
            f"exponent={exponent!r} must be a number above 0; 1 is heavy-tailed, 2 is milder"
        )
    draw = generator(seed, Stream.PARTITION)
    p = (np.arange(clients) + 0.5) / clients
    # In logs and from the largest down, because a small exponent has sizes beyond any float.
    logs = -np.log1p(-p) / float(exponent)
    shares = np.exp(logs - logs.max())
    owners = draw.permutation(clients)[_dealt(rows, shares / shares.sum())]
    return _topped_up(draw.permutation(owners), clients, least)


def shards(labels: ArrayLike, clients: Number, per_client: int = 2, seed: int = 0) -> Owners:
    """Rows sorted by label, cut into equal shards, and so many shards dealt to each client.

    With two shards most clients know two classes (McMahan et al., 2017).

    >>> import numpy as np
    >>> from fairfl.clients.partition import shards
    >>> y = np.arange(40) // 10
    >>> owners = shards(y, clients=4)
    >>> [len(set(y[owners == k].tolist())) for k in range(4)]
    [2, 2, 2, 2]
    """
    labels = _labels(labels)
    if not isinstance(per_client, Integral) or per_client < 1:
        raise ValueError(f"per_client={per_client!r} must be a whole number of at least 1")
    clients = _check(len(labels), clients, int(per_client))
    count = int(clients * per_client)
    draw = generator(seed, Stream.PARTITION)
    owner_of_shard = draw.permutation(np.repeat(np.arange(clients), per_client))
    owners = np.empty(len(labels), np.int64)
    order = np.argsort(labels, kind="stable")
    owners[order] = owner_of_shard[_dealt(len(labels), np.full(count, 1 / count))]
    return owners


def by_column(values: ArrayLike) -> tuple[Owners, tuple[Hashable, ...]]:
    """One client per different value, in the values' order, and the values as names.

    >>> from fairfl.clients.partition import by_column
    >>> owners, ids = by_column(["north", "south", "north"])
    >>> owners.tolist(), ids
    ([0, 1, 0], ('north', 'south'))
    """
    names, owners = np.unique(_labels(values), return_inverse=True)
    return owners, tuple(names.tolist())


def partitioned(
    x: ArrayLike,
    y: ArrayLike,
    owners: ArrayLike,
    ids: Sequence[Hashable] | None = None,
    split: Fractions | None = (0.8, 0.1, 0.1),
    task: Task | None = None,
    name: str = "arrays",
) -> FederatedData:
    """The rows as data of the clients that own them; `ids` names the clients, else 0, 1, 2 ...

    >>> import numpy as np, fairfl
    >>> x, y = np.eye(6), [0, 1, 0, 1, 0, 1]
    >>> owners = fairfl.partition.dirichlet(y, clients=2, alpha=0.5)
    >>> data = fairfl.partition.partitioned(x, y, owners)
    >>> data.clients, int(data.sizes.sum())
    (2, 6)
    """
    check_fractions(split)
    whole = from_arrays({"all": (x, y)}, split=None, task=task, name=name)
    owners = np.asarray(owners)
    if owners.shape != whole.y.shape or owners.dtype.kind not in "iu" or owners.min() < 0:
        raise ValueError(
            f"owners of shape {owners.shape} and type {owners.dtype} do not say whose each of the "
            f"{len(whole.y):,} rows is; give one client number per row, counted from 0"
        )
    names = range(int(owners.max()) + 1) if ids is None else ids
    return dealt(replace(whole, fractions=split), owners, tuple(names))


def dealt(data: FederatedData, owners: Owners, ids: tuple[Hashable, ...]) -> FederatedData:
    """The same rows, and their roles if they have any, with other owners.

    >>> import numpy as np, fairfl
    >>> from fairfl.clients.partition import dealt
    >>> whole = fairfl.from_arrays({"all": (np.eye(3), [0, 1, 1])})
    >>> dealt(whole, np.array([1, 0, 1]), ("a", "b")).y.tolist()
    [1, 0, 1]
    """
    sizes = np.bincount(owners, minlength=len(ids))
    if len(sizes) > len(ids) or not sizes.all():
        raise ValueError(
            f"there are {len(ids):,} names for the clients 0 to {len(sizes) - 1:,}, of which "
            f"{np.count_nonzero(sizes):,} have rows; give one name per client, and rows to each"
        )
    order = np.argsort(owners, kind="stable")
    return replace(
        data,
        x=data.x[order],
        y=data.y[order],
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        ids=ids,
        roles=None if data.roles is None else data.roles[order],
    )


# ---- dealing ----


def _shares(draw: np.random.Generator, clients: int, alpha: float) -> Float[np.ndarray, " clients"]:
    """One draw from Dirichlet(alpha, ..., alpha).

    Gamma(alpha) is Gamma(alpha + 1) U^(1 / alpha), here in logs: for a small alpha the numbers
    themselves are all zero, and zeros have no shares.
    """
    alpha = max(alpha, SMALLEST_ALPHA)
    uniform = 1 - draw.random(clients)
    logs = np.log(draw.standard_gamma(alpha + 1, clients)) + np.log(uniform) / alpha
    shares = np.exp(logs - logs.max())
    return shares / shares.sum()


def _dealt(rows: int, shares: Float[np.ndarray, " parts"]) -> Owners:
    """Owners of consecutive rows; rounding the running sum keeps the total exact."""
    ends = np.rint(np.cumsum(shares) * rows).astype(np.int64)
    ends[-1] = rows
    return np.repeat(np.arange(len(shares)), np.diff(ends, prepend=0))


def _shuffled(owners: Owners, seed: int) -> Owners:
    return generator(seed, Stream.PARTITION).permutation(owners)


def _topped_up(owners: Owners, clients: int, least: int) -> Owners:
    """Clients with fewer rows than `least` get the last rows of whoever is the largest."""
    sizes = np.bincount(owners, minlength=clients)
    short = np.flatnonzero(sizes < least)
    if not len(short):
        return owners
    order = np.argsort(owners, kind="stable")
    ends = np.cumsum(sizes)
    largest = [(-int(size), client) for client, size in enumerate(sizes) if size > least]
    heapq.heapify(largest)
    for client in short.tolist():
        for _ in range(least - int(sizes[client])):
            size, giver = heapq.heappop(largest)
            ends[giver] -= 1
            owners[order[ends[giver]]] = client
            if -size - 1 > least:
                heapq.heappush(largest, (size + 1, giver))
    return owners


# ---- the border ----


def _labels(values: ArrayLike) -> np.ndarray:
    labels = np.asarray(values)
    if labels.ndim != 1 or not len(labels):
        raise ValueError(
            f"labels of shape {labels.shape} cannot be dealt; give one label per row, shape (rows,)"
        )
    return labels


def _check(rows: int, clients: Number, least: int) -> int:
    for name, value in (("clients", clients), ("least", least)):
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name}={value!r} must be a whole number of at least 1")
    if clients * least > rows:
        raise ValueError(
            f"{clients:,} clients with at least {least:,} rows each need {clients * least:,} rows "
            f"but there are {rows:,}; ask for fewer clients"
        )
    return int(clients)
