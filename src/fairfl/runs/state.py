"""The state of a group of experiments as one file: the carry, and all that has happened so far."""

from collections.abc import Mapping

import numpy as np

from fairfl.clients.federated import SPLITS
from fairfl.metrics import Fairness
from fairfl.runs.tensors import packed, unpacked
from fairfl.runs.trees import Arrays, like, named
from fairfl.simulation.engine import Group
from fairfl.simulation.evaluation import Evaluation, Evaluations
from fairfl.simulation.round import Carry


def packed_state(group: Group) -> bytes:
    """A safetensors file from which `restore` goes on exactly; the same bytes for the same state.

    carry/<path>                    w, the states of rule and server, the answer, every v_k ...
    history/<place>/<name>          [rounds, experiments]
    evaluation/<n>/<split>/<name>   every client at the n-th evaluation, where it is kept
    fairness/<n>/<split>            [experiments, metrics]
    personal/...                    evaluation and fairness of the models that clients keep
    quarantined                     [clients, experiments]
    """
    assert group.quarantined is not None
    arrays = {
        **{f"carry/{name}": array for name, array in named(group.carry).items()},
        **_history(group),
        **_evaluations(group.evaluations),
        **_fairness(group.fairness),
        **_beneath("personal", _evaluations(group.personal_evaluations)),
        **_beneath("personal", _fairness(group.personal_fairness)),
        "quarantined": group.quarantined,
    }
    return packed(
        arrays, done=group.done, dead=group.dead, evaluated=[*group.evaluations],
        fairness=[*group.fairness],
    )  # fmt: skip


def restore(group: Group, content: bytes, shape: Carry) -> None:
    """Back from `packed_state`, into a group that has not begun; content that does not fit it is a
    ValueError."""
    arrays, about = unpacked(content)
    carry = like(shape, _below(arrays, "carry"))
    history = _below(arrays, "history")
    group.history = [{name.split("/", 1)[1]: history[name] for name in sorted(history)}]
    group.evaluations = {
        done: _evaluation_of(arrays, n) for n, done in enumerate(about["evaluated"])
    }
    group.fairness = {done: _fairness_of(arrays, n) for n, done in enumerate(about["fairness"])}
    own = _below(arrays, "personal")
    if own:
        group.personal_evaluations = {
            done: _evaluation_of(own, n) for n, done in enumerate(about["evaluated"])
        }
        group.personal_fairness = {
            done: _fairness_of(own, n) for n, done in enumerate(about["fairness"])
        }
    group.quarantined = arrays["quarantined"]
    group.carry, group.done, group.dead = carry, about["done"], about["dead"]


def _history(group: Group) -> dict[str, np.ndarray]:
    """The chunks of the history as one, which is also what the group keeps from now on."""
    joined = {name: np.concatenate([c[name] for c in group.history]) for name in group.history[0]}
    group.history = [joined]
    return {f"history/{place:03d}/{name}": joined[name] for place, name in enumerate(joined)}


def _beneath(start: str, arrays: Arrays) -> dict[str, np.ndarray]:
    return {f"{start}/{name}": array for name, array in arrays.items()}


def _evaluations(evaluations: Mapping[int, Evaluations | None]) -> dict[str, np.ndarray]:
    return {
        f"evaluation/{n}/{split}/{name}": array
        for n, found in enumerate(evaluations.values())
        if found is not None
        for split, one in zip(SPLITS, found, strict=True)
        for name, array in one._asdict().items()
    }


def _evaluation_of(arrays: Arrays, n: int) -> tuple[Evaluation, Evaluation, Evaluation] | None:
    if f"evaluation/{n}/train/size" not in arrays:
        return None
    train, validation, test = (
        Evaluation(**_below(arrays, f"evaluation/{n}/{split}")) for split in SPLITS
    )
    return train, validation, test


def _fairness(fairness: Mapping[int, tuple[list[Fairness] | None, ...]]) -> dict[str, np.ndarray]:
    return {
        f"fairness/{n}/{split}": np.array(one, float)
        for n, found in enumerate(fairness.values())
        for split, one in zip(SPLITS, found, strict=True)
        if one is not None
    }


def _fairness_of(arrays: Arrays, n: int) -> tuple[list[Fairness] | None, ...]:
    rows = [arrays.get(f"fairness/{n}/{split}") for split in SPLITS]
    return tuple(None if r is None else [Fairness._make(row) for row in r.tolist()] for r in rows)


def _below(arrays: Arrays, start: str) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(f"{start}/"): array
        for name, array in arrays.items()
        if name.startswith(f"{start}/")
    }
