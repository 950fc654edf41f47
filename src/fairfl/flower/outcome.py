"""A federated run as a Result: the same tables, folder and report as a simulation's."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from flwr.app import ArrayRecord

from fairfl.algorithms import Algorithm
from fairfl.algorithms.samplers import effective, population
from fairfl.clients.about import About
from fairfl.clients.federated import SPLITS
from fairfl.flower.arrays import leaves
from fairfl.flower.evaluation import evaluation, fairness_of
from fairfl.flower.roster import Member, rows_of
from fairfl.flower.standing import Standing
from fairfl.flower.trust import OFF
from fairfl.runs import folder
from fairfl.runs.atomic import replaced
from fairfl.runs.configuration import configuration, data_object
from fairfl.runs.folder import CONFIGURATION
from fairfl.runs.json import text
from fairfl.runs.keeping import Keeper
from fairfl.runs.notes import naming, notes
from fairfl.runs.result import Experiment, Result


def about(name: str, roster: Sequence[Member]) -> About:
    """What is known of data that no server sees: whose they are, and how many rows."""
    digest = hashlib.sha256(repr([tuple(member) for member in roster]).encode()).hexdigest()
    return About(
        name=name,
        fingerprint=digest[:32],
        ids=tuple(member.name for member in roster),
        rows=sum(sum(member.rows) for member in roster),
        shape=(),
        task=roster[0].task,
        classes=None,
    )


def settings_of(
    algorithm: Algorithm, model: ArrayRecord, cohort: int, seed: int, every: int
) -> dict[str, Any]:
    """How a run is trained, beside the hyper-parameters of its experiment."""
    w, work = leaves(model), algorithm.work
    return {
        "engine": "flower",
        "model": f"{len(w)} arrays, {sum(leaf.size for leaf in w):,} numbers",
        "work": work.name,
        "epochs": work.epochs,
        "batch_size": work.batch_size,
        "rule": algorithm.rule.name,
        "server": algorithm.server.name,
        "cohort": cohort,
        "seeds": [seed],
        "evaluate_every": every,
    }


def labels_of(algorithm: Algorithm, seed: int) -> dict[str, float | int]:
    """What tells the experiment from others: its numbers, without bounds that never act."""
    one = algorithm.experiments[0]
    return {**{name: value for name, value in one.items() if value != OFF}, "seed": seed}


def sampler_of(algorithm: Algorithm, roster: Sequence[Member], cohort: int) -> str:
    """The sampler that acts: a cohort of all is everyone."""
    return effective(algorithm.sampler, population(rows_of(roster, "train")), cohort).name


def configuration_of(
    name: str,
    algorithm: Algorithm,
    roster: Sequence[Member],
    rounds: int,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that decides the bits of a run, beside what the clients do."""
    return configuration(
        data=about(name, roster),
        algorithm=algorithm.name,
        sampler=sampler_of(algorithm, roster, settings["cohort"]),
        weights=algorithm.weights,
        rounds=rounds,
        settings=settings,
        experiments=[labels_of(algorithm, settings["seeds"][0])],
    )


def result_of(
    name: str,
    algorithm: Algorithm,
    standing: Standing,
    answer: ArrayRecord,
    settings: Mapping[str, Any],
) -> Result:
    """The run so far as a result, with everything that should be said about it."""
    roster, seed = standing.roster, settings["seeds"][0]
    labels = labels_of(algorithm, seed)
    sampler = sampler_of(algorithm, roster, settings["cohort"])
    member = Experiment(
        hyper={name: value for name, value in labels.items() if name != "seed"},
        seed=seed,
        params=dict(zip(answer, map(np.array, leaves(answer)), strict=True)),
        trace=_columns(standing.trace),
        fairness={
            done: {split: fairness_of(roster, split, found[split]) for split in SPLITS}
            for done, found in standing.evaluations.items()
        },
        evaluations={
            done: {split: evaluation(roster, split, found[split]) for split in SPLITS}
            for done, found in standing.evaluations.items()
        },
        quarantined=np.array([standing.quarantined[one.name] for one in roster], np.int64),
    )
    result = Result(
        data=about(name, roster),
        algorithm=algorithm.name,
        sampler=sampler,
        weights=algorithm.weights,
        rounds=standing.done,
        seconds=standing.seconds,
        members=[member],
        settings=settings,
    )
    return _with_notes(result, algorithm, standing)


def write(keeper: Keeper, result: Result) -> None:
    """Finish the run's folder; its first files, again, know of the clients that joined later."""
    first = {"data.json": data_object(result.data), CONFIGURATION: _finally(keeper, result)}
    for name, content in first.items():
        with replaced(keeper.place / name) as stream:
            stream.write(text(content).encode())
    keeper.finish(result)


def _finally(keeper: Keeper, result: Result) -> dict[str, Any]:
    return {**folder.configuration_of(result), "command": keeper.command}


def _columns(trace: Sequence[Mapping[str, float]]) -> dict[str, np.ndarray]:
    """One value per round; NaN where a round that changed nothing has none."""
    names = dict.fromkeys(name for row in trace for name in row)
    columns = {name: np.array([row.get(name, np.nan) for row in trace]) for name in names}
    counts = {name: columns[name].astype(np.int64) for name in ("quarantined", "absent")}
    return {**columns, **counts, "alive": columns["alive"].astype(bool)}


def _with_notes(result: Result, algorithm: Algorithm, standing: Standing) -> Result:
    said = notes(result, algorithm.sampler.name, refused="could not be used")
    more = [*_refused(standing), *_clipped(standing), *_adaptive(standing)]
    return replace(said, notes=[*said.notes, *more])


def _refused(standing: Standing) -> list[str]:
    """Why replies were missing or put aside, the most frequent reason of each client."""
    return [
        f"{name} did not count {found.total()} times, mostly because {reason} ({times} times)."
        for name, found in sorted(standing.refused.items())
        for reason, times in found.most_common(1)
    ]


def _clipped(standing: Standing) -> list[str]:
    """Whose losses were bounded; the state of a rule that bounds none has no such count."""
    clipped = np.asarray(getattr(standing.states.rule, "clipped", []))
    names = [
        f"{standing.roster[k].name} ({int(clipped[k])} rounds)" for k in np.flatnonzero(clipped)
    ]
    if not names:
        return []
    return [
        f"The loss of {naming(names)} was clipped before it was weighed, as far above the cohort's "
        "losses or the client's own last one; trust= says how far replies are believed."
    ]


def _adaptive(standing: Standing) -> list[str]:
    if not standing.adaptive:
        return []
    return [
        f"{naming(standing.adaptive)} trained with an adaptive optimiser, for which "
        "L = 1 / learning_rate does not hold; give the algorithm an L that was tried."
    ]
