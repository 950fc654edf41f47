"""The numbers behind the charts, as rows: few, whatever the number of clients, rounds and seeds."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from fairfl.clients.federated import SplitName
from fairfl.report.entries import Entry, across, served
from fairfl.runs.json import client_names

Rows = list[dict[str, Any]]

PLACES = 200
"""Bars of a curve over clients, at most."""

BINS = 20
"""Bins of a distribution."""

CELLS = 40
"""Cells along each side of a chart with many clients."""

STRETCHES = 120
"""Points of a line over the rounds, at most."""

TAIL = 99
"""Losses beyond this percentile share the last bin."""

SAME = {True: 0.05, False: 1e-3}
"""A client is served as before within half of a digit that is shown: points of accuracy, or a share
of the loss."""


def quantiles(entry: Entry, split: SplitName) -> Rows:
    """Clients from the worst served to the best, each bar a stretch of them; means over the seeds.

    >>> import fairfl
    >>> from fairfl.report.entries import entries
    >>> from fairfl.report.points import quantiles
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=2, cohort=5)
    >>> rows = quantiles(entries(result)[0], "test")
    >>> len(rows), rows[0]["from"], rows[0]["to"], rows[1]["group"], rows[2]["group"]
    (20, 0.0, 5.0, 'worst tenth', 'others')
    """
    ordered = [_worst_first(found, entry.measure.rises) for found in served(entry, split)]
    count = min(PLACES, max(map(len, ordered)))
    value = np.mean([_stretches(found, count) for found in ordered if len(found)], axis=0)
    edges = np.linspace(0, 100, count + 1)
    tenth = max(1, count // 10)
    return [
        {
            "from": float(edges[i]),
            "to": float(edges[i + 1]),
            "place": float(edges[i : i + 2].mean()),
            "value": float(value[i]),
            "group": "worst tenth" if i < tenth else "others",
        }
        for i in range(count)
        if np.isfinite(value[i])
    ]


def _worst_first(
    values: Float[np.ndarray, " clients"], rises: bool
) -> Float[np.ndarray, " present"]:
    found = np.sort(values[np.isfinite(values)])
    return found if rises else found[::-1]


def _stretches(
    ordered: Float[np.ndarray, " present"], count: int
) -> Float[np.ndarray, " stretches"]:
    """The value in the middle of each stretch of clients."""
    middle = (np.arange(count) + 0.5) / count
    return ordered[np.minimum((middle * len(ordered)).astype(int), len(ordered) - 1)]


def pairs(before: Entry, after: Entry, split: SplitName) -> Rows:
    """Every client under two models: means over the seeds in which it has rows.

    >>> import fairfl
    >>> from fairfl.report.entries import entries
    >>> from fairfl.report.points import pairs
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=2, cohort=5)
    >>> list(pairs(*entries(result), "test")[0])
    ['client', 'rows', 'before', 'after', 'gain', 'change']
    """
    first, second = (mean_served(entry, split) for entry in (before, after))
    sizes = np.mean([member.final[split].size for member in before.members], axis=0)
    rises = before.measure.rises
    gain = (second - first) * (1 if rises else -1)
    names = client_names(before.result)
    return [
        {
            "client": names[k],
            "rows": float(sizes[k]),
            "before": float(first[k]),
            "after": float(second[k]),
            "gain": float(gain[k]),
            "change": _change(float(gain[k]), float(first[k]), rises),
        }
        for k in np.flatnonzero(np.isfinite(first) & np.isfinite(second))
    ]


def mean_served(entry: Entry, split: SplitName) -> Float[np.ndarray, " clients"]:
    """How each client is served, as a mean over the seeds in which it has rows; NaN if in none."""
    found = served(entry, split)
    sizes = np.stack([member.final[split].size for member in entry.members])
    seeds = (sizes > 0).sum(axis=0)
    total = np.where(sizes > 0, found, 0).sum(axis=0)
    return np.divide(total, seeds, out=np.full(len(seeds), np.nan), where=seeds > 0)


def _change(gain: float, before: float, rises: bool) -> str:
    least = SAME[rises] * (1 if rises else abs(before))
    return "same" if abs(gain) <= least else "gains" if gain > 0 else "loses"


def worst(rows: Rows, rises: bool, most: int) -> Rows:
    """The clients that the first model serves worst, worst first; ties by name.

    >>> from fairfl.report.points import worst
    >>> rows = [{"client": "a", "before": 60.0}, {"client": "b", "before": 20.0}]
    >>> worst(rows, rises=True, most=1)
    [{'client': 'b', 'before': 20.0}]
    """
    sign = 1 if rises else -1
    return sorted(rows, key=lambda row: (sign * row["before"], row["client"]))[:most]


def counted_pairs(rows: Sequence[Mapping[str, Any]]) -> Rows:
    """How many clients lie in each cell of before and after; empty cells are left out."""
    before, after = (np.array([row[name] for row in rows]) for name in ("before", "after"))
    low, high = float(np.min([before, after])), float(np.max([before, after]))
    edges = np.linspace(low, high if high > low else low + 1, CELLS + 1)
    counts, _, _ = np.histogram2d(before, after, [edges, edges])
    return [
        {
            "x": float(edges[i]),
            "x2": float(edges[i + 1]),
            "y": float(edges[j]),
            "y2": float(edges[j + 1]),
            "clients": int(counts[i, j]),
        }
        for i, j in np.argwhere(counts)
    ]


def histogram(several: Sequence[Entry], split: SplitName) -> Rows:
    """How many clients are in each bin, as means over the seeds; the bins are shared.

    >>> import fairfl
    >>> from fairfl.report.entries import entries
    >>> from fairfl.report.points import histogram
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=2, cohort=5, seed=[0, 1])
    >>> sum(row["clients"] for row in histogram(entries(result), "test"))
    20.0
    """
    found = {entry.label: served(entry, split) for entry in several}
    edges = _edges(np.concatenate([a.ravel() for a in found.values()]), several[0].measure.rises)
    return [
        {
            "model": label,
            "value": float(edges[i]),
            "to": float(edges[i + 1]),
            "clients": float(clients),
        }
        for label, values in found.items()
        for i, clients in enumerate(np.mean([_counted(one, edges) for one in values], axis=0))
    ]


def _edges(values: Float[np.ndarray, " values"], rises: bool) -> Float[np.ndarray, " edges"]:
    """Five points of accuracy each, from the first with a client, or as many stretches of loss."""
    finite = values[np.isfinite(values)]
    if rises or not len(finite):
        first = int(min(BINS - 1, finite.min() // (100 / BINS))) if len(finite) else 0
        return np.linspace(0, 100, BINS + 1)[max(0, first - 1) :]
    low, high = float(finite.min()), float(np.percentile(finite, TAIL))
    return np.linspace(low, high if high > low else low + 1, BINS + 1)


def _counted(
    values: Float[np.ndarray, " clients"], edges: Float[np.ndarray, " edges"]
) -> Float[np.ndarray, " bins"]:
    finite = values[np.isfinite(values)]
    return np.histogram(np.clip(finite, edges[0], edges[-1]), edges)[0].astype(float)


def frontier(several: Sequence[Entry], split: SplitName, chosen: str | None) -> Rows:
    """Average and variance of every entry with their 95 % intervals; an interval of one seed is its
    mean."""
    rows = []
    for place, entry in enumerate(several):
        ends: dict[str, Any] = {}
        for name in ("average", "variance"):
            found = across(entry, split, name)
            ends[name] = found.mean
            ends[f"{name}_low"] = found.low if np.isfinite(found.low) else found.mean
            ends[f"{name}_high"] = found.high if np.isfinite(found.high) else found.mean
        role = "chosen" if entry.label == chosen else "others"
        rows.append({"model": entry.label, "place": place, "role": role, **ends})
    whole = [row for row in rows if np.isfinite(row["average"]) and np.isfinite(row["variance"])]
    return _sided(whole)


class Side(NamedTuple):
    """Where a point has its name."""

    name: str
    right: int
    down: int


SIDES = [Side("ne", 1, -1), Side("sw", -1, 1), Side("se", 1, 1), Side("nw", -1, -1)]
"""In the order in which they are tried."""

LETTER = (0.027, 0.05)
"""About a letter's width and height, as shares of a narrow chart."""


