"""Running work for a cohort: the flat stream of steps, compiled.

F_k(w^t) is measured inside the stream: in the first epoch w^t and the local model see the same
gathered batch. Where the work adapts, w_k takes the place of w^t: see work.Adaptation. P lanes run
P clients side by side; with one lane no lane axis exists.
"""

from collections.abc import Callable
from functools import partial
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
    read: Array
    weights: Array
    support: Array
    supported: Array


class Replies(NamedTuple):
    """What the cohort sends back: F_k, D_k and v_k', one row per place in the cohort."""

    losses: Float[Array, "cohort models"]
    updates: Params
    personal: Personal


class Stream(NamedTuple):
    """The state of the stream: each lane's model and running loss, and the finished replies.

    `adapted` is each lane's w_k, and None where the work does not adapt: everyone is at w.
    """

    adapted: Params | None
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
    ids, read = chunk.ids[round], chunk.read[round]

    def segment(g: Int[Array, ""], stream: Stream) -> Stream:
        slot, first, last = (part[round, g] for part in (chunk.slot, chunk.first, chunk.last))
        owner = jnp.minimum(slot, cohort - 1)
        v = jax.tree.map(lambda leaf: leaf[ids[owner]], personal)
        support = _support(client, data, chunk, round, owner)
        own = _adapted(client, hyper, w, support, first, stream.adapted)
        begin = _over_lanes(
            client, lambda v, own: client.work.start(hyper, client.model, _or(own, w), v), v, own
        )
        local = _where(first, begin, stream.local)
        loss = jnp.where(first[:, None], 0, stream.loss)
        local, loss = _steps(client, hyper, w, own, data, chunk, round, g, local, loss)
        update, v = _over_lanes(
            client,
            lambda local, own, n: client.work.finish(hyper, client.model, _or(own, w), local, n),
            local,
            own,
            read[owner],
        )
        update = _pulled_back(client, hyper, w, support, update)
        if own is not None:
            penalty = _over_lanes(client, partial(_own_penalty, client), own, read[owner])
            loss = jnp.where(last[:, None], loss + penalty, loss)
        # A lane whose client goes on writes into the spare last row.
        place = jnp.where(last, slot, cohort)
        done = Replies(loss, update, v)
        kept = jax.tree.map(lambda all, new: all.at[place].set(new), stream.replies, done)
        return Stream(own, local, loss, kept)

    segments = chunk.start.shape[1]
    stream = jax.lax.fori_loop(0, segments, segment, _at_rest(client, hyper, w, personal, cohort))
    finished = jax.tree.map(lambda leaf: leaf[:cohort], stream.replies)
    return finished._replace(losses=_objective(client, w, finished.losses, read))


def _objective(
    client: Client,
    w: Params,
    total: Float[Array, "cohort models"],
    read: Float[Array, " cohort"],
) -> Float[Array, "cohort models"]:
    """F_k from the summed losses: their mean or sum, plus the penalty once."""
    model = client.model
    per_client = total / read[:, None] if model.reduction == "mean" else total
    if model.penalty is None or client.work.adaptation:
        return per_client
    return per_client + penalties(model, w)


def _own_penalty(client: Client, own: Params, read: Float[Array, ""]) -> Float[Array, " models"]:
    """The penalty of w_k, times what the sum of losses is divided by."""
    return penalties(client.model, own) * (read if client.model.reduction == "mean" else 1)


def _or(own: Params | None, w: Params) -> Params:
    """The client's own w_k where it has one."""
    return w if own is None else own


def _support(
    client: Client,
    data: Rows,
    chunk: DeviceChunk,
    round: Int[Array, ""],
    owner: Int[Array, " lanes"],
) -> Batch | None:
    """Each lane's mini-batches of support rows."""
    if client.work.adaptation is None:
        return None
    keys = None
    if client.model.stochastic:
        key = jax.random.fold_in(data.key, chunk.first_round + round)
        keys = support_keys(client.work.adaptation.steps, key, chunk.ids[round, owner])
    return support_batches(data, chunk.support[round, owner], chunk.supported[round, owner], keys)


def support_batches(
    data: Rows, rows: Int[Array, "... batch"], filled: Int[Array, "..."], keys: Any
) -> Batch:
    """Mini-batches of support rows, on whatever axes are in front."""
    dtype = jnp.result_type(float)
    live = jnp.arange(rows.shape[-1]) < filled[..., None]
    return Batch(
        x=data.x.at[rows].get(mode="promise_in_bounds"),
        y=data.y.at[rows].get(mode="promise_in_bounds"),
        live=live.astype(dtype),
        filled=jnp.maximum(filled, 1).astype(dtype),
        key=keys,
    )


