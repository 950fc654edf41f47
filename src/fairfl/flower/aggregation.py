"""Sums over the replies of a cohort, a block of numbers at a time: w is never copied per client.

D_k = w - w_k exists for one block of one client only, in the cache. Clients are summed in their
order in the cohort, so that the same replies give the same bytes in whatever order they came.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from flwr.app import Array, ArrayRecord
from jaxtyping import Float, Shaped

from fairfl.flower.arrays import Leaves, Written

BLOCK = 1 << 15
"""Numbers of a block: a few of them fit into a core's own cache."""

BUFFERS = ("running_mean", "running_var", "num_batches_tracked")
"""How PyTorch's names of what is tracked and not trained end."""

Coefficients = Float[np.ndarray, " cohort"]


def trained(names: Sequence[str], w: Leaves) -> list[int]:
    """The places of the arrays that rules see: of floats that are no running statistics.

    >>> import numpy as np
    >>> from fairfl.flower.aggregation import trained
    >>> one, counter = np.ones(1, np.float32), np.ones(1, np.int64)
    >>> trained(["w", "bn.running_mean", "steps"], [one, one, counter])
    [0]
    """
    return [i for i in real(w) if not names[i].endswith(BUFFERS)]


def real(w: Leaves) -> list[int]:
    """The places of the arrays that are averaged at all; what is no float stays as it is."""
    return [i for i, leaf in enumerate(w) if leaf.dtype.kind == "f"]


def square(w: Leaves, w_k: Leaves) -> float:
    """|w - w_k|^2; not finite where a number of w_k is not.

    >>> import numpy as np
    >>> from fairfl.flower.aggregation import square
    >>> square([np.zeros(2, np.float32)], [np.array([3, 4], np.float32)])
    25.0
    """
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for leaf, own in zip(w, w_k, strict=True):
            now, other = leaf.reshape(-1), own.reshape(-1)
            change = np.empty(min(BLOCK, leaf.size), _wide(leaf))
            for block in _blocks(leaf.size):
                part = change[: now[block].size]
                np.subtract(now[block], other[block], out=part, casting="unsafe")
                total += _squares(part)
    return total


def _squares(change: np.ndarray) -> float:
    """In double precision only where single overflows."""
    found = float(np.dot(change, change))
    if not np.isfinite(found):
        longer = change.astype(np.float64)
        found = float(np.dot(longer, longer))
    return found


def gram(
    w: Leaves, replies: Sequence[Leaves | None], past: Float[np.ndarray, "past numbers"] | None
) -> Float[np.ndarray, "updates updates"]:
    """<D_i, D_j> of this round's updates and of those that a rule remembers; an absent one is 0.

    >>> import numpy as np
    >>> from fairfl.flower.aggregation import gram
    >>> gram([np.zeros(2, np.float32)], [[np.array([3, 4], np.float32)], None], None).tolist()
    [[25.0, 0.0], [0.0, 0.0]]
    """
    older = 0 if past is None else len(past)
    total = np.zeros((len(replies) + older,) * 2)
    for start, now in _rows(w, replies):
        before = [] if past is None else [past[:, start : start + now.shape[1]]]
        rows = np.concatenate([now, *before])
        total += rows @ rows.T
    return total


def updates(w: Leaves, replies: Sequence[Leaves | None]) -> Float[np.ndarray, "cohort numbers"]:
    """Every D_k as one row, for a rule that remembers them."""
    size = sum(leaf.size for leaf in w)
    found = np.zeros((len(replies), size), np.float32)
    for start, rows in _rows(w, replies):
        found[:, start : start + rows.shape[1]] = rows
    return found


