"""Any pair of functions init(key) -> params and apply(params, x) -> outputs becomes a Model."""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from fairfl.models.linear import cross_entropy
from fairfl.models.model import Batch, Labels, Model, Params, Reduction, Task

Apply = Callable[[Params, Batch], Float[Array, "rows outputs"]]


def from_functions(
    init: Callable[[PRNGKeyArray], Params],
    apply: Apply,
    task: Task = "multiclass",
    penalty: Callable[[Params], Float[Array, ""]] | None = None,
    reduction: Reduction = "mean",
    name: str = "functions",
) -> Model:
    """A Model from two functions: cross entropy over the outputs, half squares for regression.

    >>> import jax, jax.numpy as jnp, fairfl
    >>> init = lambda key: {"w": jax.random.normal(key, (4, 3))}
    >>> model = fairfl.models.from_functions(init, lambda params, x: x @ params["w"])
    >>> model.loss({"w": jnp.zeros((4, 3))}, jnp.ones((2, 4)), jnp.array([0, 1]), None).round(4)
    Array([1.0986, 1.0986], dtype=float32)
    """
    regression = task == "regression"
    return Model(
        init=init,
        loss=partial(_half_square if regression else _cross_entropy, apply),
        predict=partial(_value if regression else _class, apply),
        penalty=penalty,
        reduction=reduction,
        task=task,
        outputs=apply,
        name=name,
    )


def _cross_entropy(
    apply: Apply, params: Params, x: Batch, y: Labels, key: object
) -> Float[Array, " rows"]:
    del key
    return cross_entropy(apply(params, x), y)


def _class(apply: Apply, params: Params, x: Batch) -> Shaped[Array, " rows"]:
    return jnp.argmax(apply(params, x), axis=-1).astype(jnp.int32)


def _half_square(
    apply: Apply, params: Params, x: Batch, y: Labels, key: object
) -> Float[Array, " rows"]:
    del key
    return 0.5 * (_value(apply, params, x) - y) ** 2


def _value(apply: Apply, params: Params, x: Batch) -> Shaped[Array, " rows"]:
    return apply(params, x).reshape(x.shape[0])
