"""The paper's protocol: the most even model that costs next to nothing on average."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fairfl.choice.means import Mean, family
from fairfl.clients.federated import SplitName
from fairfl.runs import Result

WITHIN = 1.0
"""What a q may cost: percentage points of average accuracy, or percent of a regression's loss."""


@dataclass(frozen=True)
class Choice:
    """The hyper-parameters to use, whether a q > 0 qualified, and why, in one sentence.

    >>> import fairfl
    >>> fairfl.Choice({"q": 1.0}, True, "q = 1 lowers the variance").hyperparameters["q"]
    1.0
    """

    hyperparameters: Mapping[str, float]
    qualified: bool
    reason: str


def choose_q(result: Result, split: SplitName = "validation") -> Choice:
    """The paper's protocol (appendix "Hyperparameters"), on means over the seeds of a split:

        q* = argmin_q { variance(q) : variance(q) < variance(0), average(q) >= average(0) - 1 }

    averages in percentage points; q = 0 where no q qualifies. Where other hyper-parameters vary
    too, the q = 0 with the best average sets them, as the paper tunes them on FedAvg. A q that
    stopped early for any seed does not qualify.

    >>> import fairfl
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=3, cohort=5)
    >>> fairfl.choose_q(result).hyperparameters["learning_rate"]
    0.1
    """
    plain, candidates = family(result, split)
    measure = measure_of(result.data.task)
    found = [mean for mean in candidates if _qualifies(mean, plain, measure)]
    over = f"{split} data, mean of {_seeds(result)}"
    if not found:
        return Choice(plain.hyper, False, _unqualified(candidates, plain, measure, over))
    best = min(found, key=lambda mean: (mean.variance, mean.q))
    return Choice(best.hyper, True, _qualified(best, plain, measure, over))


def _seeds(result: Result) -> str:
    count = len({member.seed for member in result.members})
    return f"{count} seeds" if count > 1 else "1 seed"


class Measure(NamedTuple):
    """How a task speaks of its clients: accuracies are to rise, losses to fall."""

    noun: str
    unit: str
    units: str
    figures: str
    sign: int
    relative: bool


_ACCURACIES = Measure("accuracy", "point", "points", ".1f", sign=1, relative=False)
_LOSSES = Measure("loss", "percent", "percent", ".4g", sign=-1, relative=True)


def measure_of(task: str) -> Measure:
    """How results of a task are compared.

    >>> from fairfl.choice.protocol import measure_of
    >>> measure_of("binary").noun, measure_of("regression").noun
    ('accuracy', 'loss')
    """
    return _LOSSES if task == "regression" else _ACCURACIES


def cost(mean: Mean, plain: Mean, measure: Measure) -> float:
    """What the average loses, in the measure's unit; negative where it gains."""
    lost = measure.sign * (plain.average - mean.average)
    return 100 * lost / plain.average if measure.relative else lost


def _qualifies(mean: Mean, plain: Mean, measure: Measure) -> bool:
    even = mean.variance < plain.variance and not mean.stopped
    return even and cost(mean, plain, measure) <= WITHIN


def _effect(verb: str, mean: Mean, plain: Mean, measure: Measure) -> str:
    change = 100 * (mean.variance / plain.variance - 1)
    return (
        f"{verb} the variance of {measure.noun} over clients from {plain.variance:.4g} to "
        f"{mean.variance:.4g} ({change:+.2g} %) and the worst 10 % of clients from "
        f"{plain.worst10:{measure.figures}} to {mean.worst10:{measure.figures}}, "
        f"{_price(cost(mean, plain, measure), measure)} average {measure.noun} "
        f"({plain.average:{measure.figures}} to {mean.average:{measure.figures}}"
    )


def _price(cost: float, measure: Measure) -> str:
    amount = f"{abs(cost):.1f}"
    if amount == "0.0":
        return "at no cost in"
    return f"{'at a cost of' if cost > 0 else 'and gains'} {amount} {measure.units} of"


def _qualified(best: Mean, plain: Mean, measure: Measure, over: str) -> str:
    return f"q={best.q:g} {_effect('takes', best, plain, measure)}; {over})."


def _unqualified(candidates: Sequence[Mean], plain: Mean, measure: Measure, over: str) -> str:
    even = [mean for mean in candidates if mean.variance < plain.variance and not mean.stopped]
    if not even:
        tried = ", ".join(f"{mean.q:g}" for mean in candidates)
        return (
            f"q=0 stays, because no other q ({tried}) lowers the variance of {measure.noun} over "
            f"clients, {plain.variance:.4g} ({over})."
        )
    near = min(even, key=lambda mean: cost(mean, plain, measure))
    return (
        f"q=0 stays, because every q that is more even costs more than {WITHIN:g} "
        f"{measure.unit} of average {measure.noun}: the cheapest, q={near.q:g}, "
        f"{_effect('would take', near, plain, measure)}; {over})."
    )