def support_keys(steps: int, key: Any, ids: Int[Array, " clients"]) -> Any:
    """One key per client and inner step; those of the outer steps count up from 0."""
    last = jnp.iinfo(jnp.int32).max
    inner = jax.vmap(lambda j: jax.random.fold_in(key, last - j))(jnp.arange(steps))
    return jax.vmap(lambda id: jax.vmap(lambda key: jax.random.fold_in(key, id))(inner))(ids)


def _adapted(
    client: Client,
    hyper: Hyper,
    w: Params,
    support: Batch | None,
    first: Bool[Array, " lanes"],
    before: Params | None,
) -> Params | None:
    """w_k of every lane: made where a client begins, kept where one goes on."""
    adaptation = client.work.adaptation
    if adaptation is None:
        return None

    def one(first: Array, support: Batch, before: Params) -> Params:
        def adapt() -> Params:
            return adaptation.adapt(hyper, client.model, w, support)

        return jax.lax.cond(first, adapt, lambda: before)

    return _over_lanes(client, one, first, support, before)


def _pulled_back(
    client: Client, hyper: Hyper, w: Params, support: Batch | None, update: Params
) -> Params:
    """D_k times the derivative of w_k in w, where the work asks for the exact gradient."""
    adaptation = client.work.adaptation
    if adaptation is None or not adaptation.exact:
        return update

    def one(support: Batch, update: Params) -> Params:
        _, pull = jax.vjp(lambda w: adaptation.adapt(hyper, client.model, w, support), w)
        return pull(update)[0]

    return _over_lanes(client, one, support, update)


def _steps(
    client: Client,
    hyper: Hyper,
    w: Params,
    own: Params | None,
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
                loss = loss + _measured(client, w, own, batch, measured)
            return _step(client, hyper, w, own, local, batch), loss

        first = chunk.start[round, g]
        return lambda state: jax.lax.fori_loop(first, first + chunk.length[round, g], body, state)

    if alone:
        own = jax.tree.map(lambda leaf: leaf[0], own)
    state = jax.tree.map(lambda leaf: leaf[0], (local, loss)) if alone else (local, loss)
    if client.work.epochs == 1:
        state = loop(measuring=True)(state)
    else:
        state = jax.lax.cond(measured.any(), loop(measuring=True), loop(measuring=False), state)
    return jax.tree.map(lambda leaf: leaf[None], state) if alone else state


def _step(
    client: Client, hyper: Hyper, w: Params, own: Params | None, local: Local, batch: Batch
) -> Local:
    """One mini-batch step of every lane."""

    def one(local: Local, own: Params | None, batch: Batch) -> Local:
        return client.work.step(hyper, client.model, _or(own, w), local, batch)

    if client.lanes > 1:
        return jax.vmap(one)(local, own, batch)
    return one(local, own, jax.tree.map(lambda leaf: leaf[0], batch))


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


def _measured(
    client: Client, w: Params, own: Params | None, batch: Batch, measured: Bool[Array, " lanes"]
) -> Float[Array, "*lanes models"]:
    """The summed losses of the batch where F_k is measured: at w_k, or at the w of all lanes."""
    if own is None:
        return _losses_at_w(client, w, batch, measured)
    if client.lanes == 1:
        return _losses_at_w(client, own, batch, measured)

    def one(own: Params, batch: Batch, measured: Array) -> Array:
        losses = stack(client.model, width(own)).losses(own, batch.x, batch.y)
        return (batch.live * measured) @ losses

    return jax.vmap(one)(own, batch, measured)


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
    own = None
    if client.work.adaptation:
        own = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (lanes, *leaf.shape)), w)
    v = jax.tree.map(lambda leaf: leaf[jnp.zeros(lanes, jnp.int32)], personal)
    local = _over_lanes(client, lambda v: client.work.start(hyper, client.model, w, v), v)
    loss = jnp.zeros((lanes, width(w)), jnp.result_type(float))

    def spare(leaf: Array) -> Array:
        return jnp.zeros((cohort + 1, *leaf.shape), leaf.dtype)

    rows = Replies(loss[0], w, jax.tree.map(lambda leaf: leaf[0], personal))
    return Stream(own, local, loss, jax.tree.map(spare, rows))
