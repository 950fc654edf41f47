"""A built-in model again, from its name and the parameters that it was left with."""

from typing import Any

from fairfl.models.linear import softmax_of, svm_of
from fairfl.models.mlp import mlp_of
from fairfl.models.model import Model, Task


def built_in(name: str, params: Any, task: Task) -> Model | None:
    """The model that has this name among the built-in ones for rows of numbers, in the shapes of
    its parameters; None for another.

    >>> import numpy as np
    >>> from fairfl.models.built_in import built_in
    >>> params = {"bias": np.zeros(3), "weights": np.zeros((4, 3))}
    >>> built_in("softmax", params, "multiclass").name
    'softmax regression'
    """
    match name:
        case "softmax":
            return softmax_of(*params["weights"].shape, task)
        case "svm":
            return svm_of(len(params["weights"]), "sum")
        case "svm-mean":
            return svm_of(len(params["weights"]), "mean")
        case "mlp":
            shapes = [layer["weights"].shape for layer in params]
            return mlp_of((*(inputs for inputs, _ in shapes), shapes[-1][1]), task)
    return None
