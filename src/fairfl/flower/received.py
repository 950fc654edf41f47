"""What a server makes of one reply: an update and a loss that can be used, or why it cannot."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord

from fairfl.flower.aggregation import square, trained
from fairfl.flower.arrays import Leaves, leaves
from fairfl.flower.client import METRICS
from fairfl.flower.replies import told
from fairfl.flower.trust import Trust, fault, finite, misfit, oversized


class Update(NamedTuple):
    """A usable reply: w_k, F_k(w) and |w - w_k|^2 over what is trained.

    `adaptive` says that the client trained with an optimiser that makes L = 1 / rate a guess.
    """

    arrays: Leaves
    loss: float
    square: float
    adaptive: bool


class Refused(NamedTuple):
    """Why a client does not count, in words; `absent` where it sent nothing that could."""

    reason: str
    absent: bool = False


def received(reply: Message | None, names: Sequence[str], w: Leaves) -> Update | Refused:
    """The update in a reply to the model `w`, or why there is none."""
    said = told(reply)
    if said or reply is None:
        return Refused(said or "", absent=True)
    try:
        arrays, loss, adaptive = _contents(reply, names)
    except ValueError as error:
        return Refused(str(error))
    found = misfit(arrays, loss, w)
    if found:
        return Refused(found)
    places = trained(names, w)
    rest = [arrays[place] for place in range(len(w)) if place not in places]
    length = square([w[place] for place in places], [arrays[place] for place in places])
    if not math.isfinite(length) or not all(map(finite, rest)):
        return Refused(fault(arrays, loss, w) or TOO_LONG)
    if length > LONGEST:
        return Refused(TOO_LONG)
    return Update(arrays, loss, length, adaptive)


LONGEST = float(np.finfo(np.float32).max)
TOO_LONG = "its update is longer than a 32-bit number can say"


def _contents(reply: Message, names: Sequence[str]) -> tuple[Leaves, float, bool]:
    records = list(reply.content.array_records.values())
    found = reply.content.get(METRICS)
    if len(records) != 1 or not records[0]:
        raise ValueError("the reply is empty")
    if list(records[0]) != list(names):
        raise ValueError(_other_names(records[0], names))
    loss = found.get("loss") if isinstance(found, MetricRecord) else None
    if not isinstance(loss, int | float):
        raise ValueError("it names no loss")
    assert isinstance(found, MetricRecord)
    return leaves(records[0]), float(loss), found.get("adaptive") == 1


def _other_names(record: ArrayRecord, names: Sequence[str]) -> str:
    if len(record) != len(names):
        return f"it has {len(record)} arrays but the model has {len(names)}"
    place = next(i for i, name in enumerate(record) if name != names[i])
    return f"array {place + 1} is {list(record)[place]!r} but the model has {names[place]!r}"


def without_oversized(
    found: Mapping[int, Update | Refused], trust: Trust
) -> dict[int, Update | Refused]:
    """The same, with updates that are far longer than the cohort's put aside."""
    usable = {client: one for client, one in found.items() if isinstance(one, Update)}
    squares = np.array([one.square for one in usable.values()], float)
    longer = [k for k, long in zip(usable, oversized(squares, trust), strict=True) if long]
    reason = f"its update is over {trust.update_ratio} times as long as the cohort's median"
    return {**found, **dict.fromkeys(longer, Refused(reason))}
