"""The engine: experiments in groups, groups on workers, chunk after chunk.

Which experiments share a program follows from the configuration alone; how many rounds a worker
takes at a time follows from the clock. Neither changes a bit of any result.
"""

import math
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from fairfl.algorithms import Algorithm
from fairfl.clients import FederatedData, Rows
from fairfl.metrics import Fairness, fairness, fairness_of_losses
from fairfl.models.model import Model
from fairfl.simulation.evaluation import Evaluation, Evaluations
from fairfl.simulation.interruption import Interrupted, heard
from fairfl.simulation.plan import Planner, lay_out, planner, split_of, stands_in
from fairfl.simulation.round import Carry, Info
from fairfl.simulation.worker import (
    DATA,
    Advanced,
    Missing,
    Rounds,
    Task,
    advance,
    forget,
    lowest_loss,
    release,
)

WIDEST = 40
"""Experiments in one program: more per program helps up to about here."""

SECONDS = 0.7
"""How long a worker keeps a group before it reports: progress, fairness, Ctrl-C."""

LANE_COST, MOST_LANES = 0.45, 5
"""Measured on two CPUs for the softmax model and the SVM; see benchmarks/engine.py."""

PERSONAL = 2 * 2**30
"""Bytes that the models which clients keep may take in all of a run's experiments together."""

CLIENTS_IN_HISTORY = 10_000
"""Above so many clients only the last evaluation keeps every client's accuracy and loss."""


@dataclass(frozen=True)
class Settings:
    """How to run: everything that is neither data, model nor algorithm.

    `stands_in` tells that training rows stand in for support rows, which the data do not have.
    """

    rounds: int
    cohort: int
    seeds: tuple[int, ...]
    split_seed: int | None
    evaluate_every: int
    width: int
    lanes: int
    x64: bool
    sampler: str
    stands_in: bool


@dataclass
class Group:
    """A group's task, its state, and what has happened so far."""

    task: Task
    places: tuple[int, ...]
    carry: Carry | None = None
    done: int = 0
    history: list[dict[str, np.ndarray]] = field(default_factory=list)
    evaluations: dict[int, Evaluations | None] = field(default_factory=dict)
    fairness: dict[int, tuple[list[Fairness] | None, ...]] = field(default_factory=dict)
    personal_evaluations: dict[int, Evaluations | None] = field(default_factory=dict)
    personal_fairness: dict[int, tuple[list[Fairness] | None, ...]] = field(default_factory=dict)
    quarantined: Int[np.ndarray, "clients models"] | None = None
    pace: float = 0.0
    dead: bool = False


class Progress(NamedTuple):
    """Reported to `on_chunk`: a group has advanced. Rounds are counted over all groups."""

    done: int
    total: int
    seconds: float
    group: Group


def settings(
    data: FederatedData,
    model: Model,
    algorithm: Algorithm,
    rounds: int,
    cohort: int,
    seeds: Sequence[int],
    split_seed: int | None,
    evaluate_every: int,
    width: int | None,
    lanes: int | None,
    x64: bool,
) -> Settings:
    """Check what a user asked for and fill in what follows from it."""
    split = split_of(data, algorithm, seeds[0] if split_seed is None else split_seed)
    _check_cohort(split.train, algorithm, cohort)
    _check_room(data, model, algorithm, len(seeds), x64)
    usual = 1 if model.alone else group_width(len(algorithm.experiments), len(seeds))
    chosen = width or usual
    plan = planner(split.train, algorithm, cohort, seeds[0])
    side_by_side = chosen == 1 and _shares_steps(model) and not algorithm.work.adaptation
    return Settings(
        rounds=rounds,
        cohort=cohort,
        seeds=tuple(seeds),
        split_seed=split_seed,
        evaluate_every=evaluate_every,
        width=chosen,
        lanes=lanes or (lane_count(plan) if side_by_side else 1),
        x64=x64,
        sampler=plan.sampler.name,
        stands_in=stands_in(data, algorithm),
    )


