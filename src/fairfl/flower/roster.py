"""The roster: the clients of a federation in an order that no connection changes.

A client has one place for good, by which rules remember it and cohorts are drawn: those who are
there when the run begins in the order of their names, later ones behind them. Nodes come and go.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, get_args

import numpy as np
from flwr.app import ConfigRecord, Message, MetricRecord
from jaxtyping import Float, Int

from fairfl.algorithms import Algorithm
from fairfl.algorithms.samplers import effective, population, weights
from fairfl.clients.federated import SPLITS, Task
from fairfl.clients.randomness import Stream, generator
from fairfl.flower.client import CLIENT, METRICS


class Member(NamedTuple):
    """A client: its name, its rows in each split, and what it is asked to predict."""

    name: str
    rows: tuple[int, ...]
    task: Task


def registered(name: str, public_key: bytes) -> str | None:
    """The name that a node's key stands for; None for a node without a key.

    >>> from fairfl.flower.roster import registered
    >>> registered("ward-3", b"key"), registered("", b"key"), registered("ward-3", b"")
    ('ward-3', 'key-2c70e12b7a06', None)
    """
    if not public_key:
        return None
    return name or f"key-{hashlib.sha256(public_key).hexdigest()[:12]}"


def introduced(reply: Message, name: str | None) -> Member | str:
    """What a client says of itself, under its registered name or the one it gives itself; or what
    is wrong with it."""
    about = reply.content.get(CLIENT)
    found = reply.content.get(METRICS)
    if not isinstance(about, ConfigRecord) or not isinstance(found, MetricRecord):
        return "its introduction has no record of the client and its rows"
    rows = [found.get(f"rows-{split}") for split in SPLITS]
    task = about.get("task")
    if not all(isinstance(count, int) and 0 <= count < 2**40 for count in rows):
        return "it names no number of rows for each split"
    if task not in get_args(Task):
        return f"its task is {task!r}, which is none of {', '.join(get_args(Task))}"
    return Member(name or str(about.get("name")), tuple(rows), task)  # type: ignore[arg-type]


def in_order(members: Iterable[Member]) -> list[Member]:
    """By name, a number in it counting as a number.

    >>> from fairfl.flower.roster import Member, in_order
    >>> found = in_order(Member(f"site-{k}", (1, 0, 0), "binary") for k in (10, 9))
    >>> [member.name for member in found]
    ['site-9', 'site-10']
    """
    return sorted(members, key=lambda member: (_parts(member.name), member.name))


def _parts(name: str) -> list[tuple[int, int, str]]:
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in re.split(r"(\d+)", name)
        if part
    ]


def rows_of(roster: Sequence[Member], split: str) -> Int[np.ndarray, " clients"]:
    place = SPLITS.index(split)  # type: ignore[arg-type]
    return np.array([member.rows[place] for member in roster], np.int64)


def cohort_of(
    algorithm: Algorithm, roster: Sequence[Member], cohort: int, seed: int, round: int
) -> tuple[Int[np.ndarray, " cohort"], Float[np.ndarray, " cohort"]]:
    """Who takes part in a round (from 0), as places in the roster, and with which weights u_k.

    The draw is the simulator's. It is from everyone, whoever is online: an absent client has the
    weight 0 in the round, and no connection changes who else was drawn.

    >>> import fairfl
    >>> from fairfl.flower.roster import Member, cohort_of
    >>> roster = [Member(name, (10, 0, 0), "binary") for name in "abcd"]
    >>> ids, u = cohort_of(fairfl.fedavg(), roster, 2, seed=0, round=3)
    >>> ids.tolist(), u.tolist()
    ([0, 2], [1.0, 1.0])
    """
    people = population(rows_of(roster, "train"))
    sampler = effective(algorithm.sampler, people, cohort)
    ids = sampler.draw(generator(seed, Stream.COHORT, round), people, cohort)
    return ids, weights(algorithm.weights, sampler.by_size, people, ids)


def check_task(roster: Sequence[Member]) -> None:
    """Refuse a federation whose clients predict different things, or have nothing to train on."""
    tasks = sorted({member.task for member in roster})
    if len(tasks) > 1:
        raise ValueError(
            f"the clients have the tasks {' and '.join(tasks)}; run the same app on all of them"
        )
    if not rows_of(roster, "train").any():
        raise ValueError("no client has training rows; give the clients' sites a train split")
