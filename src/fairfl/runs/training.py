"""train: data, a model and an algorithm in, a Result out."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from fairfl.algorithms import Algorithm
from fairfl.algorithms.algorithm import LARGEST_SEED, listed, whole
from fairfl.clients import FederatedData
from fairfl.clients.about import about
from fairfl.clients.federated import SPLITS
from fairfl.metrics import Fairness
from fairfl.models import Model, stack
from fairfl.models.fit import check_fit
from fairfl.models.model import width
from fairfl.runs.configuration import configuration, settings_of
from fairfl.runs.keeping import Keeper
from fairfl.runs.loading import load_run
from fairfl.runs.notes import notes
from fairfl.runs.result import Experiment, Measured, Result
from fairfl.runs.trees import formed, named
from fairfl.simulation.engine import (
    Group,
    Progress,
    Settings,
    groups_of,
    member_values,
    settings,
    simulate,
)
from fairfl.simulation.evaluation import Evaluation, Evaluations
from fairfl.simulation.interruption import Interrupted
from fairfl.simulation.worker import carry_shape

EVALUATIONS = 20
"""Evaluations of a run that does not say how often."""

OnChunk = Callable[[Progress], None] | None
"""Called after every chunk of rounds of a group of experiments."""


def train(
    data: FederatedData,
    model: Model,
    algorithm: Algorithm,
    *,
    rounds: int,
    cohort: int = 10,
    seed: int | Sequence[int] = 0,
    split_seed: int | None = None,
    evaluate_every: int | None = None,
    x64: bool = False,
    width: int | None = None,
    lanes: int | None = None,
    executor: Executor | None = None,
    on_chunk: OnChunk = None,
    out: Path | str | Keeper | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> Result:
    """Train every experiment of the algorithm's sweep, once per seed.

    A seed sets the split, the initial model, the cohorts and the shuffles; `split_seed` pins the
    split while seeds vary. `width` sets how many experiments share a program and `lanes` how many
    clients run side by side; both follow from the configuration when they are not given.

    `out` names a folder that keeps the run: its configuration from the start, checkpoints on the
    way, and what `load_run` reads at the end. Ctrl-C finishes the chunk and saves. `resume` goes on
    with the run that is there, to the same bytes, and begins where there is none; `overwrite`
    replaces it.

    >>> import fairfl
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=3, cohort=5, seed=[0, 1])
    >>> result.experiments
    [{'learning_rate': 0.1, 'seed': 0}, {'learning_rate': 0.1, 'seed': 1}]
    """
    job = prepared(
        data,
        model,
        algorithm,
        rounds=rounds,
        cohort=cohort,
        seed=seed,
        split_seed=split_seed,
        evaluate_every=evaluate_every,
        x64=x64,
        width=width,
        lanes=lanes,
    )
    if out is None:
        if resume or overwrite:
            raise ValueError("resume and overwrite are for a run that is kept; add out=FOLDER")
        return _trained(job, executor, on_chunk)
    if isinstance(out, Keeper):
        return _kept(job, executor, on_chunk, out)
    with Keeper(Path(out), resume, overwrite) as keeper:
        result = _kept(job, executor, on_chunk, keeper)
        keeper.finish(result)
    return result


class Job(NamedTuple):
    """What is to be trained on what, checked."""

    data: FederatedData
    model: Model
    algorithm: Algorithm
    chosen: Settings


def prepared(
    data: FederatedData,
    model: Model,
    algorithm: Algorithm,
    *,
    rounds: int,
    cohort: int,
    seed: int | Sequence[int],
    split_seed: int | None,
    evaluate_every: int | None,
    x64: bool = False,
    width: int | None = None,
    lanes: int | None = None,
) -> Job:
    """Check what a user asked for, or say in one sentence what cannot be trained.

    >>> import fairfl
    >>> from fairfl.runs.training import prepared
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> how = {"cohort": 5, "seed": [0], "split_seed": None, "evaluate_every": None}
    >>> job = prepared(data, model, fairfl.fedavg(), rounds=60, **how)
    >>> job.chosen.evaluate_every
    3
    """
    whole("rounds", rounds)
    whole("cohort", cohort)
    seeds, every = check_seeds(seed), max(1, rounds // EVALUATIONS)
    if evaluate_every is not None:
        every = whole("evaluate_every", evaluate_every)
    if split_seed is not None:
        whole("split_seed", split_seed, least=0, most=LARGEST_SEED)
    for name, value in {"width": width, "lanes": lanes}.items():
        if value is not None:
            whole(name, value)
    with jax.enable_x64(x64):
        check_fit(model, data)
    chosen = settings(
        data, model, algorithm, rounds, cohort, seeds, split_seed, every, width, lanes, x64
    )
    return Job(data, model, algorithm, chosen)


def _trained(job: Job, executor: Executor | None, on_chunk: OnChunk) -> Result:
    """Training that leaves nothing on the disk."""
    began = time.perf_counter()
    groups = groups_of(job.data, job.model, job.algorithm, job.chosen)
    simulate(job.data, groups, job.chosen, executor, on_chunk)
    return _result(job, groups, time.perf_counter() - began)


def _kept(job: Job, executor: Executor | None, on_chunk: OnChunk, keeper: Keeper) -> Result:
    """Training from the keeper's newest checkpoint, up to the last one."""
    groups = groups_of(job.data, job.model, job.algorithm, job.chosen)
    read = job.data.preprocessing
    keeper.begin(_configuration(job, groups), about(job.data), read and read.to_json())
    if keeper.finished:
        return _as_trained(load_run(keeper.place), job.model)

    def after(progress: Progress) -> None:
        keeper.after_chunk()
        if on_chunk:
            on_chunk(progress)

    try:
        keeper.go_on(groups, lambda group: carry_shape(group.task, job.data))
        simulate(job.data, groups, job.chosen, executor, after)
    except Interrupted:
        keeper.save()
        raise
    except BaseException:
        keeper.leave()
        raise
    keeper.save()
    return _result(job, groups, keeper.seconds)


