"""Our side of a comparison: the numbers of a trained family, one per seed."""

import numpy as np
from jaxtyping import Float

from fairfl.choice import device_q
from fairfl.clients.federated import FederatedData, SplitName
from fairfl.metrics import Fairness
from fairfl.paper.recipe import Pick
from fairfl.runs import Result
from fairfl.runs.result import Experiment

PerSeed = Float[np.ndarray, " seeds"]


def members(result: Result, pick: Pick) -> list[Experiment]:
    """The experiments that a pick means, one per seed.

    >>> import fairfl
    >>> from fairfl.paper.measured import members
    >>> from fairfl.paper.recipe import q_of
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=2, cohort=5)
    >>> [member.hyper["q"] for member in members(result, q_of("any", 1))]
    [1.0]
    """
    return [
        member
        for member in result.members
        if all(member.hyper.get(name) == value for name, value in pick.hyper)
    ]


def reached(result: Result, pick: Pick) -> bool:
    """Whether the family was trained and evaluated as far as the pick asks, with its settings."""
    found = members(result, pick)
    return bool(found) and (pick.after is None or all(pick.after in m.fairness for m in found))


def per_seed(result: Result, pick: Pick, split: SplitName, metric: str) -> PerSeed:
    """A metric of `Fairness`, or the accuracy of the client that is named so.

    >>> import fairfl
    >>> from fairfl.paper.measured import per_seed
    >>> from fairfl.paper.recipe import q_of
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=2, cohort=5)
    >>> found = per_seed(result, q_of("any", 1), "test", "variance")
    >>> bool(found == result.fairness()["variance"][1:])
    True
    """
    if pick.own_q:
        return np.asarray(device_q(result, judged=split).fairness[metric], float)
    found = members(result, pick)
    if metric in Fairness._fields:
        return np.array([_fairness(member, pick, split, metric) for member in found])
    client = result.data.ids.index(metric)
    return np.array([float(member.final[split].accuracy[client]) for member in found])


def _fairness(member: Experiment, pick: Pick, split: SplitName, metric: str) -> float:
    found = member.fairness[pick.after or max(member.fairness)][split]
    return float("nan") if found is None else float(getattr(found, metric))


def accuracies(result: Result, pick: Pick, split: SplitName) -> list[Float[np.ndarray, " clients"]]:
    """Every client's accuracy at the end, one array per seed, clients without rows left out."""
    evaluations = [member.final[split] for member in members(result, pick)]
    return [found.accuracy[found.size > 0] for found in evaluations]


def statistics(data: FederatedData) -> dict[str, float]:
    """What the paper's table of data sets gives.

    >>> import fairfl
    >>> from fairfl.paper.measured import statistics
    >>> found = statistics(fairfl.datasets.load("synthetic"))
    >>> {name: round(value) for name, value in found.items()}
    {'clients': 100, 'rows': 12697, 'mean': 127, 'deviation': 73}
    """
    sizes = data.sizes
    return {
        "clients": float(data.clients),
        "rows": float(len(data.y)),
        "mean": float(sizes.mean()),
        "deviation": float(sizes.std()),
    }
