"""What to know beside a comparison's numbers, one sentence each."""

from collections.abc import Sequence

import numpy as np

from fairfl.comparison.comparison import Comparison
from fairfl.comparison.differences import CONFIDENCE
from fairfl.runs.convergence import still_falling
from fairfl.runs.notes import naming


def notes(found: Comparison) -> list[str]:
    """Everything that should be said about a comparison.

    >>> import fairfl
    >>> from fairfl.comparison.notes import notes
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> methods = [fairfl.fedavg(), fairfl.q_fedavg()]
    >>> notes(fairfl.compare(data, model, methods, rounds=3, cohort=5, seeds=1))[1]
    'One seed has no intervals, so no difference can be called real; compare with several seeds.'
    """
    return [
        *found.said,
        *_budgets(found),
        *_tested(found),
        *_without_chance(found),
        *_diverged(found),
        *_edges(found),
        *_quarantined(found),
        *_unconverged(found),
    ]


def _budgets(found: Comparison) -> list[str]:
    tried = {method: tuned.tried for method, tuned in found.tuned.items()}
    result = found[found.baseline]
    each = f"{len(result)} seed{'s' * (len(result) > 1)} of {result.rounds:,} rounds"
    if len(set(tried.values())) > 1:
        counts = ", ".join(f"{method} {count}" for method, count in tried.items())
        return [f"Budgets differ; settings tried, each for {each}: {counts}."]
    count = tried[found.baseline]
    if count == 1:
        return [f"Nothing was tuned: one setting of each method, for {each}."]
    return [
        f"Budgets were equal: {count} settings of each method, each for {each}, and the setting "
        "was chosen on validation data by one protocol for all."
    ]


def _tested(found: Comparison) -> list[str]:
    if not found.comparisons:
        return []
    if len(found[found.baseline]) == 1:
        return [
            "One seed has no intervals, so no difference can be called real; compare with several "
            "seeds."
        ]
    expected = (1 - CONFIDENCE) * found.comparisons
    return [
        f"{found.comparisons} paired differences were tested at {CONFIDENCE:.0%}, so about "
        f"{max(expected, 0.1):.2g} of them would seem real (*) by luck alone; those marked ** "
        "stay real when that is corrected for (Bonferroni)."
    ]


def _without_chance(found: Comparison) -> list[str]:
    table = found.differences()
    if len(found[found.baseline]) == 1 or not len(table["method"]):
        return []
    still = [
        method
        for method in found.methods
        if method != found.baseline and np.all(table["deviation"][table["method"] == method] == 0)
    ]
    if not still:
        return []
    return [
        f"The seeds changed nothing in the difference to {naming(still)}, so it holds for this "
        "split and start alone and is not called real."
    ]


def _diverged(found: Comparison) -> list[str]:
    said = []
    for method in found.methods:
        members = found[method].members
        stopped = [member for member in members if member.stopped]
        if stopped:
            first = min(member.rounds for member in stopped)
            said.append(
                f"{method} diverged for {len(stopped)} of {len(members)} seeds, the first after "
                f"{first:,} rounds; what is shown (†) is its last good model."
            )
    return said


def _edges(found: Comparison) -> list[str]:
    """Methods whose learning rate may not have been large or small enough."""
    at: dict[str, list[str]] = {"smallest": [], "largest": []}
    for method, result in found.results.items():
        rates = sorted({m.hyper["learning_rate"] for m in result.members if _has_rate(m.hyper)})
        if len(rates) > 1:
            chosen = found.tuned[method].hyper["learning_rate"]
            for edge, rate in {"smallest": rates[0], "largest": rates[-1]}.items():
                at[edge] += [method] * (chosen == rate)
    return [
        f"The {edge} learning rate that was tried was chosen for {naming(names)}; beyond it there "
        "may be a better one."
        for edge, names in at.items()
        if names
    ]


def _has_rate(hyper: object) -> bool:
    return isinstance(hyper, dict) and "learning_rate" in hyper


def _quarantined(found: Comparison) -> list[str]:
    refused = {
        method: int(sum(member.quarantined.sum() for member in found[method].members))
        for method in found.methods
    }
    counts = ", ".join(f"{method} {count:,}" for method, count in refused.items() if count)
    return [f"Replies that were not finite were left out: {counts} times."] if counts else []


def _unconverged(found: Comparison) -> list[str]:
    moving = [
        method
        for method in found.methods
        if any(still_falling(member) for member in found[method].members)
    ]
    return [_said(moving, found[found.baseline].rounds)] if moving else []


def _said(moving: Sequence[str], rounds: int) -> str:
    return (
        f"Not converged after {rounds:,} rounds, the training objective still falls: "
        f"{', '.join(moving)}; with more rounds the order may change."
    )