def _sided(rows: Rows) -> Rows:
    """Each name on a side where it covers no point and no other name, if there is one."""
    places = np.column_stack([_shares(rows, name) for name in ("variance", "average")])
    taken = [np.concatenate([place, place]) for place in places]
    sided = []
    for row, place in zip(rows, places, strict=True):
        boxes = [_box(place, side, len(row["model"])) for side in SIDES]
        covered = [sum(_meet(box, other) for other in taken) for box in boxes]
        best = int(np.argmin(covered))
        taken.append(boxes[best])
        sided.append({**row, "side": SIDES[best].name})
    return sided


def _shares(rows: Rows, name: str) -> Float[np.ndarray, " models"]:
    """Where along an axis each value is, from 0 to 1."""
    ends = np.array([[row[f"{name}_low"], row[f"{name}_high"]] for row in rows]).reshape(-1, 2)
    low, high = (ends.min(), ends.max()) if len(rows) else (0.0, 1.0)
    return (np.array([row[name] for row in rows]) - low) / max(high - low, 1e-12)


def _box(place: np.ndarray, side: Side, letters: int) -> np.ndarray:
    """The rectangle that a name takes: left, bottom, right, top."""
    width, height = LETTER[0] * (letters + 1), LETTER[1]
    left = place[0] if side.right > 0 else place[0] - width
    bottom = place[1] + 0.2 * height if side.down < 0 else place[1] - 1.2 * height
    return np.array([left + 1e-9, bottom, left + width, bottom + height])


