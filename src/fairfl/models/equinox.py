"""Equinox modules: called row by row, their real-valued arrays trained and all else constant."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from fairfl.clients import FederatedData
from fairfl.models.adapters import STATISTICS, made
from fairfl.models.fit import check_fit, first_line
from fairfl.models.functions import from_functions
from fairfl.models.model import Model

ADVICE = (
    "from_equinox takes an Equinox module, or a function of a key that makes one; write for "
    "example lambda key: Net(key=key)"
)

Make = Callable[[PRNGKeyArray], eqx.Module]


def adapted(module: Any, data: FederatedData, frozen: Callable[[Any], Any] | None) -> Model:
    """See `fairfl.models.from_equinox`.

    >>> import equinox as eqx, jax, numpy as np, fairfl
    >>> from fairfl.models.equinox import adapted
    >>> data = fairfl.from_arrays({"a": (np.ones((10, 4)), np.arange(10) % 3)})
    >>> layer = eqx.nn.Linear(4, 3, key=jax.random.key(0))
    >>> adapted(layer, data, lambda layer: layer.bias).init(jax.random.key(1)).bias is None
    True
    """
    make = partial(_itself, module) if isinstance(module, eqx.Module) else module
    first = made(make, jax.random.key(0), ADVICE)
    _check(first)
    trained = _trained(first, frozen)
    params, constant = eqx.partition(first, trained)
    model = from_functions(
        init=partial(_init, make, params, tuple(jax.tree.leaves(trained))),
        apply=partial(_apply, constant, _takes_key(first)),
        task=data.task,
        stochastic=True,
        name=f"Equinox {type(first).__name__}",
    )
    check_fit(model, data)
    return model


def _itself(module: eqx.Module, key: PRNGKeyArray) -> eqx.Module:
    del key
    return module


def _check(module: Any) -> None:
    parts = jax.tree.leaves(module, is_leaf=_keeps_state)
    if any(map(_keeps_state, parts)):
        layers = "eqx.nn.BatchNorm or another layer with eqx.nn.State"
        raise ValueError(STATISTICS.format(layer=layers, instead="eqx.nn.GroupNorm or LayerNorm"))
    if not isinstance(module, eqx.Module):
        raise ValueError(f"{ADVICE} (it made a {type(module).__name__})")


def _keeps_state(part: Any) -> bool:
    return isinstance(part, eqx.nn.StateIndex | eqx.nn.State)


def _trained(module: eqx.Module, frozen: Callable[[Any], Any] | None) -> Any:
    """For every leaf of the module whether it is trained."""
    real = jax.tree.map(eqx.is_inexact_array, module)
    if frozen is None:
        return real
    try:
        return eqx.tree_at(frozen, real, replace_fn=partial(jax.tree.map, lambda _: False))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"frozen names no part of the module ({first_line(error)}); write for example "
            "frozen=lambda module: module.vectors"
        ) from error


def _takes_key(module: Any) -> bool:
    return "key" in inspect.signature(module.__call__).parameters


def _init(make: Make, params: Any, trained: tuple[bool, ...], key: PRNGKeyArray) -> Any:
    """The trained arrays of a module made anew, in the form of the first that was made."""
    leaves = zip(jax.tree.leaves(make(key)), trained, strict=True)
    return jax.tree.unflatten(jax.tree.structure(params), [leaf for leaf, own in leaves if own])


def _apply(
    constant: Any,
    takes_key: bool,
    params: Any,
    x: Shaped[Array, "rows ..."],
    key: PRNGKeyArray | None,
) -> Float[Array, "rows ..."]:
    module = eqx.combine(params, constant)
    if key is None:
        return jax.vmap(eqx.nn.inference_mode(module))(x)
    if not takes_key:
        return jax.vmap(module)(x)
    return jax.vmap(lambda row, key: module(row, key=key))(x, jax.random.split(key, len(x)))
