"""Does the model fit the data? Found out from shapes alone, before anything is trained."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fairfl.clients import FederatedData
from fairfl.models.model import Model, as_trained

ROWS = 2
"""Rows of the batch whose shapes are followed through the model."""


def check_fit(model: Model, data: FederatedData) -> None:
    """Raise one sentence when the model's shapes, classes or task are not those of the data.

    Floats are as wide as JAX has them now, so that `jax.enable_x64` checks training in float64.

    >>> import numpy as np, fairfl
    >>> from fairfl.models.fit import check_fit
    >>> small = fairfl.from_arrays({"a": (np.ones((10, 4)), np.arange(10) % 3)})
    >>> large = fairfl.from_arrays({"a": (np.ones((10, 4)), np.arange(10) % 5)})
    >>> check_fit(fairfl.models.softmax_regression(small), large)
    Traceback (most recent call last):
    ValueError: the data has labels of 5 classes but the model tells 3 apart; build the model from \
this data
    """
    _check_task(model, data)
    key = jax.eval_shape(lambda: jax.random.key(0))
    x = jax.ShapeDtypeStruct((ROWS, *data.x.shape[1:]), _on_device(data.x))
    y = jax.ShapeDtypeStruct((ROWS,), _on_device(data.y))
    try:
        params = jax.eval_shape(lambda key: as_trained(model.init(key)), key)
        losses = jax.eval_shape(lambda p, x, y: model.loss(p, x, y, None), params, x, y)
        outputs = jax.eval_shape(model.outputs, params, x) if model.outputs else None
        if model.stochastic:
            jax.eval_shape(model.loss, params, x, y, key)
    except Exception as error:
        # Functions of the user's own, and of other libraries, fail in ways of their own.
        raise ValueError(
            f"the model does not take rows of shape {data.x.shape[1:]} of {x.dtype} "
            f"({first_line(error)}); build the model from this data"
        ) from error
    if not jax.tree.leaves(params):
        raise ValueError("the model has no parameters, so there is nothing to train; give it some")
    if getattr(losses, "shape", None) != (ROWS,):
        raise ValueError(
            f"the model's loss has shape {getattr(losses, 'shape', None)} for {ROWS} rows; "
            f"return one loss per row, shape ({ROWS},)"
        )
    _check_classes(outputs, data)


def _check_task(model: Model, data: FederatedData) -> None:
    if (model.task == "regression") != (data.task == "regression"):
        raise ValueError(
            f"the model is for {model.task} but the labels make a {data.task} task; "
            f"build the model from this data, or with task={data.task!r}"
        )
    if model.task == "binary" and data.task == "multiclass":
        raise ValueError(
            f"the model tells two classes apart but the data has {_classes(data)}; "
            "use softmax_regression or mlp"
        )


def _check_classes(outputs: Any, data: FederatedData) -> None:
    if outputs is not None and data.classes is not None and outputs.shape[-1] < _classes(data):
        raise ValueError(
            f"the data has labels of {_classes(data)} classes but the model tells "
            f"{outputs.shape[-1]} apart; build the model from this data"
        )


def _classes(data: FederatedData) -> int:
    return 0 if data.classes is None else len(np.atleast_1d(data.classes))


def _on_device(array: np.ndarray) -> np.dtype:
    real = np.issubdtype(array.dtype, np.floating)
    return jnp.result_type(float) if real else np.dtype(np.int32)


def first_line(error: Exception) -> str:
    """What went wrong, without the pages that libraries add; its kind where it says nothing.

    >>> from fairfl.models.fit import first_line
    >>> first_line(TypeError("no rows.\\nat line 5")), first_line(KeyError())
    ('no rows', 'KeyError')
    """
    said = str(error).strip().splitlines()
    return said[0].rstrip(".") if said else type(error).__name__
