"""Where a federated run stands: all that the next round needs, and all that has happened."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flwr.app import Array, ArrayRecord
from jaxtyping import Float, Int, Shaped

from fairfl.flower.arrays import leaves
from fairfl.flower.roster import Member
from fairfl.runs.tensors import packed, unpacked
from fairfl.runs.trees import Arrays, like, named


class Memory(NamedTuple):
    """The updates of past rounds that a rule asked for, the newest first; id -1 is empty."""

    updates: Float[np.ndarray, "past numbers"]
    ids: Int[np.ndarray, " past"]
    ages: Int[np.ndarray, " past"]


class States(NamedTuple):
    """What rule, server step and answer remember, and the updates that a rule asked for."""

    rule: Any
    server: Any
    answer: Any
    memory: Memory | None


class Served(NamedTuple):
    """Every client's accuracy in percent and loss on one split, NaN where it did not say."""

    accuracy: Float[np.ndarray, " clients"]
    loss: Float[np.ndarray, " clients"]


@dataclass
class Standing:
    """A run after `done` rounds.

    `founders` counts the clients that were there when it began. `refused` tells of every client, by
    name, how often and why its reply could not be used; `vain` counts the last rounds
    that had too few replies, since the run was begun or gone on with. `adaptive` names who trains
    with an adaptive optimiser.
    """

    model: ArrayRecord
    states: States
    roster: list[Member]
    founders: int
    done: int = 0
    vain: int = 0
    seconds: float = 0.0
    trace: list[dict[str, float]] = field(default_factory=list)
    evaluations: dict[int, dict[str, Served]] = field(default_factory=dict)
    quarantined: Counter[str] = field(default_factory=Counter)
    refused: dict[str, Counter[str]] = field(default_factory=dict)
    adaptive: list[str] = field(default_factory=list)

    def refuse(self, name: str, reason: str) -> None:
        """Count a reply that could not be used."""
        self.refused.setdefault(name, Counter())[reason] += 1


def grown(state: Any, fresh: Any) -> Any:
    """A rule's state for more clients: everyone keeps what was there, newcomers begin afresh.

    >>> import jax.numpy as jnp
    >>> from fairfl.flower.standing import grown
    >>> grown({"lambda": jnp.array([2.0])}, {"lambda": jnp.ones(2)})["lambda"].tolist()
    [2.0, 1.0]
    """
    return jax.tree.map(_grown, state, fresh)


def _grown(state: Any, fresh: Any) -> Any:
    if np.shape(state) == np.shape(fresh):
        return state
    return jnp.asarray(fresh).at[: len(state)].set(state)


# ---- one file ----


def as_bytes(standing: Standing) -> bytes:
    """A safetensors file from which `from_bytes` goes on exactly."""
    arrays: dict[str, Shaped[np.ndarray, ...]] = {}
    for place, leaf in enumerate(leaves(standing.model)):
        arrays[f"model/{place:06d}"] = leaf
    arrays |= {f"states/{name}": array for name, array in named(standing.states).items()}
    for done, found in standing.evaluations.items():
        for split, served in found.items():
            arrays[f"accuracy/{done}/{split}"] = served.accuracy
            arrays[f"loss/{done}/{split}"] = served.loss
    return packed(arrays, **_about(standing))


def _about(standing: Standing) -> dict[str, Any]:
    return {
        "names": list(standing.model),
        "roster": [list(member) for member in standing.roster],
        "founders": standing.founders,
        "done": standing.done,
        "seconds": standing.seconds,
        "trace": [_spelled(row) for row in standing.trace],
        "evaluated": [[done, list(found)] for done, found in standing.evaluations.items()],
        "quarantined": standing.quarantined,
        "refused": standing.refused,
        "adaptive": standing.adaptive,
    }


def _spelled(row: Mapping[str, float]) -> dict[str, str]:
    """Numbers as text that gives the same bits again, NaN too."""
    return {name: repr(float(value)) for name, value in row.items()}


def from_bytes(content: bytes, fresh: Callable[[ArrayRecord, int], States]) -> Standing:
    """Back from `as_bytes`; `fresh` gives the states of a run that begins, for their form."""
    arrays, about = unpacked(content)
    models = [arrays[name] for name in sorted(arrays) if name.startswith("model/")]
    pairs = zip(about["names"], models, strict=True)
    model = ArrayRecord({name: Array(leaf) for name, leaf in pairs})
    roster = [Member(name, tuple(rows), task) for name, rows, task in about["roster"]]
    kept = {
        name.removeprefix("states/"): leaf
        for name, leaf in arrays.items()
        if name.startswith("states/")
    }
    return Standing(
        model=model,
        states=like(fresh(model, len(roster)), kept),
        roster=roster,
        founders=about["founders"],
        done=about["done"],
        seconds=about["seconds"],
        trace=[{name: float(v) for name, v in row.items()} for row in about["trace"]],
        evaluations={done: _served(arrays, done, splits) for done, splits in about["evaluated"]},
        quarantined=Counter(about["quarantined"]),
        refused={name: Counter(found) for name, found in about["refused"].items()},
        adaptive=about["adaptive"],
    )


def _served(arrays: Arrays, done: int, splits: Sequence[str]) -> dict[str, Served]:
    return {
        split: Served(arrays[f"accuracy/{done}/{split}"], arrays[f"loss/{done}/{split}"])
        for split in splits
    }
