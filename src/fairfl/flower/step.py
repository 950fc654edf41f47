"""One round on the server: a = rule(F, n, u, <D, D>), then w' = server(w, sum_k a_k D_k).

The rule is the simulator's own object and sees what it sees there; a client whose reply is missing
or was put aside has the weight 0. The arithmetic on models is NumPy's, a block at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flwr.app import Array, ArrayRecord
from jaxtyping import Float, Int

from fairfl.algorithms import Algorithm
from fairfl.algorithms.algorithm import with_lipschitz
from fairfl.algorithms.rules import Cohort, Rule
from fairfl.algorithms.server import LAST, PLAIN
from fairfl.flower.aggregation import (
    descended,
    direction,
    gram,
    real,
    trained,
    updates,
    with_arrays,
)
from fairfl.flower.arrays import Leaves, leaves
from fairfl.flower.received import Update
from fairfl.flower.standing import Memory, States

Hyper = Mapping[str, Float[jax.Array, ""]]


class Drawn(NamedTuple):
    """A round's cohort: places in the roster, their rows and their weights u_k."""

    ids: Int[np.ndarray, " cohort"]
    rows: Int[np.ndarray, " cohort"]
    u: Float[np.ndarray, " cohort"]


def hyper_of(algorithm: Algorithm) -> dict[str, Float[jax.Array, ""]]:
    """The numbers of the one experiment, with L filled in."""
    (one,) = algorithm.experiments
    return {name: jnp.asarray(value, jnp.float32) for name, value in with_lipschitz(one).items()}


def fresh(algorithm: Algorithm, cohort: int, model: ArrayRecord, clients: int) -> States:
    """The states before the first round."""
    moving = _moving(model)
    past = algorithm.rule.needs.history * cohort
    size = sum(leaf.size for leaf in moving.values())
    empty = np.full(past, -1, np.int32), np.zeros(past, np.int32)
    plain = algorithm.server.name == PLAIN.name
    return States(
        rule=algorithm.rule.init(hyper_of(algorithm), clients),
        server=() if plain else algorithm.server.init(moving),
        answer=algorithm.answer.init(moving),
        memory=Memory(np.zeros((past, size), np.float32), *empty) if past else None,
    )


class Stepped(NamedTuple):
    """The model after a round, what is remembered, how much each counted and what the rule says."""

    model: ArrayRecord
    states: States
    a: Float[np.ndarray, " cohort"]
    info: Mapping[str, float]


def stepped(
    algorithm: Algorithm,
    states: States,
    model: ArrayRecord,
    drawn: Drawn,
    found: Mapping[int, Update],
) -> Stepped:
    """One round from the usable replies, by the client's place in the roster."""
    names, w = list(model), leaves(model)
    places = trained(names, w)
    moving = [w[place] for place in places]
    here = [found.get(int(id)) for id in drawn.ids]
    replies = [one and [one.arrays[place] for place in places] for one in here]
    cohort = _cohort(algorithm.rule, drawn, here, moving, replies, states.memory)
    weigh = _weigher(algorithm.rule)
    every, rule, info = weigh(hyper_of(algorithm), states.rule, cohort)
    a = np.asarray(every, np.float64)
    if not np.isfinite(a).all():
        raise ValueError(
            f"the coefficients of {algorithm.rule.name} are not finite; try a smaller q or "
            "learning rate"
        )
    changed, server = _moved(algorithm, states, moving, replies, a)
    arrays = {places[i]: array for i, array in changed.items()}
    tracked = [place for place in real(w) if place not in places]
    shares = np.where([one is not None for one in here], drawn.u, 0)
    everything = [one and one.arrays for one in here]
    arrays |= _averaged([w[i] for i in tracked], everything, tracked, shares / shares.sum())
    memory = _recalled(states.memory, moving, replies, drawn.ids)
    return Stepped(
        with_arrays(model, arrays),
        States(rule, server, states.answer, memory),
        a[: len(here)],
        {name: float(value) for name, value in info.items()},
    )


def described(
    drawn: Drawn, usable: Mapping[int, Update], a: Float[np.ndarray, " cohort"]
) -> dict[str, float]:
    """A round as the simulator's history tells it: mean F_k(w), sum of a and its spread."""
    here = np.array([int(id) in usable for id in drawn.ids])
    u = np.where(here, drawn.u, 0)
    losses = np.array([usable[int(id)].loss if int(id) in usable else 0 for id in drawn.ids])
    present = a[here]
    average = float(present.mean())
    return {
        "loss": float(u @ losses / u.sum()),
        "effective_step": float(present.sum()),
        "coefficient_spread": float(present.std() / average) if average else np.nan,
    }


