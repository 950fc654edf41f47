"""Comparison: several methods with the same seeds, each at the setting that it was tuned to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairfl.clients.federated import SplitName
from fairfl.comparison.differences import COMPARED, Difference, differences
from fairfl.comparison.tuning import Tuned, tuned
from fairfl.metrics import Fairness, interval
from fairfl.runs import Result
from fairfl.runs.result import Columns, columns

PLAIN = "fedavg"
"""The baseline, where it is among the methods and no other was asked for."""


@dataclass(frozen=True)
class Comparison:
    """What was found: every setting of every method, and the one that each is shown with.

    `results` and `tuned` have the methods by name, in the order of the comparison; the differences
    are those to `baseline`. `notes` say what to know beside the numbers.

    >>> import fairfl
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> methods = [fairfl.fedavg(), fairfl.q_fedavg(q=[0.1, 1])]
    >>> found = fairfl.compare(data, model, methods, rounds=3, cohort=5, seeds=2)
    >>> found.methods, found.tuned["q-fedavg"].tried, found["q-fedavg"].fairness("test")["seed"]
    (('fedavg', 'q-fedavg'), 2, array([0, 1]))
    """

    results: Mapping[str, Result]
    tuned: Mapping[str, Tuned]
    baseline: str
    said: Sequence[str] = ()

    def __getitem__(self, method: str) -> Result:
        """A method at the setting that it is shown with: one experiment per seed."""
        result, hyper = self.results[method], self.tuned[method].hyper
        return replace(result, members=[m for m in result.members if dict(m.hyper) == dict(hyper)])

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self.results)

    @property
    def comparisons(self) -> int:
        """How many differences are tested."""
        return len(COMPARED) * (len(self.results) - 1)

    @property
    def seconds(self) -> float:
        return sum(result.seconds for result in self.results.values())

    def fairness(self, split: SplitName = "test") -> Columns:
        """How evenly each method serves its clients: one row per method and seed."""
        rows = []
        for method in self.methods:
            found = self[method].fairness(split)
            rows += [
                {"method": method, "seed": seed, **{m: found[m][i] for m in Fairness._fields}}
                for i, seed in enumerate(found["seed"].tolist())
            ]
        return columns(rows)

    def summary(self, split: SplitName = "test") -> Columns:
        """One row per method: every metric as its mean over the seeds, with deviation and 95 %
        interval, and how many seeds stopped early."""
        return columns([self._summed(method, split) for method in self.methods])

    def _summed(self, method: str, split: SplitName) -> dict[str, str | float]:
        result = self[method]
        found = result.fairness(split)
        row: dict[str, str | float] = {"method": method, "seeds": len(result)}
        row["stopped"] = sum(member.stopped for member in result.members)
        for metric in Fairness._fields:
            span = interval(found[metric])
            row |= {metric: span.mean, f"{metric}_deviation": span.deviation}
            row |= {f"{metric}_low": span.low, f"{metric}_high": span.high}
        return row

    def differences(self, split: SplitName = "test") -> Columns:
        """Paired differences to the baseline: one row per method and metric (see `Difference`)."""
        plain = self[self.baseline]
        rows: list[Difference] = []
        for method in self.methods:
            if method != self.baseline:
                rows += differences(method, self[method], plain, self.comparisons, split)
        if not rows:
            return {name: np.array([]) for name in Difference._fields}
        return columns([row._asdict() for row in rows])


def comparison_of(
    results: Mapping[str, Result], baseline: str | None = None, said: Sequence[str] = ()
) -> Comparison:
    """Tune every method by the same protocol, the baseline first.

    >>> import fairfl
    >>> from fairfl.comparison.comparison import comparison_of
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> results = {"mine": fairfl.train(data, model, fairfl.fedavg(), rounds=3, cohort=5)}
    >>> comparison_of(results).baseline
    'mine'
    """
    chosen = baseline_of(tuple(results), baseline)
    first, plain = tuned(results[chosen], chosen, None)
    found = {
        method: first if method == chosen else tuned(result, chosen, plain)[0]
        for method, result in results.items()
    }
    return Comparison(results, found, chosen, said)


def baseline_of(methods: Sequence[str], asked: str | None) -> str:
    """What the others are compared with: fedavg, or the first where it is not there.

    >>> from fairfl.comparison.comparison import baseline_of
    >>> baseline_of(["afl", "fedavg"], None), baseline_of(["afl", "term"], None)
    ('fedavg', 'afl')
    """
    if asked is not None and asked not in methods:
        raise ValueError(
            f"the baseline {asked!r} is not among the methods; choose one of {', '.join(methods)}"
        )
    return asked or (PLAIN if PLAIN in methods else methods[0])