def direction(
    w: Leaves,
    replies: Sequence[Leaves | None],
    a: Coefficients,
    past: Float[np.ndarray, "past numbers"] | None = None,
    b: Float[np.ndarray, " past"] | None = None,
) -> list[Shaped[np.ndarray, "..."]]:
    """sum_k a_k D_k, and what a rule gives the remembered updates.

    >>> import numpy as np
    >>> from fairfl.flower.aggregation import direction
    >>> w, replies = [np.ones(2, np.float32)], [[np.zeros(2, np.float32)], None]
    >>> direction(w, replies, np.array([0.5, 0.0]))[0].tolist()
    [0.5, 0.5]
    """
    weights, here = _present(replies, a)
    found, begin = [], 0
    for place, leaf in enumerate(w):
        total = np.zeros(leaf.size, _wide(leaf))
        for block in _blocks(leaf.size):
            _add(leaf, [reply[place] for reply in here], weights, block, total[block])
        if past is not None and b is not None:
            total += (b @ past[:, begin : begin + leaf.size]).astype(total.dtype)
        begin += leaf.size
        found.append(total.reshape(leaf.shape))
    return found


def descended(w: Leaves, replies: Sequence[Leaves | None], a: Coefficients) -> dict[int, Array]:
    """w - sum_k a_k D_k, written where a message takes it from; by the arrays' places."""
    weights, here = _present(replies, a)
    found = {}
    for place, leaf in enumerate(w):
        written = Written(leaf)
        _descend(leaf, [reply[place] for reply in here], weights, written.flat)
        found[place] = written.array()
    return found


def with_arrays(record: ArrayRecord, changed: dict[int, Array]) -> ArrayRecord:
    """The record with some of its arrays replaced, by their places."""
    return ArrayRecord(
        {name: changed.get(place, array) for place, (name, array) in enumerate(record.items())}
    )


def _descend(leaf: np.ndarray, own: Leaves, weights: list[float], out: np.ndarray) -> None:
    """(1 - sum_k a_k) w + sum_k a_k w_k, which is the same with one operation less per number."""
    flat, others, rest = leaf.reshape(-1), [one.reshape(-1) for one in own], 1 - sum(weights)
    for block in _blocks(leaf.size):
        total = np.multiply(flat[block], rest, dtype=_wide(leaf))
        part = np.empty_like(total)
        for one, a in zip(others, weights, strict=True):
            np.multiply(one[block], a, out=part, casting="unsafe")
            total += part
        out[block] = total


def _add(
    leaf: np.ndarray, own: Leaves, weights: list[float], block: slice, total: np.ndarray
) -> None:
    """One block of sum_k a_k (w - w_k)."""
    now, change = leaf.reshape(-1)[block], np.empty_like(total)
    for one, a in zip(own, weights, strict=True):
        np.subtract(now, one.reshape(-1)[block], out=change, casting="unsafe")
        change *= a
        total += change


def _blocks(size: int, width: int = BLOCK) -> list[slice]:
    return [slice(start, start + width) for start in range(0, size, width)]


def _present(replies: Sequence[Leaves | None], a: Coefficients) -> tuple[list[float], list[Leaves]]:
    """What counts and who sent it: a client of coefficient 0 adds nothing."""
    pairs = [(float(x), reply) for x, reply in zip(a, replies, strict=True) if reply and x != 0]
    return [x for x, _ in pairs], [reply for _, reply in pairs]


def _rows(
    w: Leaves, replies: Sequence[Leaves | None]
) -> Iterator[tuple[int, Float[np.ndarray, "cohort block"]]]:
    """Every client's D_k, a block at a time, and where the block begins in the whole."""
    begin = 0
    for place, leaf in enumerate(w):
        flat = leaf.reshape(-1)
        for block in _blocks(leaf.size, BLOCK // 8):
            rows = np.zeros((len(replies), flat[block].size), _wide(leaf))
            for k, reply in enumerate(replies):
                if reply is not None:
                    own = reply[place].reshape(-1)[block]
                    np.subtract(flat[block], own, out=rows[k], casting="unsafe")
            yield begin + block.start, rows
        begin += leaf.size


def _wide(leaf: np.ndarray) -> type[np.floating]:
    """Half precision is summed in single, double stays double."""
    return np.float64 if leaf.dtype.itemsize > 4 else np.float32
