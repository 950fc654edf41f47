"""Modules of other libraries as Models; the libraries are optional and imported when used."""

from collections.abc import Callable
from typing import Any

from fairfl.clients import FederatedData
from fairfl.models.model import Model


def from_flax(module: Any, data: FederatedData) -> Model:
    """A Flax module as a Model: its parameters are trained, everything else stays as it is.

    `module` is a `flax.linen` module, an `nnx` module, or a function of `nnx.Rngs` that makes one.
    It is called with a batch of rows. A linen or nnx module that is made from a key starts
    differently with every seed; an nnx module that is made already starts where it stands.

    Dropout draws from the loss's key while a client trains, and rests when the model is evaluated:
    a linen module learns it by an argument of its `__call__`, `train` or `deterministic`, an nnx
    module by its `train()` and `eval()`. Only parameters are trained (`params`; `nnx.Param`): other
    collections and variables, such as fixed word vectors, stay.

    >>> import flax.linen as nn, numpy as np, fairfl
    >>> data = fairfl.from_arrays({"a": (np.ones((10, 4)), np.arange(10) % 3)})
    >>> model = fairfl.models.from_flax(nn.Sequential([nn.Dense(8), nn.relu, nn.Dense(3)]), data)
    >>> model.name
    'Flax Sequential'
    """
    try:
        from fairfl.models.flax import adapted  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ValueError(_missing("from_flax", "flax")) from error
    return adapted(module, data)


def from_equinox(
    module: Any, data: FederatedData, frozen: Callable[[Any], Any] | None = None
) -> Model:
    """An Equinox module as a Model: its real-valued arrays are trained, everything else stays.

    `module` is an Equinox module, which is where every seed starts, or a function of a key that
    makes one, so that every seed starts elsewhere. It is called with one row, as Equinox has it,
    and with a `key` while a client trains if its `__call__` takes one; when it is evaluated it is
    in inference mode. `frozen` names parts that are not trained, as `equinox.tree_at` does:
    frozen=lambda module: module.vectors, or a tuple of parts.

    >>> import equinox as eqx, numpy as np, fairfl
    >>> data = fairfl.from_arrays({"a": (np.ones((10, 4)), np.arange(10) % 3)})
    >>> model = fairfl.models.from_equinox(lambda key: eqx.nn.MLP(4, 3, 8, 1, key=key), data)
    >>> model.name
    'Equinox MLP'
    """
    try:
        from fairfl.models.equinox import adapted  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ValueError(_missing("from_equinox", "equinox")) from error
    return adapted(module, data, frozen)


def made(make: Any, source: Any, advice: str) -> Any:
    """What the user's function makes, or a sentence why it makes nothing."""
    try:
        return make(source)
    except TypeError as error:
        raise ValueError(f"{advice} ({error})") from error


def _missing(function: str, package: str) -> str:
    return f"{function} needs {package}, which is not installed; pip install 'fairfl[{package}]'"


STATISTICS = (
    "the module keeps running statistics ({layer}), which clients with different data cannot "
    "share; normalise rows by themselves, with {instead}"
)
"""Why batch normalisation is refused."""
