"""Evaluation with a model per client: one adapted on its support rows, or one that it keeps.

Clients one after another, so that no more than one such model exists at a time beside those kept.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int32

from fairfl.algorithms.work import Adaptation, Hyper, Personal, Work
from fairfl.clients import Rows as Places
from fairfl.clients import Split
from fairfl.models.model import Model, Params, penalties, width
from fairfl.simulation.evaluation import Blocks, Evaluations, blocks_of, gathered, tile
from fairfl.simulation.local import Rows, support_batches, support_keys
from fairfl.simulation.plan import support_batches as planned_batches


class Visits(NamedTuple):
    """Who is evaluated, on which blocks of rows, and the mini-batches of support rows before.

    Client ids[i] has the blocks order[starts[i]] to order[starts[i + 1]]. Without adaptation the
    mini-batches are none.
    """

    blocks: Blocks
    order: Int[np.ndarray, " blocks"]
    starts: Int32[np.ndarray, " bounds"]
    ids: Int32[np.ndarray, " visited"]
    support: Int32[np.ndarray, "visited inner batch"]
    supported: Int32[np.ndarray, "visited inner"]


def visits_of(split: Split, adaptation: Adaptation | None, seed: int) -> Visits:
    """Where clients adapt, their training rows are left out: the history has their loss at w_k.

    Where they keep a model, those that never train have none and are left out.
    """
    if adaptation:
        blocks = blocks_of(_without_train(split))
    else:
        blocks, learns = blocks_of(split), np.tile(split.train.sizes > 0, 3)
        blocks = blocks._replace(size=np.where(learns, blocks.size, 0))
    client = blocks.owner % len(split.train.sizes)
    order = np.argsort(client, kind="stable")
    ids, starts = np.unique(client[order], return_index=True)
    support, supported = _support(split.support, ids, adaptation, seed)
    return Visits(
        blocks=blocks,
        order=order,
        starts=np.append(starts, len(order)).astype(np.int32),
        ids=ids.astype(np.int32),
        support=support.astype(np.int32),
        supported=supported.astype(np.int32),
    )


def _without_train(split: Split) -> Split:
    nothing = Places(split.train.places[:0], np.zeros_like(split.train.offsets))
    return split._replace(train=nothing)


def _support(
    rows: Places, ids: Int[np.ndarray, " visited"], adaptation: Adaptation | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The same mini-batches at every evaluation."""
    inner, wide = (adaptation.evaluated, adaptation.batch_size) if adaptation else (0, 0)
    support, supported = np.zeros((len(ids), inner, wide)), np.zeros((len(ids), inner))
    if inner:
        for i, id in enumerate(ids.tolist()):
            support[i], supported[i] = planned_batches(rows.of(id), inner, wide, seed, 0, id)
    return support, supported


def evaluate_own(
    model: Model,
    work: Work,
    hyper: Hyper,
    w: Params,
    personal: Personal,
    data: Rows,
    visits: Visits,
) -> Evaluations:
    """Accuracy and loss of every client with its own model."""
    blocks, nobody = visits.blocks, np.zeros((0, width(w)))
    rows, count = blocks.rows[visits.order], blocks.filled[visits.order]
    loss, hits, penalty = (nobody, nobody, nobody)
    if len(visits.ids):
        found = _program(model, work)(hyper, w, personal, data, rows, count, *visits[2:])
        loss, hits, penalty = map(np.asarray, found)
    back = np.argsort(visits.order)
    own = np.zeros((len(blocks.size) // 3, width(w)))
    own[visits.ids] = penalty
    return gathered(model, blocks, loss[back], hits[back], np.tile(own, (3, 1)))


@lru_cache(maxsize=64)
def _program(model: Model, work: Work) -> Callable[..., tuple[Array, Array, Array]]:
    @jax.jit
    def run(
        hyper: Hyper,
        w: Params,
        personal: Personal,
        data: Rows,
        rows: Array,
        count: Array,
        starts: Array,
        ids: Array,
        support: Array,
        supported: Array,
    ) -> tuple[Array, Array, Array]:
        def client(i: Any, found: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            batches = (support[i], supported[i])
            own = _own(model, work, hyper, w, personal, data, ids[i], *batches)
            loss, hits, penalty = found
            some = jax.lax.fori_loop(
                starts[i], starts[i + 1], lambda b, some: block(own, b, some), (loss, hits)
            )
            return (*some, penalty.at[i].set(penalties(model, own)))

        def block(own: Params, b: Any, found: tuple[Array, Array]) -> tuple[Array, Array]:
            one = tile(model, own, data.x, data.y, rows[b][None], count[b][None])
            return tuple(all.at[b].set(new[0]) for all, new in zip(found, one, strict=True))  # type: ignore[return-value]

        def nothing(length: int) -> Array:
            return jnp.zeros((length, width(w)), jnp.result_type(float))

        empty = nothing(len(count)), nothing(len(count)), nothing(len(ids))
        return jax.lax.fori_loop(0, len(ids), client, empty)

    return run


def _own(
    model: Model,
    work: Work,
    hyper: Hyper,
    w: Params,
    personal: Personal,
    data: Rows,
    id: Int[Array, ""],
    support: Int[Array, "inner batch"],
    supported: Int[Array, " inner"],
) -> Params:
    """The model that serves one client."""
    if work.adaptation is None:
        return jax.tree.map(lambda leaf: leaf[id], personal)
    keys = support_keys(len(support), data.key, id[None])[0] if model.stochastic else None
    batches = support_batches(data, support, supported, keys)
    return work.adaptation.adapt(hyper, model, w, batches)
