"""How programs are compiled: a deep model's products are not fused into one another on a CPU."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jax.errors import JaxRuntimeError

from fairfl.models.model import Model

APART = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"}
"""XLA may make one kernel of a convolution and the layers after it, which took 95 ms for 4 ms."""


def compiled(model: Model, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled, for a model that trains alone with every product a kernel of its own.

    >>> import jax.numpy as jnp, numpy as np, fairfl
    >>> from fairfl.simulation.compiler import compiled
    >>> data = fairfl.from_arrays({"a": (np.ones((10, 4)), np.arange(10) % 3)})
    >>> int(compiled(fairfl.models.mlp(data), lambda x: x + 1)(jnp.int32(1)))
    2
    """
    options = APART if model.alone and _knows_apart(jax.default_backend()) else None
    return jax.jit(function, compiler_options=options)


@lru_cache
def _knows_apart(backend: str) -> bool:
    """Whether this JAX has the option: it came and may go with a version of XLA."""
    if backend != "cpu":
        return False
    try:
        jax.jit(jnp.negative, compiler_options=APART)(0.0)
    except JaxRuntimeError:
        return False
    return True
