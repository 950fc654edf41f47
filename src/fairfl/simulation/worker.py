"""The unit of work: advance(task, carry, start, stop) -> the carry and what happened.

It is pure and picklable, so any concurrent.futures.Executor can run it: threads here, a cluster
elsewhere. Compiled programs, plans and rows are kept per process and found again by key; a worker
that has never seen the data answers Missing and is asked again with the data attached.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fairfl.algorithms import Algorithm
from fairfl.algorithms.algorithm import with_lipschitz
from fairfl.algorithms.work import Hyper
from fairfl.clients import FederatedData, Split
from fairfl.clients.randomness import Stream, generator
from fairfl.models.model import Model, Params, as_trained, stack
from fairfl.simulation.compiler import compiled
from fairfl.simulation.evaluation import Blocks, Evaluations, blocks_of, evaluate
from fairfl.simulation.local import Client, DeviceChunk, Rows
from fairfl.simulation.personal import Visits, evaluate_own, visits_of
from fairfl.simulation.plan import ROUNDS, Planner, planner, split_of
from fairfl.simulation.round import Carry, Info, Parts, advance_round, first_carry


@dataclass(frozen=True)
class Task:
    """One group: experiments that share a seed's batches and one program.

    `members` lists the hyper-parameters of every place in the group, padding included. `run` names
    the training run, so that groups of one run share what they compile.
    """

    run: str
    data: str
    model: Model
    algorithm: Algorithm
    cohort: int
    seed: int
    split_seed: int | None
    lanes: int
    x64: bool
    members: tuple[Mapping[str, float], ...]


class Missing(NamedTuple):
    """This process has never seen the data of the task."""

    fingerprint: str


class Rounds(NamedTuple):
    """What happened in consecutive rounds, the experiments last."""

    ids: Int[np.ndarray, "rounds cohort"]
    info: Info


class Advanced(NamedTuple):
    """The state after `stop` rounds, and how every client is served there if it was asked: by the
    model of all, and by its own where it keeps one."""

    carry: Carry
    rounds: Rounds | None
    evaluation: Evaluations | None
    personal: Evaluations | None


class Bench(NamedTuple):
    """What a process keeps open for one seed of one run."""

    plan: Planner
    parts: Parts
    rows: Rows
    blocks: Blocks
    visits: Visits | None


class Cache:
    """A small, locked, least-recently-used store."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            value = self._values.setdefault(key, value)
            while len(self._values) > self._places:
                self._values.popitem(last=False)
            return value

    def find(self, key: Hashable) -> Any:
        with self._lock:
            return self._values.get(key)

    def drop(self, belongs: Callable[[Any], bool]) -> None:
        with self._lock:
            for key in [key for key in self._values if belongs(key)]:
                del self._values[key]


DATA, PARTS, ROWS, BENCHES = Cache(4), Cache(16), Cache(4), Cache(64)


def advance(
    task: Task,
    carry: Carry | None,
    start: int,
    stop: int,
    evaluates: bool,
    data: FederatedData | None = None,
) -> Advanced | Missing:
    """Run rounds [start, stop) of a group from its carry; None begins from the initial model."""
    known = DATA.get(task.data, lambda: data) if data is not None else DATA.find(task.data)
    if known is None:
        return Missing(task.data)
    # The switch is per thread, so runs of different precision may share a process.
    with jax.enable_x64(task.x64):
        return _advance(task, _bench(task, known), carry, start, stop, evaluates)


def release(run: str) -> None:
    """Forget what a finished run kept open in this process."""
    BENCHES.drop(lambda key: key[0] == run)
    PARTS.drop(lambda key: key == run)


def forget(fingerprint: str) -> None:
    """Let go of the data and its rows on the device."""
    DATA.drop(lambda key: key == fingerprint)
    ROWS.drop(lambda key: key[0] == fingerprint)


def _advance(
    task: Task, bench: Bench, carry: Carry | None, start: int, stop: int, evaluates: bool
) -> Advanced:
    hyper = hyper_arrays(task.members)
    state = (
        first(task, bench.parts, bench.plan) if carry is None else jax.tree.map(jnp.asarray, carry)
    )
    state, rounds = _rounds(bench, hyper, state, start, stop) if stop > start else (state, None)
    evaluation = _evaluation(task, bench, hyper, state) if evaluates else None
    personal = _personal(task, bench, hyper, state) if evaluates else None
    return Advanced(jax.tree.map(np.asarray, state), rounds, evaluation, personal)


def _evaluation(task: Task, bench: Bench, hyper: Hyper, state: Carry) -> Evaluations:
    """With the model of the answer, or with what a client makes of it on its support rows."""
    w, work = bench.parts.answer.read(state.answer, state.w), task.algorithm.work
    if work.adaptation:
        assert bench.visits is not None
        return evaluate_own(task.model, work, hyper, w, None, bench.rows, bench.visits)
    return evaluate(task.model, w, bench.rows.x, bench.rows.y, bench.blocks)


def _personal(task: Task, bench: Bench, hyper: Hyper, state: Carry) -> Evaluations | None:
    """With the model that each client keeps."""
    work = task.algorithm.work
    if not work.serves:
        return None
    assert bench.visits is not None
    return evaluate_own(task.model, work, hyper, state.w, state.personal, bench.rows, bench.visits)


