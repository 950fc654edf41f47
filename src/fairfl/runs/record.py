"""What happened in a run as plain arrays: every round, and every client at every evaluation."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairfl.clients.federated import SPLITS
from fairfl.metrics import Fairness
from fairfl.runs.result import Experiment, Measured
from fairfl.runs.trees import Arrays
from fairfl.simulation.evaluation import Evaluation


def arrays_of(member: Experiment) -> dict[str, np.ndarray]:
    """An experiment without its model, by names that a file can hold.

        trace/<place>/<name>            [rounds]
        evaluated, fairness/<split>     [evaluations], [evaluations, metrics]
        kept, accuracy/ and loss/<split>  [kept], [kept, clients]: evaluations of every client
        size/<split>, quarantined       [clients]
        personal/...                    the same, but trace and quarantined, of clients' own models

    >>> import fairfl
    >>> from fairfl.runs.record import arrays_of
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=3, cohort=5)
    >>> arrays_of(result.members[0])["loss/test"].shape
    (3, 20)
    """
    own = member.personal
    return {
        **_numbered(member.trace),
        "quarantined": member.quarantined,
        **_measured(Measured(member.fairness, member.evaluations)),
        **({f"personal/{name}": a for name, a in _measured(own).items()} if own else {}),
    }


def _measured(served: Measured) -> dict[str, np.ndarray]:
    fairness, evaluations = served
    found = {"evaluated": np.array(sorted(fairness)), "kept": np.array(sorted(evaluations))}
    for split in SPLITS:
        every = [fairness[done][split] for done in sorted(fairness)]
        if every[0] is not None:
            found[f"fairness/{split}"] = np.array(every, float)
        kept = [evaluations[done][split] for done in sorted(evaluations)]
        found[f"size/{split}"] = kept[0].size
        found[f"accuracy/{split}"] = np.stack([one.accuracy for one in kept])
        found[f"loss/{split}"] = np.stack([one.loss for one in kept])
    return found


def experiment_of(arrays: Arrays, labels: Mapping[str, Any], params: Any) -> Experiment:
    """Back from `arrays_of`; the labels are the hyper-parameters and the seed."""
    served, own = _measured_of(arrays), "personal/"
    below = {name.removeprefix(own): a for name, a in arrays.items() if name.startswith(own)}
    return Experiment(
        hyper={name: value for name, value in labels.items() if name != "seed"},
        seed=labels["seed"],
        params=params,
        trace=_trace(arrays),
        fairness=served.fairness,
        evaluations=served.evaluations,
        quarantined=arrays["quarantined"],
        personal=_measured_of(below) if below else None,
    )


def _measured_of(arrays: Arrays) -> Measured:
    return Measured(
        fairness={
            done: {split: _fairness(arrays.get(f"fairness/{split}"), i) for split in SPLITS}
            for i, done in enumerate(arrays["evaluated"].tolist())
        },
        evaluations={
            done: {split: _evaluation(arrays, split, i) for split in SPLITS}
            for i, done in enumerate(arrays["kept"].tolist())
        },
    )


def _numbered(trace: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """With the column's place in the name, because a file sorts its tensors as it likes."""
    return {f"trace/{place:03d}/{name}": trace[name] for place, name in enumerate(trace)}


def _trace(arrays: Arrays) -> dict[str, np.ndarray]:
    names = sorted(name for name in arrays if name.startswith("trace/"))
    return {name.split("/", 2)[2]: arrays[name] for name in names}


def _fairness(rows: np.ndarray | None, i: int) -> Fairness | None:
    return None if rows is None else Fairness._make(rows[i].tolist())


def _evaluation(arrays: Arrays, split: str, i: int) -> Evaluation:
    return Evaluation(
        accuracy=arrays[f"accuracy/{split}"][i],
        loss=arrays[f"loss/{split}"][i],
        size=arrays[f"size/{split}"],
    )
