"""One round of every experiment of a group: work, rule, server; and what is reported of it."""

from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fairfl.algorithms.rules import Cohort, Needs, Rule
from fairfl.algorithms.server import Answer, Server
from fairfl.algorithms.work import Hyper, Personal
from fairfl.models.model import Params, width
from fairfl.simulation.local import Client, DeviceChunk, Replies, Rows, replies


class Memory(NamedTuple):
    """The updates of past rounds that a rule asked for, the newest first; id -1 is empty.

    `gram` holds their inner products where the rule needs them: what is known is not added anew.
    """

    updates: Params
    ids: Int[Array, "past models"]
    ages: Int[Array, "past models"]
    gram: Float[Array, "past past models"] | None


class Carry(NamedTuple):
    """All that one round hands to the next: the checkpoint. The axis of experiments is last."""

    w: Params
    server: Any
    rule: Any
    answer: Any
    personal: Personal
    memory: Memory | None
    alive: Bool[Array, " models"]
    rounds: Int[Array, " models"]


class Info(NamedTuple):
    """What one round reports. `losses` are F_k(w^t); `accepted` tells whose reply counted."""

    loss: Float[Array, " models"]
    effective_step: Float[Array, " models"]
    coefficient_spread: Float[Array, " models"]
    losses: Float[Array, "cohort models"]
    accepted: Bool[Array, "cohort models"]
    alive: Bool[Array, " models"]
    rule: Any


class Parts(NamedTuple):
    """The static parts of a program: what is compiled."""

    client: Client
    rule: Rule
    server: Server
    answer: Answer


def first_carry(parts: Parts, hyper: Hyper, w: Params, clients: int, cohort: int) -> Carry:
    """The state before the first round."""
    models = width(w)
    states = jax.vmap(lambda h: parts.rule.init(h, clients), out_axes=-1)(hyper)
    return Carry(
        w=w,
        server=parts.server.init(w),
        rule=states,
        answer=parts.answer.init(w),
        personal=_personal(parts, w, clients),
        memory=_no_memory(parts.rule.needs, cohort, w),
        alive=jnp.ones(models, bool),
        rounds=jnp.zeros(models, jnp.int32),
    )


def _personal(parts: Parts, w: Params, clients: int) -> Personal:
    """v_k for every client of the population, on an axis in front."""
    if parts.client.work.personal is None:
        return None
    v = parts.client.work.personal(w)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (clients, *leaf.shape)), v)


def _no_memory(needs: Needs, cohort: int, w: Params) -> Memory | None:
    past, models = needs.history * cohort, width(w)
    if past == 0:
        return None
    return Memory(
        updates=jax.tree.map(lambda leaf: jnp.zeros((past, *leaf.shape), leaf.dtype), w),
        ids=jnp.full((past, models), -1, jnp.int32),
        ages=jnp.zeros((past, models), jnp.int32),
        gram=jnp.zeros((past, past, models), jnp.result_type(float)) if needs.gram else None,
    )


def advance_round(
    parts: Parts,
    hyper: Hyper,
    carry: Carry,
    data: Rows,
    chunk: DeviceChunk,
    round: Int[Array, ""],
) -> tuple[Carry, Info]:
    """w' = server(w, sum_k a_k D_k); a client with a non-finite reply is absent from the round."""
    got = replies(parts.client, hyper, carry.w, carry.personal, data, chunk, round)
    squares = _inner(got.updates, got.updates)
    accepted = jnp.isfinite(got.losses) & jnp.isfinite(squares)
    weights = jnp.where(accepted, chunk.weights[round][:, None], 0)
    cohort = _cohort(parts.rule, chunk, round, carry, got, weights, squares)
    combine = _combine_in_turn if parts.client.model.alone else _combine
    a, rule_state, reported = _coefficients(parts.rule, hyper, carry.rule, cohort)
    updates = _with_memory(got.updates, carry.memory)
    w, server_state = parts.server.apply(hyper, carry.server, carry.w, combine(a, updates))
    alive = carry.alive & accepted.any(axis=0) & _finite(w)
    personal = _remember(carry.personal, got, chunk.ids[round], accepted & alive)
    new = Carry(
        w=w,
        server=server_state,
        rule=rule_state,
        answer=parts.answer.update(carry.answer, w, carry.rounds),
        personal=None,
        memory=_recall(carry.memory, got.updates, cohort.gram, chunk.ids[round], accepted),
        alive=alive,
        rounds=carry.rounds + 1,
    )
    # A dead experiment keeps its last good model; the others go on. Only the cohort's v_k are
    # touched: there is one for every client of the population.
    before = carry._replace(personal=None)
    kept = jax.tree.map(lambda after, before: jnp.where(alive, after, before), new, before)
    info = _info(a[: len(weights)], weights, got.losses, accepted, alive, reported)
    return kept._replace(alive=alive, personal=personal), info


def _inner(left: Params, right: Params) -> Float[Array, "cohort models"]:
    """<left_k, right_k> over all leaves."""

    def one(a: Array, b: Array) -> Array:
        return (a * b).reshape(a.shape[0], -1, a.shape[-1]).sum(axis=1)

    return sum(map(one, jax.tree.leaves(left), jax.tree.leaves(right)))  # type: ignore[return-value]


def _gram(updates: Params, memory: Memory | None) -> Float[Array, "updates updates models"]:
    """<D_i, D_j> of the round's updates and of those before; a non-finite number counts as zero."""
    now = jax.tree.map(_finite_or_zero, updates)
    if memory is None or memory.gram is None:
        return _products(now, now)
    beside = _products(now, memory.updates)
    above = jnp.concatenate([_products(now, now), beside], axis=1)
    below = jnp.concatenate([beside.swapaxes(0, 1), memory.gram], axis=1)
    return jnp.concatenate([above, below])


