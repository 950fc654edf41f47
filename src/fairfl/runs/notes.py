"""Notes: what a reader must know beside the numbers, one sentence each."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from fairfl.clients.federated import SPLITS
from fairfl.runs.convergence import still_falling
from fairfl.runs.result import Experiment, Result

NAMED = 5
"""How many clients a note names before it counts the rest."""


def notes(result: Result, asked: str, refused: str = "were not finite") -> Result:
    """The result with everything that should be said about it; `refused` is why replies were."""
    said = [
        *_full_cohort(result, asked),
        *_adapted(result),
        *_missing(result),
        *_stopped(result),
        *_quarantined(result, refused),
        *_capped(result),
        *_unconverged(result),
    ]
    return replace(result, notes=said)


def naming(names: Sequence[Hashable]) -> str:
    """The first few names, and how many more.

    >>> from fairfl.runs.notes import naming
    >>> naming(["a", "b"]), naming(list("abcdefg"))
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    shown = ", ".join(map(str, names[:NAMED]))
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"


def _label(member: Experiment, result: Result) -> str:
    """What tells the experiment from the others of its result."""
    labels = [other.labels for other in result.members]
    told = {n: v for n, v in member.labels.items() if any(other[n] != v for other in labels)}
    return ", ".join(f"{name}={value:g}" for name, value in told.items()) or "The run"


def _full_cohort(result: Result, asked: str) -> list[str]:
    if result.sampler == asked:
        return []
    return [
        f"The cohort holds every client, so the sampler is everyone (not {asked}) and "
        f"weights={result.weights} are set by u_k."
    ]


def _adapted(result: Result) -> list[str]:
    steps = result.settings.get("personal_steps")
    if steps is None:
        return []
    support = result.settings["support"]
    which = "" if support == "support rows" else f" ({support})"
    return [
        f"Clients are evaluated after {steps} steps on their support rows{which}, and training "
        "rows are not: `loss` in the history is theirs, after the inner steps."
    ]


def _missing(result: Result) -> list[str]:
    said = []
    for split in SPLITS:
        names = result.missing(split)
        if names and len(names) < result.data.clients:
            said.append(
                f"{len(names)} of {result.data.clients} clients have no {split} rows and are in "
                f"none of its metrics: {naming(names)}."
            )
    return said


def _stopped(result: Result) -> list[str]:
    return [
        f"{_label(member, result)} stopped after {member.rounds} rounds: no finite model or reply "
        "was left, so its last good model stands; try a smaller learning rate."
        for member in result.members
        if member.stopped
    ]


def _quarantined(result: Result, why: str) -> list[str]:
    refused = np.sum([member.quarantined for member in result.members], axis=0)
    names = [result.data.ids[k] for k in np.flatnonzero(refused)]
    if not names:
        return []
    return [
        f"Replies that {why} were left out {int(refused.sum())} times, "
        f"from {len(names)} clients: {naming(names)}."
    ]


def _capped(result: Result) -> list[str]:
    counts = [int(np.sum(member.trace.get("capped", 0))) for member in result.members]
    if not any(counts):
        return []
    return [
        f"The curvature of nearly solved clients was capped {sum(counts)} times "
        "(see `capped` in the history)."
    ]


def _unconverged(result: Result) -> list[str]:
    moving = [member for member in result.members if still_falling(member)]
    if not moving:
        return []
    labels = naming([_label(member, result) for member in moving])
    return [
        f"Not converged after {result.rounds} rounds, the objective still falls in "
        f"{len(moving)} of {len(result)} experiments: {labels}; "
        "train longer before comparing fairness."
    ]
