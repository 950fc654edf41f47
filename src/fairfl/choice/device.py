"""Device-specific q: every client uses the model of the family that serves it best."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fairfl.choice.means import Family, family
from fairfl.clients.federated import SplitName
from fairfl.metrics import Fairness, fairness, fairness_of_losses
from fairfl.runs import Result
from fairfl.runs.result import Columns, columns, named
from fairfl.simulation.evaluation import Evaluation


class DeviceQ(NamedTuple):
    """What each client chose, and how evenly the mixture of models serves them.

    `clients` has one row per seed and client: q, size, accuracy and loss on the judging split;
    `fairness` one row per seed, as `result.fairness()` has them.
    """

    clients: Columns
    fairness: Columns


def device_q(
    result: Result, split: SplitName = "validation", judged: SplitName = "test"
) -> DeviceQ:
    """The paper's "device-specific q": q_k = argmax_q a_k(q) on client k's own rows of a split.

    Equal accuracies, which small splits have many of, are told apart by the loss and then by the
    smaller q; a regression goes by the loss alone. A client without rows in the split keeps q = 0.
    The mixture is judged on another split; a model that stopped early is not on offer.

    >>> import fairfl
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=3, cohort=5)
    >>> found = fairfl.device_q(result)
    >>> sorted(set(found.clients["q"].tolist()))
    [0.0, 1.0]
    """
    offered = family(result, split)
    parts = [_of_seed(result, places, split, judged) for places in _by_seed(result, offered)]
    clients = [part for part, _ in parts]
    return DeviceQ(
        clients={name: np.concatenate([part[name] for part in clients]) for name in clients[0]},
        fairness=columns([{"seed": part["seed"][0], **found._asdict()} for part, found in parts]),
    )


def _by_seed(result: Result, offered: Family) -> list[list[int]]:
    """The places of the experiments of each seed, by rising q, those that stopped left out."""
    found: dict[int, list[int]] = {}
    for mean in (offered.plain, *sorted(offered.candidates, key=lambda mean: mean.q)):
        for place in mean.places:
            if not result.members[place].stopped:
                found.setdefault(result.members[place].seed, []).append(place)
    return list(found.values())


def _of_seed(
    result: Result, places: Sequence[int], split: SplitName, judged: SplitName
) -> tuple[Columns, Fairness]:
    members = [result.members[place] for place in places]
    picked = best_of([member.final[split] for member in members], result.data.task)
    judging = [member.final[judged] for member in members]
    here = np.flatnonzero(judging[0].size)
    if not here.size:
        raise ValueError(f"no client has rows in the {judged} split; give the data a {judged} part")
    taken = picked[here], here
    rows = {
        "seed": np.full(len(here), members[0].seed),
        "client": named([result.data.ids[k] for k in here]),
        "q": np.array([member.hyper["q"] for member in members])[picked[here]],
        "size": judging[0].size[here],
        "accuracy": np.stack([found.accuracy for found in judging])[taken],
        "loss": np.stack([found.loss for found in judging])[taken],
    }
    if result.data.task == "regression":
        return rows, fairness_of_losses(rows["loss"], rows["size"], rows["client"])
    return rows, fairness(rows["accuracy"], rows["size"], rows["client"])


def best_of(offers: Sequence[Evaluation], task: str) -> Int[np.ndarray, " clients"]:
    """Which of the models each client picks: the most accurate, then the lowest loss, then the
    first; the first too where a client has no rows.

    >>> import numpy as np
    >>> from fairfl.choice.device import best_of
    >>> from fairfl.simulation.evaluation import Evaluation
    >>> plain = Evaluation(np.array([80.0, 50.0]), np.array([0.4, 0.7]), np.array([5, 2]))
    >>> other = Evaluation(np.array([60.0, 50.0]), np.array([0.3, 0.6]), np.array([5, 2]))
    >>> best_of([plain, other], "binary").tolist()
    [0, 1]
    """
    loss = _last(np.stack([offer.loss for offer in offers]))
    if task == "regression":
        return np.argmin(loss, axis=0)
    miss = _last(-np.stack([offer.accuracy for offer in offers]))
    return np.argmin(np.where(miss == miss.min(axis=0), loss, np.inf), axis=0)


def _last(values: Float[np.ndarray, "models clients"]) -> Float[np.ndarray, "models clients"]:
    """What is not a number is never preferred; where nothing is, the largest float ties all."""
    return np.where(np.isnan(values), np.finfo(float).max, values)
