"""A result as one JSON object, for programs: `--json` prints it, a run's folder keeps it."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairfl.clients.federated import SPLITS, SplitName
from fairfl.runs.result import Experiment, Measured, Result

SCHEMA = 1


def as_object(result: Result, chosen: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Everything that was found, as plain dicts, lists, numbers and text; NaN is None.

    >>> import fairfl
    >>> from fairfl.runs.json import as_object
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> found = as_object(fairfl.train(data, model, fairfl.fedavg(), rounds=2, cohort=5))
    >>> found["experiments"][0]["hyperparameters"], found["chosen"]
    ({'learning_rate': 0.1}, None)
    """
    names = client_names(result)
    return plain(
        {
            "schema": SCHEMA,
            "dataset": result.data.name,
            "rounds": result.rounds,
            "seconds": result.seconds,
            "experiments": [_experiment(result, member, names) for member in result.members],
            "chosen": chosen,
            "notes": list(result.notes),
        }
    )


def text(value: Mapping[str, Any]) -> str:
    """JSON text that any parser reads: no NaN, and one newline at its end.

    >>> from fairfl.runs.json import text
    >>> print(text({"average": float("nan")}), end="")
    {
      "average": null
    }
    """
    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """NumPy's numbers and tuples as JSON knows them; what is not finite becomes None.

    >>> import numpy as np
    >>> from fairfl.runs.json import plain
    >>> plain({"q": np.float32(0.5), "loss": (np.inf, 1)})
    {'q': 0.5, 'loss': [None, 1]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def client_names(result: Result) -> list[str]:
    """Clients as text, or as Python writes them where 1 and '1' are two clients.

    >>> import fairfl
    >>> from fairfl.runs.json import client_names
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> client_names(fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=5))[:2]
    ['f_00000', 'f_00001']
    """
    names = [str(id) for id in result.data.ids]
    return names if len(set(names)) == len(names) else [repr(id) for id in result.data.ids]


def _experiment(result: Result, member: Experiment, names: list[str]) -> dict[str, Any]:
    return {
        "algorithm": result.algorithm,
        "hyperparameters": member.hyper,
        "seed": member.seed,
        "sampler": result.sampler,
        "weights": result.weights,
        "rounds": member.rounds,
        "stopped": member.stopped,
        "splits": _splits(member, names),
        **({"personal": _splits(member.personal, names)} if member.personal else {}),
    }


def _splits(served: Experiment | Measured, names: list[str]) -> dict[str, Any]:
    return {split: _split(served, split, names) for split in SPLITS}


def _split(
    served: Experiment | Measured, split: SplitName, names: list[str]
) -> dict[str, Any] | None:
    """Fairness and every client that has rows; None for a split without rows."""
    fairness = served.fairness[max(served.fairness)][split]
    if fairness is None:
        return None
    found = served.evaluations[max(served.evaluations)][split]
    clients = {
        names[k]: {
            "accuracy": found.accuracy[k],
            "loss": found.loss[k],
            "size": found.size[k],
        }
        for k in np.flatnonzero(found.size)
    }
    return {**fairness._asdict(), "clients": clients}
