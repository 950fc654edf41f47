"""Evaluation: every client on every split, as one flat pass over blocks of rows.

A block holds up to BLOCK rows of one client's split. The device sums losses and hits inside blocks;
the host adds the blocks of each client in float64, in a fixed order.
"""

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int32

from fairfl.clients import Rows, Split
from fairfl.models.model import Model, Params, penalties, stack, width
from fairfl.simulation.compiler import compiled

BLOCK = 16
"""Rows of a block: small enough that a client's last one wastes little."""

TILE = 64
"""Blocks that the device evaluates at a time, so that memory does not grow with the data."""


class Blocks(NamedTuple):
    """Rows in blocks, padded with `filled` telling how many of each are real."""

    rows: Int32[np.ndarray, "blocks block"]
    filled: Int32[np.ndarray, " blocks"]
    owner: Int[np.ndarray, " blocks"]
    size: Int[np.ndarray, " owners"]


class Evaluation(NamedTuple):
    """Every client on one split; NaN where a client has no rows in it.

    accuracy is in percent, and NaN for a regression. loss is F_k over the split's rows.
    """

    accuracy: Float[np.ndarray, "clients models"]
    loss: Float[np.ndarray, "clients models"]
    size: Int[np.ndarray, " clients"]


Evaluations = tuple[Evaluation, Evaluation, Evaluation]
"""On the training, validation and test rows."""


def blocks_of(split: Split) -> Blocks:
    """The rows of all three splits, owner (split, client) after owner."""
    parts = [_blocks(rows) for rows in (split.train, split.validation, split.test)]
    clients = len(split.train.sizes)
    return Blocks(
        rows=np.concatenate([part.rows for part in parts]),
        filled=np.concatenate([part.filled for part in parts]),
        owner=np.concatenate([part.owner + s * clients for s, part in enumerate(parts)]),
        size=np.concatenate([part.size for part in parts]),
    )


def _blocks(rows: Rows) -> Blocks:
    sizes = rows.sizes
    per_client = -(-sizes // BLOCK)
    owner = np.repeat(np.arange(len(sizes)), per_client)
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(per_client) - per_client, per_client)
    start = rows.offsets[:-1][owner] + nth * BLOCK
    count = np.minimum(BLOCK, sizes[owner] - nth * BLOCK)
    places = start[:, None] + np.minimum(np.arange(BLOCK), count[:, None] - 1)
    index = rows.places[places] if len(owner) else np.zeros((0, BLOCK))
    return Blocks(index.astype(np.int32), count.astype(np.int32), owner, sizes)


def evaluate(model: Model, w: Params, x: Array, y: Array, blocks: Blocks) -> Evaluations:
    """Train, validation and test accuracy and loss of every client, for stacked models."""
    padding = -len(blocks.filled) % TILE
    rows = np.pad(blocks.rows, ((0, padding), (0, 0)))
    count = np.pad(blocks.filled, (0, padding))
    program = _program(model, width(w))
    loss, hits, penalty = map(np.asarray, program(w, x, y, rows, count))
    real = slice(len(blocks.filled))
    return gathered(model, blocks, loss[real], hits[real], penalty)


def gathered(
    model: Model,
    blocks: Blocks,
    loss: Float[np.ndarray, "blocks models"],
    hits: Float[np.ndarray, "blocks models"],
    penalty: Float[np.ndarray, "... models"],
) -> Evaluations:
    """Accuracy and loss of every client and split, from the sums over blocks."""
    total = _per_owner(loss, blocks)
    percent = 100 * _per_owner(hits, blocks)
    size = np.where(blocks.size > 0, blocks.size, np.nan)[:, None]
    F = (total / size if model.reduction == "mean" else np.where(size > 0, total, np.nan)) + penalty
    accuracy = percent / size if model.task != "regression" else np.full_like(percent, np.nan)
    per_split = zip(*(np.split(a, 3) for a in (accuracy, F, blocks.size)), strict=True)
    train, validation, test = (Evaluation(*pair) for pair in per_split)
    return train, validation, test


def _per_owner(blocks_sum: np.ndarray, blocks: Blocks) -> Float[np.ndarray, "owners models"]:
    """Blocks are sorted by owner: a difference of running sums would round, reduceat does not."""
    total = np.zeros((len(blocks.size), blocks_sum.shape[1]))
    owners, first = np.unique(blocks.owner, return_index=True)
    if len(owners):
        total[owners] = np.add.reduceat(blocks_sum.astype(np.float64), first, axis=0)
    return total


@lru_cache(maxsize=64)
def _program(model: Model, models: int):
    @partial(compiled, model)
    def run(w: Params, x: Array, y: Array, rows: Array, count: Array):
        tiles = rows.reshape(-1, TILE, BLOCK), count.reshape(-1, TILE)
        loss, hits = jax.lax.map(lambda part: tile(model, w, x, y, *part), tiles)
        return loss.reshape(-1, models), hits.reshape(-1, models), penalties(model, w)

    return run


def tile(
    model: Model, w: Params, x: Array, y: Array, rows: Array, count: Array
) -> tuple[Float[Array, "blocks models"], Float[Array, "blocks models"]]:
    """The summed losses and the hits of blocks of rows."""
    stacked = stack(model, width(w))
    live = jnp.arange(rows.shape[1]) < count[:, None]
    flat = rows.reshape(-1)
    xs, ys = x.at[flat].get(mode="promise_in_bounds"), y[flat]
    losses = stacked.losses(w, xs, ys)
    shape = (*rows.shape, losses.shape[-1])
    loss = jnp.where(live[:, :, None], losses.reshape(shape), 0).sum(axis=1)
    if model.task == "regression":
        return loss, jnp.zeros_like(loss)
    correct = stacked.correct(w, xs, ys).reshape(shape)
    return loss, (live[:, :, None] & correct).sum(axis=1).astype(loss.dtype)
