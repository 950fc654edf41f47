"""Running work for a cohort: the flat stream of steps, compiled.

F_k(w^t) is measured inside the stream: in the first epoch w^t and the local model see the same
gathered batch. P lanes run P clients side by side; with one lane no lane axis exists.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.lax import optimization_barrier as materialise
from jaxtyping import Array, Bool, Float, Int, Shaped

from fairfl.algorithms.work import Batch, Hyper, Local, Personal, Work
from fairfl.models.model import Model, Params, penalties, stack, width


class DeviceChunk(NamedTuple):
    """A Chunk on the device; see plan.Chunk."""

    rounds: Array
    first_round: Array
    rows: Array
    filled: Array
    start: Array
    length: Array
    slot: Array
    first: Array
    last: Array
    measured: Array
    ids: Array
    sizes: Array
    weights: Array


class Replies(NamedTuple):
    """What the cohort sends back: F_k(w^t), D_k and v_k', one row per place in the cohort."""

    losses: Float[Array, "cohort models"]
    updates: Params
    personal: Personal


class Stream(NamedTuple):
    """The state of the stream: each lane's model and running loss, and the finished replies."""

    local: Local
    loss: Float[Array, "lanes models"]
    replies: Replies


class Client(NamedTuple):
    """The static parts of local work."""

    model: Model
    work: Work
    lanes: int


class Rows(NamedTuple):
    """All rows on the device, and the key of stochastic losses."""

    x: Shaped[Array, "rows ..."]
    y: Shaped[Array, " rows"]
    key: Any


def replies(
    client: Client,
    hyper: Hyper,
    w: Params,
    personal: Personal,
    data: Rows,
    chunk: DeviceChunk,
    round: Int[Array, ""],
) -> Replies:
    """F_k, D_k and v_k' of every client of the round's cohort."""
    cohort = chunk.ids.shape[1]
    ids, sizes = chunk.ids[round], chunk.sizes[round]

    def segment(g: Int[Array, ""], stream: Stream) -> Stream:
        slot, first, last = (part[round, g] for part in (chunk.slot, chunk.first, chunk.last))
        owner = jnp.minimum(slot, cohort - 1)
        v = jax.tree.map(lambda leaf: leaf[ids[owner]], personal)
        begin = _over_lanes(client, lambda v: client.work.start(hyper, client.model, w, v), v)
        local = _where(first, begin, stream.local)
        loss = jnp.where(first[:, None], 0, stream.loss)
        local, loss = _steps(client, hyper, w, data, chunk, round, g, local, loss)
        update, v = _over_lanes(
            client,
            lambda local, n: client.work.finish(hyper, client.model, w, local, n),
            local,
            sizes[owner],
        )
        # A lane whose client goes on writes into the spare last row.
        place = jnp.where(last, slot, cohort)
        done = Replies(loss, update, v)
        kept = jax.tree.map(lambda all, new: all.at[place].set(new), stream.replies, done)
        return Stream(local, loss, kept)

    segments = chunk.start.shape[1]
    stream = jax.lax.fori_loop(0, segments, segment, _at_rest(client, hyper, w, personal, cohort))
    finished = jax.tree.map(lambda leaf: leaf[:cohort], stream.replies)
    return finished._replace(losses=_objective(client.model, w, finished.losses, sizes))


def _objective(
    model: Model, w: Params, total: Float[Array, "cohort models"], sizes: Float[Array, " cohort"]
) -> Float[Array, "cohort models"]:
    """F_k from the summed losses: their mean or sum, plus the penalty once."""
    per_client = total / sizes[:, None] if model.reduction == "mean" else total
    return per_client if model.penalty is None else per_client + penalties(model, w)


def _steps(
    client: Client,
    hyper: Hyper,
    w: Params,
    data: Rows,
    chunk: DeviceChunk,
    round: Int[Array, ""],
    g: Int[Array, ""],
    local: Local,
    loss: Float[Array, "lanes models"],
) -> tuple[Local, Float[Array, "lanes models"]]:
    """The steps of one segment. Inside the loop a single lane has no axis: XLA copies less."""
    measured = chunk.measured[round, g]
    alone = client.lanes == 1

    def loop(measuring: bool) -> Callable[[Any], Any]:
        def body(s: Int[Array, ""], state: tuple[Local, Array]) -> tuple[Local, Array]:
            local, loss = state
            batch = _batch(client, data, chunk, round, g, s)
            if measuring:
                loss = loss + _losses_at_w(client, w, batch, measured)
            return _step(client, hyper, w, local, batch), loss

        first = chunk.start[round, g]
        return lambda state: jax.lax.fori_loop(first, first + chunk.length[round, g], body, state)

    state = jax.tree.map(lambda leaf: leaf[0], (local, loss)) if alone else (local, loss)
    if client.work.epochs == 1:
        state = loop(measuring=True)(state)
    else:
        state = jax.lax.cond(measured.any(), loop(measuring=True), loop(measuring=False), state)
    return jax.tree.map(lambda leaf: leaf[None], state) if alone else state


