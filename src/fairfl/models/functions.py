"""Any pair of functions init(key) -> params and apply(params, x) -> outputs becomes a Model."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from fairfl.models.linear import cross_entropy
from fairfl.models.model import Batch, Labels, Model, Params, Reduction, Task

Outputs = Float[Array, "rows *outputs"]
Apply = Callable[..., Outputs]


def from_functions(
    init: Callable[[PRNGKeyArray], Params],
    apply: Apply,
    task: Task = "multiclass",
    penalty: Callable[[Params], Float[Array, ""]] | None = None,
    reduction: Reduction = "mean",
    name: str = "functions",
    stochastic: bool = False,
) -> Model:
    """A Model from two functions: cross entropy over the outputs, half squares for regression.

    With `stochastic` the second is called as apply(params, x, key): a key to draw from while a
    client trains, None when the model is evaluated. What the functions close over is not trained.

    >>> import jax, jax.numpy as jnp, fairfl
    >>> init = lambda key: {"w": jax.random.normal(key, (4, 3))}
    >>> model = fairfl.models.from_functions(init, lambda params, x: x @ params["w"])
    >>> model.loss({"w": jnp.zeros((4, 3))}, jnp.ones((2, 4)), jnp.array([0, 1]), None).round(4)
    Array([1.0986, 1.0986], dtype=float32)
    """
    regression = task == "regression"
    keyed = apply if stochastic else partial(_without_key, apply)
    evaluated = partial(_evaluated, apply) if stochastic else apply
    return Model(
        init=init,
        loss=partial(_half_square if regression else _cross_entropy, keyed),
        predict=partial(_value if regression else _class, evaluated),
        penalty=penalty,
        reduction=reduction,
        task=task,
        outputs=evaluated,
        stochastic=stochastic,
        name=name,
    )


def _without_key(apply: Apply, params: Params, x: Batch, key: Any) -> Outputs:
    del key
    return apply(params, x)


def _evaluated(apply: Apply, params: Params, x: Batch) -> Outputs:
    return apply(params, x, None)


def _cross_entropy(
    apply: Apply, params: Params, x: Batch, y: Labels, key: Any
) -> Float[Array, " rows"]:
    return cross_entropy(apply(params, x, key), y)


def _class(apply: Apply, params: Params, x: Batch) -> Shaped[Array, " rows"]:
    return jnp.argmax(apply(params, x), axis=-1).astype(jnp.int32)


def _half_square(
    apply: Apply, params: Params, x: Batch, y: Labels, key: Any
) -> Float[Array, " rows"]:
    return 0.5 * (apply(params, x, key).reshape(x.shape[0]) - y) ** 2


def _value(apply: Apply, params: Params, x: Batch) -> Shaped[Array, " rows"]:
    return apply(params, x).reshape(x.shape[0])
