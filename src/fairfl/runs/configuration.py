"""The configuration of a run: what was trained on which data, with which versions."""

import platform
import sys
from collections.abc import Hashable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from fairfl.algorithms import Algorithm
from fairfl.clients.about import About
from fairfl.models import Model
from fairfl.runs.json import SCHEMA
from fairfl.simulation.engine import Settings


def settings_of(model: Model, algorithm: Algorithm, chosen: Settings) -> dict[str, Any]:
    """How a run is trained, beside the hyper-parameters of its experiments."""
    work = algorithm.work
    return {
        "model": model.name,
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