def _products(left: Params, right: Params) -> Float[Array, "lefts rights models"]:
    """<left_i, right_j> over all leaves."""

    def one(a: Array, b: Array) -> Array:
        flat = (leaf.reshape(leaf.shape[0], -1, leaf.shape[-1]) for leaf in (a, b))
        return jnp.einsum("ipe,jpe->ije", *flat)

    return sum(map(one, jax.tree.leaves(left), jax.tree.leaves(right)))  # type: ignore[return-value]


def _finite_or_zero(leaf: Array) -> Array:
    return jnp.where(jnp.isfinite(leaf), leaf, 0)


def _cohort(
    rule: Rule,
    chunk: DeviceChunk,
    round: Int[Array, ""],
    carry: Carry,
    got: Replies,
    weights: Float[Array, "cohort models"],
    squares: Float[Array, "cohort models"],
) -> Cohort:
    """What the rule declared it needs, the axis of experiments last."""
    memory, needs = carry.memory, rule.needs
    everywhere = jnp.ones_like(weights)
    return Cohort(
        ids=chunk.ids[round][:, None] * jnp.ones_like(weights, jnp.int32),
        sizes=chunk.sizes[round][:, None] * everywhere,
        weights=weights,
        losses=got.losses if needs.losses else None,
        norms=squares if needs.norms else None,
        gram=_gram(got.updates, memory) if needs.gram else None,
        past_ids=memory.ids if memory else None,
        past_ages=memory.ages if memory else None,
    )


def _coefficients(rule: Rule, hyper: Hyper, state: Any, cohort: Cohort) -> tuple[Array, Any, Any]:
    """The rule, once per experiment."""
    return jax.vmap(rule.coefficients, in_axes=(0, -1, -1), out_axes=-1)(hyper, state, cohort)


def _combine(a: Float[Array, "updates models"], updates: Params) -> Params:
    """sum_k a_k D_k, where an absent client adds nothing: never 0 * NaN."""

    def one(leaf: Array) -> Array:
        weight = a.reshape(a.shape[0], *[1] * (leaf.ndim - 2), a.shape[1])
        return jnp.where(weight == 0, 0, weight * leaf).sum(axis=0)

    return jax.tree.map(one, updates)


def _combine_in_turn(a: Float[Array, "updates models"], updates: Params) -> Params:
    """The same for a model so large that laying all a_k D_k side by side is what takes time."""

    def one(leaf: Array) -> Array:
        weighted = (jnp.where(a_k == 0, 0, a_k * D_k) for a_k, D_k in zip(a, leaf, strict=True))
        return reduce(jnp.add, weighted)

    return jax.tree.map(one, updates)


def _finite(w: Params) -> Bool[Array, " models"]:
    def one(leaf: Array) -> Array:
        return jnp.isfinite(leaf.reshape(-1, leaf.shape[-1])).all(axis=0)

    return jnp.stack([one(leaf) for leaf in jax.tree.leaves(w)]).all(axis=0)


def _with_memory(updates: Params, memory: Memory | None) -> Params:
    if memory is None:
        return updates
    return jax.tree.map(lambda now, past: jnp.concatenate([now, past]), updates, memory.updates)


def _recall(
    memory: Memory | None,
    updates: Params,
    gram: Float[Array, "updates updates models"] | None,
    ids: Int[Array, " cohort"],
    accepted: Bool[Array, "cohort models"],
) -> Memory | None:
    """This round's updates enter in front, the oldest leave; a refused one leaves a gap."""
    if memory is None:
        return None
    past = len(memory.ids)
    seen = jnp.where(accepted, ids[:, None], -1).astype(jnp.int32)
    ages = jnp.where(accepted, 1, 0).astype(jnp.int32)
    older = jnp.where(memory.ids >= 0, memory.ages + 1, 0)

    def shift(now: Array, then: Array) -> Array:
        return jnp.concatenate([_finite_or_zero(now), then])[:past]

    return Memory(
        updates=jax.tree.map(shift, updates, memory.updates),
        ids=jnp.concatenate([seen, memory.ids])[:past],
        ages=jnp.concatenate([ages, older])[:past],
        gram=None if gram is None else gram[:past, :past],
    )


def _remember(
    personal: Personal, got: Replies, ids: Int[Array, " cohort"], accepted: Bool[Array, "k models"]
) -> Personal:
    """The clients' own v_k, where their reply was accepted."""

    def one(all: Array, new: Array) -> Array:
        keep = accepted.reshape(accepted.shape[0], *[1] * (new.ndim - 2), accepted.shape[1])
        return all.at[ids].set(jnp.where(keep, new, all[ids]))

    return jax.tree.map(one, personal, got.personal)


def _info(
    a: Float[Array, "cohort models"],
    weights: Float[Array, "cohort models"],
    losses: Float[Array, "cohort models"],
    accepted: Bool[Array, "cohort models"],
    alive: Bool[Array, " models"],
    reported: Any,
) -> Info:
    here = weights > 0
    count = jnp.maximum(here.sum(axis=0), 1)
    average = jnp.where(here, a, 0).sum(axis=0) / count
    deviation = jnp.sqrt(jnp.where(here, (a - average) ** 2, 0).sum(axis=0) / count)
    total = jnp.where(here, weights * losses, 0).sum(axis=0)
    return Info(
        loss=total / weights.sum(axis=0),
        effective_step=jnp.where(here, a, 0).sum(axis=0),
        coefficient_spread=deviation / average,
        losses=losses,
        accepted=accepted,
        alive=alive,
        rule=reported,
    )