def answered(algorithm: Algorithm, state: Any, model: ArrayRecord, done: int) -> Any:
    """The answer's state after the round that made so many done."""
    if algorithm.answer.name == LAST.name:
        return state
    return algorithm.answer.update(state, _moving(model), jnp.asarray([done - 1]))


def answer(algorithm: Algorithm, state: Any, model: ArrayRecord) -> ArrayRecord:
    """The model that the run returns: the last one, or the mean iterate."""
    if algorithm.answer.name == LAST.name:
        return model
    found = algorithm.answer.read(state, _moving(model))
    places = trained(list(model), leaves(model))
    return with_arrays(model, {places[int(i)]: Array(_plain(x)) for i, x in found.items()})


def _moving(model: ArrayRecord) -> dict[str, np.ndarray]:
    """What is trained, with the simulator's axis of models."""
    w = leaves(model)
    return _stacked([w[place] for place in trained(list(model), w)])


def _stacked(w: Leaves) -> dict[str, np.ndarray]:
    return {f"{i:06d}": leaf[..., None] for i, leaf in enumerate(w)}


def _plain(leaf: Any) -> np.ndarray:
    return np.ascontiguousarray(np.asarray(leaf)[..., 0])


def _moved(
    algorithm: Algorithm,
    states: States,
    w: Leaves,
    replies: Sequence[Leaves | None],
    a: Float[np.ndarray, " updates"],
) -> tuple[dict[int, Array], Any]:
    """The server's step, the plain one without a copy of the model."""
    now, past = a[: len(replies)], a[len(replies) :]
    if algorithm.server.name == PLAIN.name and states.memory is None:
        return descended(w, replies, now), ()
    older = states.memory.updates if states.memory else None
    total = direction(w, replies, now, older, past)
    hyper = {name: value[None] for name, value in hyper_of(algorithm).items()}
    after, state = algorithm.server.apply(hyper, states.server, _stacked(w), _stacked(total))
    types = [leaf.dtype for leaf in w]
    return {int(i): Array(_plain(leaf).astype(types[int(i)])) for i, leaf in after.items()}, state


def _averaged(
    w: Leaves,
    replies: Sequence[Leaves | None],
    places: Sequence[int],
    shares: Float[np.ndarray, " cohort"],
) -> dict[int, Array]:
    """Running statistics: the weighted mean, whatever the rule."""
    parts = [reply and [reply[place] for place in places] for reply in replies]
    return {places[i]: array for i, array in descended(w, parts, shares).items()}


@lru_cache(maxsize=16)
def _weigher(rule: Rule) -> Callable[..., tuple[jax.Array, Any, Any]]:
    return jax.jit(rule.coefficients)


def _cohort(
    rule: Rule,
    drawn: Drawn,
    here: Sequence[Update | None],
    w: Leaves,
    replies: Sequence[Leaves | None],
    memory: Memory | None,
) -> Cohort:
    """What the rule declared it needs."""
    past = memory.updates if memory else None

    def column(values: Sequence[float | int]) -> Float[jax.Array, " cohort"]:
        return jnp.asarray(np.array(values, np.float32))

    return Cohort(
        ids=jnp.asarray(drawn.ids, jnp.int32),
        sizes=column(drawn.rows.tolist()),
        weights=column([u if one else 0.0 for u, one in zip(drawn.u, here, strict=True)]),
        losses=column([one.loss if one else np.nan for one in here]),
        norms=column([one.square if one else 0.0 for one in here]),
        gram=jnp.asarray(gram(w, replies, past), jnp.float32) if rule.needs.gram else None,
        past_ids=jnp.asarray(memory.ids) if memory else None,
        past_ages=jnp.asarray(memory.ages) if memory else None,
    )


def _recalled(
    memory: Memory | None,
    w: Leaves,
    replies: Sequence[Leaves | None],
    ids: Int[np.ndarray, " cohort"],
) -> Memory | None:
    """This round's updates enter in front, the oldest leave; an absent one leaves a gap."""
    if memory is None:
        return None
    past, present = len(memory.ids), np.array([reply is not None for reply in replies])
    seen = np.where(present, ids, -1).astype(np.int32)
    older = np.where(memory.ids >= 0, memory.ages + 1, 0).astype(np.int32)
    return Memory(
        np.concatenate([updates(w, replies), memory.updates])[:past],
        np.concatenate([seen, memory.ids])[:past],
        np.concatenate([present.astype(np.int32), older])[:past],
    )
