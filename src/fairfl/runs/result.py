"""Result: what a training run found, as columns that any table library reads."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import numpy as np

from fairfl.clients.about import About
from fairfl.clients.federated import SPLITS, SplitName
from fairfl.metrics import Fairness
from fairfl.simulation.evaluation import Evaluation

Columns = dict[str, np.ndarray]

HISTORY_METRICS = ("average", "average_clients", "worst10", "variance")
"""The metrics that the history shows for every evaluated round and split."""


class Measured(NamedTuple):
    """How evenly and how well clients were served, keyed by the rounds done."""

    fairness: Mapping[int, Mapping[SplitName, Fairness | None]]
    evaluations: Mapping[int, Mapping[SplitName, Evaluation]]


@dataclass(frozen=True)
class Experiment:
    """One experiment: its hyper-parameters, the model it ended with, and what happened.

    `trace` holds one value per round; `fairness` and `evaluations` are keyed by the rounds done.
    `personal` is the same of the models that clients keep, where they keep one.
    """

    hyper: Mapping[str, float]
    seed: int
    params: Any
    trace: Mapping[str, np.ndarray]
    fairness: Mapping[int, Mapping[SplitName, Fairness | None]]
    evaluations: Mapping[int, Mapping[SplitName, Evaluation]]
    quarantined: np.ndarray
    personal: Measured | None = None

    @property
    def labels(self) -> dict[str, float | int]:
        return {**self.hyper, "seed": self.seed}

    @property
    def rounds(self) -> int:
        """Rounds after which the model is the one that is returned."""
        return int(self.trace["alive"].sum())

    @property
    def stopped(self) -> bool:
        """Nobody was left to train before all rounds were done."""
        return not bool(self.trace["alive"][-1])

    @property
    def final(self) -> Mapping[SplitName, Evaluation]:
        return self.evaluations[max(self.evaluations)]


@dataclass(frozen=True)
class Result:
    """The trained family: one entry per experiment, seeds outermost.

    `settings` is how it was trained, beside the hyper-parameters of each experiment.

    >>> import fairfl
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=2, cohort=5)
    >>> len(result), result[1].fairness("test")["q"].tolist()
    (2, [1.0])
    """

    data: About
    algorithm: str
    sampler: str
    weights: str
    rounds: int
    seconds: float
    members: Sequence[Experiment]
    notes: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, index: int) -> "Result":
        return replace(self, members=[self.members[index]])

    @property
    def experiments(self) -> list[dict[str, float | int]]:
        """Hyper-parameters and seed of every experiment."""
        return [member.labels for member in self.members]

    @property
    def params(self) -> Any:
        """The models' parameters; the leading axis is the experiment."""
        return jax.tree.map(lambda *leaves: np.stack(leaves), *[m.params for m in self.members])

    @property
    def personal(self) -> "Result | None":
        """The same result with each client served by the model that it keeps (Ditto).

        None where clients keep none. `params` stay those of the model for all.

        >>> import fairfl
        >>> data = fairfl.datasets.load("synthetic", clients=20)
        >>> model = fairfl.models.softmax_regression(data)
        >>> result = fairfl.train(data, model, fairfl.ditto(), rounds=2, cohort=5)
        >>> list(result.personal.fairness("test")) == list(result.fairness("test"))
        True
        """
        own = [
            replace(
                m, fairness=m.personal.fairness, evaluations=m.personal.evaluations, personal=None
            )
            for m in self.members
            if m.personal is not None
        ]
        return replace(self, members=own) if own else None

    def fairness(self, split: SplitName = "test") -> Columns:
        """How evenly each model serves its clients: one row per experiment."""
        rows = []
        for member in self.members:
            found = member.fairness[max(member.fairness)][check_split(split)]
            if found is None:
                raise ValueError(self._absent(split))
            rows.append({**member.labels, **found._asdict()})
        return columns(rows)

    def _absent(self, split: SplitName) -> str:
        if split == "train":
            return (
                f"{self.algorithm} evaluates no training rows, because clients adapt before they "
                "are evaluated; read `loss` in the history, or another split"
            )
        return f"no client has rows in the {split} split; give the data a {split} part"

    def clients(self, split: SplitName = "test") -> Columns:
        """Every client of every experiment: one row each, clients without rows left out."""
        return _joined([_client_columns(self.data, m, check_split(split)) for m in self.members])

    def missing(self, split: SplitName = "test") -> tuple[Hashable, ...]:
        """Clients with no rows in the split of any seed, so in none of its metrics."""
        sizes = [m.final[check_split(split)].size for m in self.members]
        absent = np.flatnonzero(np.max(sizes, axis=0) == 0)
        return tuple(self.data.ids[k] for k in absent)

    @property
    def history(self) -> Columns:
        """One row per experiment and round.

        loss: the cohort's mean F_k(w^t) before the round's update; effective_step: sum a_k;
        coefficient_spread: deviation of the a_k over their mean; quarantined: replies that were
        not finite; capped: curvature terms that were capped; and fairness where it was evaluated.
        """
        return _joined([_history(member) for member in self.members])

    @property
    def quarantined(self) -> Columns:
        """Clients whose replies were not finite, and in how many rounds, per experiment."""
        rows = [
            {**member.labels, "client": self.data.ids[k], "rounds": int(member.quarantined[k])}
            for member in self.members
            for k in np.flatnonzero(member.quarantined)
        ]
        return columns(rows) if rows else {"client": np.array([]), "rounds": np.array([], int)}


def check_split(split: str) -> SplitName:
    if split not in SPLITS:
        raise ValueError(f"there is no split {split!r}; choose one of {', '.join(SPLITS)}")
    return split  # type: ignore[return-value]


def columns(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Rows as columns; names that are not all numbers or all text stay what they are."""
    return {name: _column(name, [row[name] for row in rows]) for name in rows[0]}


def _column(name: str, values: list[Any]) -> np.ndarray:
    return named(values) if name == "client" else np.array(values)


def named(ids: Sequence[Hashable]) -> np.ndarray:
    """Client ids as a column: as they were given, never turned into text or taken apart."""
    if all(type(id) is str for id in ids) or all(type(id) is int for id in ids):
        return np.array(ids)
    column = np.empty(len(ids), object)
    for place, id in enumerate(ids):
        column[place] = id
    return column


def _joined(parts: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _client_columns(data: About, member: Experiment, split: SplitName) -> Columns:
    found = member.final[split]
    here = np.flatnonzero(found.size)
    labels = {name: np.full(len(here), value) for name, value in member.labels.items()}
    return {
        **labels,
        "client": named([data.ids[k] for k in here]),
        "size": found.size[here],
        "accuracy": found.accuracy[here],
        "loss": found.loss[here],
    }


def _history(member: Experiment) -> Columns:
    rounds = len(member.trace["loss"])
    labels = {name: np.full(rounds, value) for name, value in member.labels.items()}
    trace = {name: column for name, column in member.trace.items() if name != "alive"}
    return {**labels, "round": np.arange(1, rounds + 1), **trace, **_metric_columns(member, rounds)}


def _metric_columns(member: Experiment, rounds: int) -> Columns:
    """NaN but for the rounds that were evaluated."""
    found = {}
    for split in SPLITS:
        for metric in HISTORY_METRICS:
            column = np.full(rounds, np.nan)
            for done, fairness in member.fairness.items():
                if fairness[split] is not None:
                    column[done - 1] = getattr(fairness[split], metric)
            found[f"{split}_{metric}"] = column
    return found