def _step(client: Client, hyper: Hyper, w: Params, local: Local, batch: Batch) -> Local:
    """One mini-batch step of every lane."""

    def one(local: Local, batch: Batch) -> Local:
        return client.work.step(hyper, client.model, w, local, batch)

    if client.lanes > 1:
        return jax.vmap(one)(local, batch)
    return one(local, jax.tree.map(lambda leaf: leaf[0], batch))


def _batch(
    client: Client,
    data: Rows,
    chunk: DeviceChunk,
    round: Int[Array, ""],
    g: Int[Array, ""],
    s: Int[Array, ""],
) -> Batch:
    rows = jax.lax.dynamic_index_in_dim(chunk.rows, s, keepdims=False)
    filled = jax.lax.dynamic_index_in_dim(chunk.filled, s, keepdims=False)
    live = jnp.arange(rows.shape[1]) < filled[:, None]
    dtype = jnp.result_type(float)
    return Batch(
        x=data.x.at[rows].get(mode="promise_in_bounds"),
        y=data.y.at[rows].get(mode="promise_in_bounds"),
        live=materialise(live.astype(dtype)),
        filled=jnp.maximum(filled, 1).astype(dtype),
        key=_keys(data, chunk, round, g, s) if client.model.stochastic else None,
    )


def _keys(
    data: Rows, chunk: DeviceChunk, round: Int[Array, ""], g: Int[Array, ""], s: Int[Array, ""]
) -> Any:
    """One key per lane, from the round, the client and the step, wherever the chunk began."""
    key = jax.random.fold_in(data.key, chunk.first_round + round)
    key = jax.random.fold_in(key, s - chunk.start[round, 0])
    owner = jnp.minimum(chunk.slot[round, g], chunk.ids.shape[1] - 1)
    return jax.vmap(lambda id: jax.random.fold_in(key, id))(chunk.ids[round, owner])


def _losses_at_w(
    client: Client, w: Params, batch: Batch, measured: Bool[Array, " lanes"]
) -> Float[Array, "*lanes models"]:
    """The summed losses of the batch at w^t, where a lane is in its first epoch."""
    lanes, rows = batch.live.shape
    x = batch.x.reshape(lanes * rows, *batch.x.shape[2:])
    losses = stack(client.model, width(w)).losses(w, x, batch.y.reshape(lanes * rows))
    weight = batch.live * measured[:, None]
    if lanes == 1:
        return weight[0] @ losses
    return (weight[:, :, None] * losses.reshape(lanes, rows, -1)).sum(axis=1)


def _over_lanes(client: Client, function: Callable[..., Any], *args: Any) -> Any:
    """The function for every lane; a single lane is called directly, with no axis in its way."""
    if client.lanes == 1:
        one = function(*(jax.tree.map(lambda leaf: leaf[0], arg) for arg in args))
        return jax.tree.map(lambda leaf: leaf[None], one)
    # The lane numbers give vmap an axis where a client has nothing of its own.
    return jax.vmap(lambda _, *own: function(*own))(jnp.arange(client.lanes), *args)


def _where(mask: Array, chosen: Any, otherwise: Any) -> Any:
    def select(a: Array, b: Array) -> Array:
        return jnp.where(mask.reshape(-1, *[1] * (a.ndim - 1)), a, b)

    return jax.tree.map(select, chosen, otherwise)


def _at_rest(client: Client, hyper: Hyper, w: Params, personal: Personal, cohort: int) -> Stream:
    """The stream before its first step, with one spare reply row for lanes that go on."""
    lanes = client.lanes
    v = jax.tree.map(lambda leaf: leaf[jnp.zeros(lanes, jnp.int32)], personal)
    local = _over_lanes(client, lambda v: client.work.start(hyper, client.model, w, v), v)
    loss = jnp.zeros((lanes, width(w)), jnp.result_type(float))

    def spare(leaf: Array) -> Array:
        return jnp.zeros((cohort + 1, *leaf.shape), leaf.dtype)

    rows = Replies(loss[0], w, jax.tree.map(lambda leaf: leaf[0], personal))
    return Stream(local, loss, jax.tree.map(spare, rows))