def _meet(one: np.ndarray, other: np.ndarray) -> bool:
    return bool((one[:2] <= other[2:]).all() and (other[:2] <= one[2:]).all())


def over_rounds(several: Sequence[Entry], split: SplitName, metric: str) -> Rows:
    """A fairness metric at every evaluation, as the mean over the seeds.

    >>> import fairfl
    >>> from fairfl.report.entries import entries
    >>> from fairfl.report.points import over_rounds
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=3, cohort=5)
    >>> [row["round"] for row in over_rounds(entries(result), "test", "average")]
    [1, 2, 3]
    """
    rows = []
    for entry in several:
        rounds = sorted(entry.members[0].fairness)
        for done in _spread(rounds):
            found = [member.fairness[done][split] for member in entry.members]
            value = np.mean([np.nan if one is None else getattr(one, metric) for one in found])
            if np.isfinite(value):
                rows.append({"model": entry.label, "round": done, "value": float(value)})
    return rows


def _spread(rounds: Sequence[int]) -> list[int]:
    """At most so many of them, the first and the last among them."""
    if len(rounds) <= STRETCHES:
        return list(rounds)
    return [rounds[i] for i in np.linspace(0, len(rounds) - 1, STRETCHES).round().astype(int)]


def steps(several: Sequence[Entry]) -> Rows:
    """The effective step, as means over stretches of rounds in which the experiments were alive."""
    rows = []
    for entry in several:
        alive = np.stack([member.trace["alive"].astype(bool) for member in entry.members])
        step = np.stack([member.trace["effective_step"] for member in entry.members])
        rounds = alive.shape[1]
        edges = np.unique(np.linspace(0, rounds, min(rounds, STRETCHES) + 1).round().astype(int))
        for first, end in pairwise(edges):
            there = alive[:, first:end] & np.isfinite(step[:, first:end])
            if there.any():
                value = float(step[:, first:end][there].astype(float).mean())
                rows.append({"model": entry.label, "round": int(end), "value": value})
    return rows
