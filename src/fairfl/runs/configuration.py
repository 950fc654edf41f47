"""The configuration of a run: what was trained on which data, with which versions."""

import platform
import sys
from collections.abc import Hashable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from fairfl.algorithms import Algorithm
from fairfl.algorithms.work import Adaptation
from fairfl.clients.about import About
from fairfl.models import Model
from fairfl.runs.json import SCHEMA, plain
from fairfl.simulation.engine import Settings


def settings_of(model: Model, algorithm: Algorithm, chosen: Settings) -> dict[str, Any]:
    """How a run is trained, beside the hyper-parameters of its experiments."""
    work = algorithm.work
    return {
        "model": model.name,
        "built_in": model.built_in,
        "work": work.name,
        "epochs": work.epochs,
        "batch_size": work.batch_size,
        "rule": algorithm.rule.name,
        "server": algorithm.server.name,
        "cohort": chosen.cohort,
        "seeds": list(chosen.seeds),
        "split_seed": chosen.split_seed,
        "evaluate_every": chosen.evaluate_every,
        "width": chosen.width,
        "lanes": chosen.lanes,
        "x64": chosen.x64,
        **(_adaptation(work.adaptation, chosen) if work.adaptation else {}),
    }


def _adaptation(adaptation: Adaptation, chosen: Settings) -> dict[str, Any]:
    """How clients adapt, for works in which they do."""
    return {
        "inner_steps": adaptation.steps,
        "personal_steps": adaptation.evaluated,
        "support": "every second training row" if chosen.stands_in else "support rows",
    }


def configuration(
    data: About,
    algorithm: str,
    sampler: str,
    weights: str,
    rounds: int,
    settings: Mapping[str, Any],
    experiments: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Everything that decides the bits of a run."""
    return {
        "schema": SCHEMA,
        "versions": versions(),
        "data": {
            "name": data.name,
            "fingerprint": data.fingerprint,
            "clients": data.clients,
            "rows": data.rows,
            "task": data.task,
            "classes": data.classes,
        },
        "algorithm": algorithm,
        "sampler": sampler,
        "weights": weights,
        "rounds": rounds,
        "settings": settings,
        "experiments": experiments,
    }


def versions() -> dict[str, str]:
    """The versions that a run's bits depend on.

    >>> from fairfl.runs.configuration import versions
    >>> list(versions())
    ['fairfl', 'jax', 'jaxlib', 'numpy', 'python', 'platform']
    """
    return {
        **{name: version(name) for name in ("fairfl", "jax", "jaxlib", "numpy")},
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
    }


def difference(held: Mapping[str, Any], asked: Mapping[str, Any]) -> str | None:
    """In words, the first thing that would give a run that was kept other bits than one asked for.

    >>> from fairfl.runs.configuration import difference
    >>> run = {"data": {"fingerprint": "f"}, "versions": {"jax": "0.9"}, "rounds": 300}
    >>> difference(run, {**run, "rounds": 200})
    'it has rounds 300, but this one 200'
    """
    asked = plain(asked)
    mine, other = asked["data"], held["data"]
    if mine["fingerprint"] != other["fingerprint"]:
        return f"it was begun on other data, {_of(other)}, but this one has {_of(mine)}"
    here, there = _flat(asked), _flat(held)
    for name in [*here, *(name for name in there if name not in here)]:
        if here.get(name) != there.get(name) and name not in IGNORED:
            label = name.removeprefix("settings.").removeprefix("versions.").replace("_", " ")
            return f"it has {label} {_said(there.get(name))}, but this one {_said(here.get(name))}"
    return None


IGNORED = {"command", "versions.python", "settings.built_in"}
"""What decides no bit."""


def _of(data: Mapping[str, Any]) -> str:
    return (
        f"{data.get('name')} with {data.get('clients')} clients and {data.get('rows')} rows "
        f"(fingerprint {data['fingerprint'][:8]})"
    )


def _flat(found: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested names with points between; lists by their places."""
    flat = {}
    for name, value in found.items():
        below = _places(value) if isinstance(value, list) else value
        inner = isinstance(below, Mapping)
        flat |= _flat(below, f"{above}{name}.") if inner else {above + name: below}
    return flat


def _places(values: list[Any]) -> dict[str, Any]:
    return {"count": len(values), **{str(place): value for place, value in enumerate(values)}}


def _said(value: Any) -> str:
    return "none" if value is None else str(value)


def data_object(data: About) -> dict[str, Any]:
    """The description of the data as JSON keeps it.

    An id that is neither a number, text nor a tuple of these comes back as Python writes it.

    >>> from fairfl.clients.about import About
    >>> from fairfl.runs.configuration import data_of, data_object
    >>> data = About("arrays", "f", ("a", 1, ("b", 2)), 9, (4,), "binary", ("no", "yes"))
    >>> data_of(data_object(data)) == data
    True
    """
    return {"schema": SCHEMA, **vars(data), "ids": [_id_object(id) for id in data.ids]}


def data_of(found: Mapping[str, Any]) -> About:
    """Back from `data_object`."""
    return About(
        name=found["name"],
        fingerprint=found["fingerprint"],
        ids=tuple(_id_of(id) for id in found["ids"]),
        rows=found["rows"],
        shape=tuple(found["shape"]),
        task=found["task"],
        classes=None if found["classes"] is None else tuple(found["classes"]),
    )


def _id_object(id: Hashable) -> Any:
    value = id.item() if isinstance(id, np.generic) else id
    if isinstance(value, tuple):
        return [_id_object(part) for part in value]
    plain = isinstance(value, str | bool | int | float) or value is None
    return value if plain else repr(value)


def _id_of(found: Any) -> Hashable:
    return tuple(map(_id_of, found)) if isinstance(found, list) else found