def _shares_steps(model: Model) -> bool:
    """Whether a step is so small that clients side by side shorten a round."""
    return model.stacked is not None and not model.alone


def _check_cohort(rows: Rows, algorithm: Algorithm, cohort: int) -> None:
    if algorithm.sampler.name in ("everyone", "by-size-with-replacement"):
        return
    trainable = int((rows.sizes > 0).sum())
    if cohort > trainable:
        raise ValueError(
            f"cohort={cohort} is larger than the {trainable} clients that have training rows; "
            f"use at most {trainable}, or sampler='by-size-with-replacement'"
        )


def _check_room(
    data: FederatedData, model: Model, algorithm: Algorithm, seeds: int, x64: bool
) -> None:
    """Refuse a run whose clients' own models would not fit, before it starts."""
    if algorithm.work.personal is None:
        return
    leaves = jax.tree.leaves(jax.eval_shape(model.init, jax.random.key(0)))
    one = sum(math.prod(leaf.shape) for leaf in leaves) * (8 if x64 else 4)
    models = data.clients * len(algorithm.experiments) * seeds
    if one * models > PERSONAL:
        raise ValueError(
            f"the own models of {data.clients:,} clients in {models // data.clients} experiments "
            f"take {one * models / 2**30:.1f} GiB, more than the {PERSONAL / 2**30:.0f} GiB that "
            "fairfl keeps in memory; take a smaller model, fewer clients or fewer experiments"
        )


