"""Flax modules: linen ones, whose parameters live outside, and nnx ones, which hold them."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from fairfl.clients import FederatedData
from fairfl.models.adapters import STATISTICS, made
from fairfl.models.fit import check_fit, first_line
from fairfl.models.functions import from_functions
from fairfl.models.model import Model, Params

ADVICE = (
    "from_flax takes a linen module, an nnx module, or a function of nnx.Rngs that makes one; "
    "write for example Net() or lambda rngs: Net(rngs=rngs)"
)

Rows = Shaped[Array, "rows ..."]
Outputs = Float[Array, "rows ..."]
Key = PRNGKeyArray | None
Make = Callable[[nnx.Rngs], nnx.Module]


def adapted(module: Any, data: FederatedData) -> Model:
    """See `fairfl.models.from_flax`.

    >>> import numpy as np, fairfl
    >>> from flax import nnx
    >>> from fairfl.models.flax import adapted
    >>> data = fairfl.from_arrays({"a": (np.ones((10, 4)), np.arange(10) % 3)})
    >>> adapted(lambda rngs: nnx.Linear(4, 3, rngs=rngs), data).name
    'Flax Linear'
    """
    model = _linen(module, data) if isinstance(module, nn.Module) else _nnx(module, data)
    check_fit(model, data)
    return model


def _refuse_statistics(found: bool, library: str) -> None:
    if found:
        raise ValueError(
            STATISTICS.format(
                layer=f"{library}.BatchNorm", instead=f"{library}.GroupNorm or LayerNorm"
            )
        )


# linen: init(key, x) -> variables and apply(variables, x). ---------------------------------------

TRAINING = {"train": True, "training": True, "is_training": True, "deterministic": False}
"""Arguments by which a linen module is told that it trains, and their values then."""


def _linen(module: nn.Module, data: FederatedData) -> Model:
    row = np.zeros((1, *data.x.shape[1:]), data.x.dtype)
    variables = _variables(module, row, jax.random.key(0))
    _refuse_statistics("batch_stats" in variables, "nn")
    constant = {name: held for name, held in variables.items() if name != "params"}
    return from_functions(
        init=partial(_init_linen, module, row),
        apply=partial(_apply_linen, module, constant),
        task=data.task,
        stochastic=True,
        name=f"Flax {type(module).__name__}",
    )


def _variables(module: nn.Module, row: np.ndarray, key: PRNGKeyArray) -> dict[str, Any]:
    try:
        return dict(module.init(key, jnp.asarray(row), **_mode(module, training=False)))
    except Exception as error:
        raise ValueError(
            f"the module does not start on rows of shape {row.shape[1:]} ({first_line(error)}); "
            "its __call__ takes a batch of rows, and beside it only one of "
            f"{', '.join(TRAINING)} to know when it trains"
        ) from error


def _mode(module: nn.Module, training: bool) -> dict[str, Any]:
    """The arguments of this module's call that say whether it trains."""
    arguments = inspect.signature(module.__call__).parameters
    return {name: value is training for name, value in TRAINING.items() if name in arguments}


def _init_linen(module: nn.Module, row: np.ndarray, key: PRNGKeyArray) -> Params:
    return _variables(module, row, key)["params"]


def _apply_linen(
    module: nn.Module, constant: dict[str, Any], params: Params, x: Rows, key: Key
) -> Outputs:
    # Every stream of a module falls back on the one that is called params.
    streams = None if key is None else {"params": key}
    mode = _mode(module, training=key is not None)
    return module.apply({"params": params, **constant}, x, rngs=streams, **mode)  # type: ignore[return-value]


# nnx: the module holds its variables; they are taken out, and put in again for every call. --------


def _nnx(module: Any, data: FederatedData) -> Model:
    make = partial(_itself, module) if isinstance(module, nnx.Module) else module
    first = _made(make, jax.random.key(0))
    form, params, streams, constant = nnx.split(first, nnx.Param, nnx.RngState, ...)
    _refuse_statistics(bool(jax.tree.leaves(nnx.state(first, nnx.BatchStat))), "nnx")
    return from_functions(
        init=partial(_init_nnx, make),
        apply=partial(_apply_nnx, form, params, streams, constant),
        task=data.task,
        stochastic=True,
        name=f"Flax {type(first).__name__}",
    )


def _itself(module: nnx.Module, rngs: nnx.Rngs) -> nnx.Module:
    del rngs
    return module


def _made(make: Any, key: PRNGKeyArray) -> nnx.Module:
    found = made(make, nnx.Rngs(key), ADVICE)
    if not isinstance(found, nnx.Module):
        raise ValueError(f"{ADVICE} (it made a {type(found).__name__})")
    return found


def _init_nnx(make: Make, key: PRNGKeyArray) -> Params:
    return nnx.to_pure_dict(nnx.state(_made(make, key), nnx.Param))


def _apply_nnx(
    form: Any, own: Any, streams: Any, constant: Any, params: Params, x: Rows, key: Key
) -> Outputs:
    # Calling a module changes its variables, so every call has copies of them.
    own, streams, constant = jax.tree.map(lambda leaf: leaf, (own, streams, constant))
    nnx.replace_by_pure_dict(own, params)
    module = nnx.merge(form, own, streams if key is None else _drawn(streams, key), constant)
    if key is None:
        module.eval()
    else:
        module.train()
    return module(x)


def _drawn(streams: Any, key: PRNGKeyArray) -> Any:
    """The module's streams of random numbers, each begun anew from a key of its own."""
    leaves, form = jax.tree.flatten(streams)

    def begun(place: int, leaf: Array) -> Array:
        own = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return jax.random.split(jax.random.fold_in(key, place), leaf.shape) if own else leaf

    return jax.tree.unflatten(form, [begun(*pair) for pair in enumerate(leaves)])