def _configuration(job: Job, groups: list[Group]) -> dict[str, Any]:
    return configuration(
        data=about(job.data),
        algorithm=job.algorithm.name,
        sampler=job.chosen.sampler,
        weights=job.algorithm.weights,
        rounds=job.chosen.rounds,
        settings=settings_of(job.model, job.algorithm, job.chosen),
        experiments=member_values(groups),
    )


def _as_trained(result: Result, model: Model) -> Result:
    """Parameters in the model's own kind of tree, which a file does not keep."""
    form = jax.eval_shape(model.init, jax.random.key(0))
    members = [replace(m, params=formed(form, named(m.params))) for m in result.members]
    return replace(result, members=members)


def _result(job: Job, groups: list[Group], seconds: float) -> Result:
    result = Result(
        data=about(job.data),
        algorithm=job.algorithm.name,
        sampler=job.chosen.sampler,
        weights=job.algorithm.weights,
        rounds=job.chosen.rounds,
        seconds=seconds,
        members=[experiment for group in groups for experiment in _experiments(group)],
        settings=settings_of(job.model, job.algorithm, job.chosen),
    )
    return notes(result, asked=job.algorithm.sampler.name)


def check_seeds(seed: int | Sequence[int]) -> list[int]:
    """One seed or a list of different ones."""
    seeds = listed(seed)
    if not seeds:
        raise ValueError("seed is an empty list; give at least one seed")
    checked = [whole("seed", s, least=0, most=LARGEST_SEED) for s in seeds]
    if len(set(checked)) < len(checked):
        raise ValueError(f"seed={seeds} names a seed twice; list each seed once")
    return checked


def _experiments(group: Group) -> list[Experiment]:
    traces = {
        name: np.concatenate([part[name] for part in group.history]) for name in group.history[0]
    }
    return [_experiment(group, traces, m) for m in range(len(group.places))]


def _experiment(group: Group, traces: dict[str, np.ndarray], m: int) -> Experiment:
    assert group.carry is not None
    assert group.quarantined is not None
    w = group.task.algorithm.answer.read(group.carry.answer, group.carry.w)
    w = stack(group.task.model, width(w)).unpack(w)
    served = _measured(group.fairness, group.evaluations, m)
    return Experiment(
        hyper=group.task.members[m],
        seed=group.task.seed,
        params=jax.tree.map(lambda leaf: np.asarray(leaf[..., m]), w),
        trace={name: column[:, m] for name, column in traces.items()},
        fairness=served.fairness,
        evaluations=served.evaluations,
        quarantined=group.quarantined[:, m],
        personal=_measured(group.personal_fairness, group.personal_evaluations, m)
        if group.personal_fairness
        else None,
    )


def _measured(
    fairness: Mapping[int, tuple[list[Fairness] | None, ...]],
    evaluations: Mapping[int, Evaluations | None],
    m: int,
) -> Measured:
    """One experiment's part of what a group measured."""
    return Measured(
        fairness={
            done: {s: None if f is None else f[m] for s, f in zip(SPLITS, found, strict=True)}
            for done, found in fairness.items()
        },
        evaluations={
            done: {s: _one(e, m) for s, e in zip(SPLITS, found, strict=True)}
            for done, found in evaluations.items()
            if found is not None
        },
    )


def _one(evaluation: Evaluation, m: int) -> Evaluation:
    """One experiment's numbers, as columns of clients."""
    return Evaluation(evaluation.accuracy[:, m], evaluation.loss[:, m], evaluation.size)