def _rounds(
    bench: Bench, hyper: Hyper, state: Carry, start: int, stop: int
) -> tuple[Carry, Rounds]:
    """Chunk after chunk; the host plans the next one while the device runs this one."""
    program, done, launched = _program(bench.parts), start, []
    while done < stop:
        chunk = bench.plan.chunk(done, stop)
        state, info = program(hyper, state, bench.rows, DeviceChunk(*map(jnp.asarray, chunk)))
        launched.append((int(chunk.rounds), chunk.ids, info))
        done += int(chunk.rounds)
    ids = np.concatenate([ids[:n] for n, ids, _ in launched])
    parts = [jax.tree.map(lambda leaf, n=n: np.asarray(leaf)[:n], info) for n, _, info in launched]
    return state, Rounds(ids, jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts))


@lru_cache(maxsize=64)
def _program(parts: Parts) -> Callable[[Hyper, Carry, Rows, DeviceChunk], tuple[Carry, Info]]:
    """The compiled loop over the rounds of a chunk."""

    @partial(compiled, parts.client.model)
    def run(hyper: Hyper, carry: Carry, rows: Rows, chunk: DeviceChunk) -> tuple[Carry, Info]:
        def one(r: Any, carry: Carry) -> tuple[Carry, Info]:
            return advance_round(parts, hyper, carry, rows, chunk, r)

        def body(r: Any, state: tuple[Carry, Info]) -> tuple[Carry, Info]:
            carry, infos = state
            carry, info = one(r, carry)
            return carry, jax.tree.map(lambda all, new: all.at[r].set(new), infos, info)

        shape = jax.eval_shape(one, jnp.int32(0), carry)[1]
        empty = jax.tree.map(lambda s: jnp.zeros((ROUNDS, *s.shape), s.dtype), shape)
        return jax.lax.fori_loop(0, chunk.rounds, body, (carry, empty))

    return run


def hyper_arrays(members: tuple[Mapping[str, float], ...]) -> Hyper:
    """Numeric hyper-parameters as one array [models] each, with L filled in."""
    filled = [with_lipschitz(member) for member in members]
    return {
        name: jnp.asarray([member[name] for member in filled], jnp.result_type(float))
        for name in filled[0]
    }


def initial_model(model: Model, seed: int, members: int) -> Params:
    """The seed's first parameters, once per member; the axis of members is last."""
    number = int(generator(seed, Stream.MODEL).integers(2**31))
    one = model.init(jax.random.key(number))

    def copies(leaf: Array) -> Array:
        return jnp.repeat(leaf[..., None], members, axis=-1)

    return stack(model, members).pack(jax.tree.map(copies, as_trained(one)))


def first(task: Task, parts: Parts, plan: Planner) -> Carry:
    w = initial_model(task.model, task.seed, len(task.members))
    clients = len(plan.people.sizes)
    return first_carry(parts, hyper_arrays(task.members), w, clients, plan.cohort)


def carry_shape(task: Task, data: FederatedData) -> Carry:
    """The shapes and types of a group's state, into which a kept one is read."""
    with jax.enable_x64(task.x64):
        plan = _planned(task, split_of(data, task.algorithm, _split_seed(task)))
        return jax.eval_shape(lambda: first(task, _parts(task), plan))


def _bench(task: Task, data: FederatedData) -> Bench:
    return BENCHES.get((task.run, task.seed), lambda: _open(task, data))


def _open(task: Task, data: FederatedData) -> Bench:
    split = split_of(data, task.algorithm, _split_seed(task))
    work = task.algorithm.work
    visited = work.adaptation is not None or work.serves
    x, y = ROWS.get((task.data, task.x64), lambda: _on_device(data))
    number = int(generator(task.seed, Stream.NOISE).integers(2**31))
    return Bench(
        plan=_planned(task, split),
        parts=PARTS.get(task.run, lambda: _parts(task)),
        rows=Rows(x, y, jax.random.key(number)),
        blocks=blocks_of(split),
        visits=visits_of(split, work.adaptation, task.seed) if visited else None,
    )


def _split_seed(task: Task) -> int:
    return task.seed if task.split_seed is None else task.split_seed


def _planned(task: Task, split: Split) -> Planner:
    return planner(split.train, task.algorithm, task.cohort, task.seed, task.lanes, split.support)


def _parts(task: Task) -> Parts:
    client = Client(task.model, task.algorithm.work, task.lanes)
    return Parts(client, task.algorithm.rule, task.algorithm.server, task.algorithm.answer)


def _on_device(data: FederatedData) -> tuple[Array, Array]:
    """The one copy of the rows that every seed, round and evaluation gathers from."""

    def place(array: np.ndarray) -> Array:
        real = np.issubdtype(array.dtype, np.floating)
        dtype = jnp.result_type(float) if real else np.int32
        # On a CPU device_put reads the array where it lies; jnp.asarray would copy it.
        return jax.device_put(array.astype(dtype, copy=False))

    return place(data.x), place(data.y)


def lowest_loss(info: Info) -> Float[np.ndarray, "rounds cohort"]:
    """The smallest accepted F_k over the experiments."""
    return np.where(info.accepted, info.losses, np.inf).min(axis=-1)
