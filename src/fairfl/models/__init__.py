"""Models: what clients train."""

from fairfl.models.adapters import from_equinox, from_flax
from fairfl.models.functions import from_functions
from fairfl.models.linear import linear_svm, softmax_regression
from fairfl.models.lstm import char_lstm, sentiment_lstm
from fairfl.models.mlp import mlp
from fairfl.models.model import Model, Stacked, stack
from fairfl.models.omniglot import omniglot_cnn

__all__ = [
    "Model",
    "Stacked",
    "char_lstm",
    "from_equinox",
    "from_flax",
    "from_functions",
    "linear_svm",
    "mlp",
    "omniglot_cnn",
    "sentiment_lstm",
    "softmax_regression",
    "stack",
]