def group_width(experiments: int, seeds: int) -> int:
    """Experiments of one program: all of a seed's, in at least two groups where that is worth it.

    >>> from fairfl.simulation.engine import group_width
    >>> group_width(5, seeds=5), group_width(8, seeds=1), group_width(100, seeds=1)
    (5, 4, 34)
    """
    groups = -(-experiments // WIDEST)
    if seeds * groups == 1 and experiments >= 4:
        groups = 2
    return -(-experiments // groups)


def lane_count(plan: Planner) -> int:
    """Clients side by side for a model that trains alone: what makes its first rounds shortest.

    One step of P lanes costs about 1 + LANE_COST (P - 1) steps of one; a round takes as many as its
    fullest lane. With one client that outweighs all others, more lanes only idle.
    """
    steps = [-(-plan.read[plan.draw(round)[0]] // plan.batch) for round in range(16)]

    def cost(lanes: int) -> float:
        fullest = sum(int(np.max(lay_out(s, lanes)[0] + s)) for s in steps)
        return fullest * (1 + LANE_COST * (lanes - 1))

    return min(range(1, min(MOST_LANES, plan.cohort) + 1), key=cost)


def groups_of(
    data: FederatedData, model: Model, algorithm: Algorithm, chosen: Settings
) -> list[Group]:
    """The experiments in groups of one width; a remainder is padded with its own last member."""
    experiments, run = algorithm.experiments, uuid.uuid4().hex
    bare = _without_values(algorithm)
    groups = []
    for s, seed in enumerate(chosen.seeds):
        for first in range(0, len(experiments), chosen.width):
            members = experiments[first : first + chosen.width]
            padding = [members[-1]] * (chosen.width - len(members))
            task = Task(
                run=run,
                data=data.fingerprint,
                model=model,
                algorithm=bare,
                cohort=chosen.cohort,
                seed=seed,
                split_seed=chosen.split_seed,
                lanes=chosen.lanes,
                x64=chosen.x64,
                members=tuple(members + padding),
            )
            offset = s * len(experiments) + first
            groups.append(Group(task, tuple(range(offset, offset + len(members)))))
    return groups


def _without_values(algorithm: Algorithm) -> Algorithm:
    """A task carries its members' values, not the whole sweep's."""
    return Algorithm(**{**vars(algorithm), "hyper": {}})


def simulate(
    data: FederatedData,
    groups: list[Group],
    chosen: Settings,
    executor: Executor | None = None,
    on_chunk: Callable[[Progress], None] | None = None,
) -> None:
    """Advance every group from where it stands to the last round; an error in one stops them all.

    Ctrl-C ends it as Interrupted, when every group has finished the chunk that was under way.
    """
    DATA.get(data.fingerprint, lambda: data)
    try:
        with _workers(executor, len(groups)) as pool:
            _drive(pool, data, groups, chosen, on_chunk)
    finally:
        release(groups[0].task.run)
        forget(data.fingerprint)


@contextmanager
def _workers(executor: Executor | None, groups: int) -> Iterator[Executor]:
    """The given executor, or local threads: JAX lets go of the interpreter lock."""
    if executor is not None:
        yield executor
        return
    threads = ThreadPoolExecutor(min(groups, os.cpu_count() or 1), thread_name_prefix="fairfl")
    try:
        yield threads
    finally:
        threads.shutdown(wait=True, cancel_futures=True)


def _drive(
    pool: Executor,
    data: FederatedData,
    groups: list[Group],
    chosen: Settings,
    on_chunk: Callable[[Progress], None] | None,
) -> None:
    began = time.perf_counter()
    total = chosen.rounds * len(groups)
    going = [group for group in groups if not _complete(group, chosen)]
    pending = {_submit(pool, group, chosen): (group, time.perf_counter()) for group in going}
    with heard() as asked:
        try:
            while pending:
                ready, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in ready:
                    group, submitted = pending.pop(future)
                    answer = future.result()
                    missing = isinstance(answer, Missing)
                    if not missing:
                        _record(group, answer, data, time.perf_counter() - submitted)
                        if on_chunk:
                            done = sum(g.done for g in groups)
                            on_chunk(Progress(done, total, time.perf_counter() - began, group))
                    if not asked.is_set() and not _complete(group, chosen):
                        again = _submit(pool, group, chosen, data if missing else None)
                        pending[again] = (group, time.perf_counter())
                if asked.is_set():
                    # Of what is left only the chunks under way are waited for.
                    pending = {f: about for f, about in pending.items() if not f.cancel()}
        finally:
            for future in pending:
                future.cancel()
    if asked.is_set():
        raise Interrupted


def _complete(group: Group, chosen: Settings) -> bool:
    """All rounds are done, or nobody is left, and the model that stands has been evaluated."""
    last = group.dead or group.done == chosen.rounds
    return last and group.done in group.evaluations


def _submit(
    pool: Executor, group: Group, chosen: Settings, data: FederatedData | None = None
) -> "Future[Advanced | Missing]":
    """Ask for the next rounds: up to the next evaluation, about SECONDS at the pace so far."""
    if group.dead:
        return pool.submit(advance, group.task, group.carry, group.done, group.done, True, data)
    boundary = (group.done // chosen.evaluate_every + 1) * chosen.evaluate_every
    stop = min(boundary, chosen.rounds)
    affordable = int(SECONDS / group.pace) if group.pace else 1
    stop = min(stop, group.done + max(1, affordable))
    evaluates = stop in (boundary, chosen.rounds)
    return pool.submit(advance, group.task, group.carry, group.done, stop, evaluates, data)


def _record(group: Group, got: Advanced, data: FederatedData, seconds: float) -> None:
    if got.rounds is not None:
        group.pace = seconds / len(got.rounds.ids)
        _record_rounds(group, got.carry, got.rounds, data)
    if got.evaluation is not None:
        _record_evaluation(group, got.evaluation, data)
    if got.personal is not None:
        _record_personal(group, got.personal, data)


def _record_rounds(group: Group, carry: Carry, rounds: Rounds, data: FederatedData) -> None:
    members = len(group.places)
    rounds, died = _until_all_are_dead(rounds, members)
    info = rounds.info
    _check_losses(group, rounds, data)
    refused = ~info.accepted & _alive_before(group, info)[:, None]
    if group.quarantined is None:
        group.quarantined = np.zeros((data.clients, info.accepted.shape[-1]), np.int64)
    np.add.at(group.quarantined, rounds.ids, refused)
    reported = {
        "loss": info.loss,
        "effective_step": info.effective_step,
        "coefficient_spread": info.coefficient_spread,
        "quarantined": refused.sum(axis=1),
        "alive": info.alive,
        **info.rule,
    }
    group.history.append({name: column[:, :members] for name, column in reported.items()})
    group.carry = carry
    group.done += len(rounds.ids)
    group.dead = died


def _until_all_are_dead(rounds: Rounds, members: int) -> tuple[Rounds, bool]:
    """The rounds up to the one that nobody survived, wherever in a chunk that was."""
    alive = rounds.info.alive[:, :members].any(axis=1)
    if alive.all():
        return rounds, False
    last = int(np.argmin(alive)) + 1
    info = jax.tree.map(lambda column: column[:last], rounds.info)
    return Rounds(rounds.ids[:last], info), True


def _record_evaluation(group: Group, got: Evaluations, data: FederatedData) -> None:
    """Fairness of every evaluation is kept; every client's own numbers only for fewer clients."""
    group.evaluations = _kept(group.evaluations, data) | {group.done: got}
    group.fairness[group.done] = _every(got, group, data)


def _record_personal(group: Group, got: Evaluations, data: FederatedData) -> None:
    """The same of the models that clients keep."""
    group.personal_evaluations = _kept(group.personal_evaluations, data) | {group.done: got}
    group.personal_fairness[group.done] = _every(got, group, data)


def _kept(
    evaluations: dict[int, Evaluations | None], data: FederatedData
) -> dict[int, Evaluations | None]:
    few = data.clients <= CLIENTS_IN_HISTORY
    return evaluations if few else dict.fromkeys(evaluations)


def _every(
    got: Evaluations, group: Group, data: FederatedData
) -> tuple[list[Fairness] | None, ...]:
    return tuple(_fairness(evaluation, data, len(group.places)) for evaluation in got)


def _fairness(evaluation: Evaluation, data: FederatedData, members: int) -> list[Fairness] | None:
    """One Fairness per experiment, over the clients that have rows in the split."""
    here = evaluation.size > 0
    if not here.any():
        return None
    measure = fairness_of_losses if data.task == "regression" else fairness
    values = evaluation.loss if data.task == "regression" else evaluation.accuracy
    values = np.where(np.isfinite(values), values, np.nan)
    names = [data.ids[k] for k in np.flatnonzero(here)]
    return [measure(values[here, m], evaluation.size[here], names) for m in range(members)]


def _alive_before(group: Group, info: Info) -> Bool[np.ndarray, "rounds models"]:
    alive = info.alive
    first = np.ones_like(alive[:1]) if group.carry is None else group.carry.alive[None]
    return np.concatenate([first, alive[:-1]])


def _check_losses(group: Group, rounds: Rounds, data: FederatedData) -> None:
    """A power of a negative loss means nothing, so a rule that needs losses refuses them."""
    lowest: Float[np.ndarray, "rounds cohort"] = lowest_loss(rounds.info)
    if not group.task.algorithm.rule.needs.losses or not (lowest < 0).any():
        return
    round, place = np.argwhere(lowest < 0)[0]
    client = data.ids[rounds.ids[round, place]]
    raise ValueError(
        f"client {client!r} has the negative loss {lowest[round, place]:.3g} in round "
        f"{group.done + round + 1}, but {group.task.algorithm.rule.name} needs losses of 0 or "
        "more; add a constant to the loss or use fedavg"
    )


def member_values(groups: list[Group]) -> list[Mapping[str, float]]:
    """Hyper-parameters and seed of every experiment, in order."""
    return [
        {**group.task.members[m], "seed": group.task.seed}
        for group in groups
        for m in range(len(group.places))
    ]
