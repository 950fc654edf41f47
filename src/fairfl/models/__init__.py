"""Models: what clients train."""

from fairfl.models.functions import from_functions
from fairfl.models.linear import linear_svm, softmax_regression
from fairfl.models.mlp import mlp
from fairfl.models.model import Model, Stacked, stack

__all__ = [
    "Model",
    "Stacked",
    "from_functions",
    "linear_svm",
    "mlp",
    "softmax_regression",
    "stack",
]
