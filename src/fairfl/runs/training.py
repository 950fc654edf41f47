"""train: data, a model and an algorithm in, a Result out."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import jax
import numpy as np

from fairfl.algorithms import Algorithm
from fairfl.algorithms.algorithm import LARGEST_SEED, listed, whole
from fairfl.clients import FederatedData
from fairfl.clients.about import about
from fairfl.clients.federated import SPLITS
from fairfl.models import Model, stack
from fairfl.models.fit import check_fit
from fairfl.models.model import width
from fairfl.runs.configuration import settings_of
from fairfl.runs.notes import notes
from fairfl.runs.result import Experiment, Result
from fairfl.simulation.engine import Group, Progress, settings, simulate
from fairfl.simulation.evaluation import Evaluation

EVALUATIONS = 20
"""Evaluations of a run that does not say how often."""


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
    on_chunk: Callable[[Progress], None] | None = None,
) -> Result:
    """Train every experiment of the algorithm's sweep, once per seed.

    A seed sets the split, the initial model, the cohorts and the shuffles; `split_seed` pins the
    split while seeds vary. `width` sets how many experiments share a program and `lanes` how many
    clients run side by side; both follow from the configuration when they are not given.

    >>> import fairfl
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=3, cohort=5, seed=[0, 1])
    >>> result.experiments
    [{'learning_rate': 0.1, 'seed': 0}, {'learning_rate': 0.1, 'seed': 1}]
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
    check_fit(model, data)
    began = time.perf_counter()
    chosen = settings(
        data, model, algorithm, rounds, cohort, seeds, split_seed, every, width, lanes, x64
    )
    groups = simulate(data, model, algorithm, chosen, executor, on_chunk)
    members = [experiment for group in groups for experiment in _experiments(group)]
    result = Result(
        data=about(data),
        algorithm=algorithm.name,
        sampler=chosen.sampler,
        weights=algorithm.weights,
        rounds=rounds,
        seconds=time.perf_counter() - began,
        members=members,
        settings=settings_of(model, algorithm, chosen),
    )
    return notes(result, asked=algorithm.sampler.name)


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
    return Experiment(
        hyper=group.task.members[m],
        seed=group.task.seed,
        params=jax.tree.map(lambda leaf: np.asarray(leaf[..., m]), w),
        trace={name: column[:, m] for name, column in traces.items()},
        fairness={
            done: {s: None if f is None else f[m] for s, f in zip(SPLITS, found, strict=True)}
            for done, found in group.fairness.items()
        },
        evaluations={
            done: {s: _one(e, m) for s, e in zip(SPLITS, found, strict=True)}
            for done, found in group.evaluations.items()
            if found is not None
        },
        quarantined=group.quarantined[:, m],
    )


def _one(evaluation: Evaluation, m: int) -> Evaluation:
    """One experiment's numbers, as columns of clients."""
    return Evaluation(evaluation.accuracy[:, m], evaluation.loss[:, m], evaluation.size)
