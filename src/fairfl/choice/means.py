"""Settings of a family as the choice compares them: means over the seeds."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fairfl.clients.federated import SplitName
from fairfl.runs import Result


class Mean(NamedTuple):
    """One setting of the hyper-parameters; its metrics are means over the seeds."""

    hyper: Mapping[str, float]
    places: Sequence[int]
    average: float
    worst10: float
    variance: float
    stopped: bool

    @property
    def q(self) -> float:
        return self.hyper["q"]


class Family(NamedTuple):
    """The q = 0 to compare with, and every q > 0 whose other hyper-parameters are the same."""

    plain: Mean
    candidates: list[Mean]


def means(result: Result, split: SplitName) -> list[Mean]:
    """Every setting, in the order of the experiments."""
    found = result.fairness(split)
    places: dict[tuple[float, ...], list[int]] = {}
    for place, member in enumerate(result.members):
        places.setdefault(tuple(member.hyper.values()), []).append(place)
    return [
        Mean(
            hyper=dict(result.members[same[0]].hyper),
            places=same,
            average=float(np.mean(found["average"][same])),
            worst10=float(np.mean(found["worst10"][same])),
            variance=float(np.mean(found["variance"][same])),
            stopped=any(result.members[place].stopped for place in same),
        )
        for same in places.values()
    ]


def family(result: Result, split: SplitName) -> Family:
    """What there is to choose from. Where other hyper-parameters vary too, the q = 0 with the best
    average on the split sets them, as the paper tunes them on FedAvg."""
    if not all("q" in member.hyper for member in result.members):
        raise ValueError(f"{result.algorithm} has no q to choose; train q_fedavg or q_fedsgd")
    found = means(result, split)
    plain = best([mean for mean in found if mean.q == 0], result.data.task)
    same = [mean for mean in found if mean.q > 0 and others(mean.hyper) == others(plain.hyper)]
    if not same:
        raise ValueError("there is no q to choose: only q=0 was trained; add others, such as q=1")
    return Family(plain, same)


def best(plain: Sequence[Mean], task: str) -> Mean:
    """Of several q = 0, the one with the highest average accuracy, or the lowest average loss."""
    if not plain:
        raise ValueError("choosing q compares with q=0, which was not trained; add q=0")
    whole = [mean for mean in plain if not mean.stopped and np.isfinite(mean.average)]
    if not whole:
        raise ValueError(
            "choosing q compares with q=0, but its training stopped early; "
            "try a smaller learning rate"
        )
    sign = -1 if task == "regression" else 1
    return max(whole, key=lambda mean: sign * mean.average)


def others(hyper: Mapping[str, float]) -> dict[str, float]:
    """The hyper-parameters but q.

    >>> from fairfl.choice.means import others
    >>> others({"q": 1.0, "learning_rate": 0.1})
    {'learning_rate': 0.1}
    """
    return {name: value for name, value in hyper.items() if name != "q"}
