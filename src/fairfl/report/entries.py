"""Entries: what stands side by side in a report, each a model by a name, trained once per seed."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from fairfl.clients.federated import SPLITS, SplitName
from fairfl.metrics import Interval, interval, paired_interval
from fairfl.report.measure import Measure, measure
from fairfl.report.tables import settings
from fairfl.runs import Result
from fairfl.runs.result import Experiment


class Entry(NamedTuple):
    """One setting of one run, by the name that tells it from the others."""

    label: str
    result: Result
    places: Sequence[int]
    hyper: Mapping[str, float]

    @property
    def members(self) -> list[Experiment]:
        return [self.result.members[place] for place in self.places]

    @property
    def measure(self) -> Measure:
        return measure(self.result)


def entries(result: Result) -> list[Entry]:
    """The settings of a sweep, named by what varies between them, or by the algorithm.

    >>> import fairfl
    >>> from fairfl.report.entries import entries
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> family = fairfl.q_fedavg(q=[0, 1])
    >>> result = fairfl.train(data, model, family, rounds=2, cohort=5, seed=[0, 1])
    >>> [(entry.label, entry.places) for entry in entries(result)]
    [('q = 0', [0, 2]), ('q = 1', [1, 3])]
    """
    return side_by_side({"": result})


def side_by_side(results: Mapping[str, Result]) -> list[Entry]:
    """The settings of several runs, named by what varies between them: the algorithm, its
    hyper-parameters, sampler and weights; by the run's own name where none of these does.

    >>> import fairfl
    >>> from fairfl.report.entries import side_by_side
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> several = {"plain": fairfl.fedavg(), "even": fairfl.q_fedavg(q=[1, 5])}
    >>> train = lambda method: fairfl.train(data, model, method, rounds=1, cohort=5)
    >>> runs = {name: train(method) for name, method in several.items()}
    >>> [entry.label for entry in side_by_side(runs)]
    ['fedavg', 'q-fedavg, q = 1', 'q-fedavg, q = 5']
    """
    found = [(run, result, row) for run, result in results.items() for row in settings(result)]
    about = [_about(result, row.hyper) for _, result, row in found]
    labels = [_label(one, about) for one in about]
    return [
        Entry(_unlike(label, labels, run), result, row.places, row.hyper)
        for label, (run, result, row) in zip(labels, found, strict=True)
    ]


def _about(result: Result, hyper: Mapping[str, float]) -> dict[str, Any]:
    drawn = {"sampler": result.sampler, "weights": result.weights}
    return {"algorithm": result.algorithm, **hyper, **drawn}


def _label(one: Mapping[str, Any], about: Sequence[Mapping[str, Any]]) -> str:
    """What of one differs from any other of its algorithm, after the algorithm if that does."""
    alike = [other for other in about if other["algorithm"] == one["algorithm"]]
    varying = [name for name in one if len({other.get(name) for other in alike}) > 1]
    algorithm = [one["algorithm"]] if len(alike) < len(about) or not varying else []
    return ", ".join(algorithm + [_spelled(name, one[name]) for name in varying])


def _spelled(name: str, value: Any) -> str:
    word = name.replace("_", " ")
    return f"{word} {value}" if isinstance(value, str) else f"{word} = {value:g}"


def _unlike(label: str, labels: Sequence[str], run: str) -> str:
    return label if labels.count(label) == 1 else f"{run}: {label}"


def shown_split(results: Sequence[Result]) -> SplitName:
    """The split that a report shows: test where every run has one, else validation, else train.

    >>> import fairfl
    >>> from fairfl.report.entries import shown_split
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> shown_split([fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=5)])
    'test'
    """
    for split in reversed(SPLITS):
        if all(len(result.missing(split)) < result.data.clients for result in results):
            return split
    return "train"


def across(entry: Entry, split: SplitName, metric: str) -> Interval:
    """A fairness metric of an entry over its seeds, after the last round.

    >>> import fairfl
    >>> from fairfl.report.entries import across, entries
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=5, seed=[0, 1])
    >>> across(entries(result)[0], "test", "average").count
    2
    """
    return interval(per_seed(entry, split, metric))


def per_seed(entry: Entry, split: SplitName, metric: str) -> Float[np.ndarray, " seeds"]:
    """The values behind `across`, one per seed; NaN for a seed whose split has no rows."""
    found = [member.fairness[max(member.fairness)][split] for member in entry.members]
    return np.array([np.nan if one is None else getattr(one, metric) for one in found])


def difference(plain: Entry, other: Entry, split: SplitName, metric: str) -> Interval:
    """Paired where both were trained with the same seeds, which share the luck of the split."""
    first, second = (per_seed(entry, split, metric) for entry in (plain, other))
    if [m.seed for m in plain.members] == [m.seed for m in other.members]:
        return paired_interval(second, first)
    return interval([interval(second).mean - interval(first).mean])


def served(entry: Entry, split: SplitName) -> Float[np.ndarray, "seeds clients"]:
    """How each client is served, seed by seed: accuracy in percent, or loss; NaN without rows."""
    name = "accuracy" if entry.measure.rises else "loss"
    return np.stack([getattr(member.final[split], name) for member in entry.members])


def same_data(several: Sequence[Entry]) -> bool:
    """Whether all were trained on the same data, so that clients compare one by one."""
    return len({entry.result.data.fingerprint for entry in several}) == 1


def tuned(several: Sequence[Entry], hyper: Mapping[str, Any]) -> Entry | None:
    """The entry with these hyper-parameters, if there is one."""
    return next((entry for entry in several if dict(entry.hyper) == dict(hyper)), None)
