"""Linear models: softmax regression and the paper's support vector machine.

Both start at zero, unless the regression is asked to start at random, and carry hand-written
stacked kernels: the products are written so that all models of a sweep share one matrix product,
and barriers keep XLA from computing an exponential anew for every reduction that reads it
(measured: 1.4x on eight models).
"""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import optimization_barrier as materialise
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fairfl.clients import FederatedData
from fairfl.models.layers import dense_layer
from fairfl.models.model import Model, Reduction, Stacked

Weights = dict[str, Array | np.ndarray]


def softmax_regression(data: FederatedData, start: str = "zero") -> Model:
    """Softmax regression (multinomial logistic regression) with the shapes of the data.

    loss(w, x, y) = log sum_c exp(x . W_c + b_c) - (x . W_y + b_y)

    start="zero" begins at zero, whatever the seed. start="glorot" draws the weights, uniform with
    variance 2 / (features + classes) (Glorot and Bengio, 2010), so that seeds differ where the
    split is published and all clients take part.

    >>> import numpy as np, fairfl
    >>> data = fairfl.from_arrays({"a": (np.ones((10, 4)), np.arange(10) % 3)})
    >>> model = fairfl.models.softmax_regression(data)
    >>> {name: leaf.shape for name, leaf in model.init(None).items()}
    {'bias': (3,), 'weights': (4, 3)}
    """
    features, classes = shapes(data, "softmax_regression")
    if start not in ("zero", "glorot"):
        raise ValueError(f"start={start!r} is neither 'zero' nor 'glorot'; choose one")
    return softmax_of(features, classes, data.task, start == "glorot")


def linear_svm(data: FederatedData, reduction: str = "sum") -> Model:
    """The paper's linear SVM: hinge losses + 0.5 |weights|^2 once per batch; class 0 is -1.

    reduction="sum" is the reference's loss for Vehicle: F_k grows with the client's size.
    reduction="mean" divides the hinge losses by the number of rows.

    >>> import numpy as np, fairfl
    >>> data = fairfl.from_arrays({"a": (np.ones((10, 4)), np.arange(10) % 2)})
    >>> fairfl.models.linear_svm(data).reduction
    'sum'
    """
    features, classes = shapes(data, "linear_svm")
    if classes != 2:
        raise ValueError(
            f"linear_svm separates two classes but the data has {classes}; "
            "use softmax_regression or mlp"
        )
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction={reduction!r} is neither 'mean' nor 'sum'; choose one")
    return svm_of(features, "mean" if reduction == "mean" else "sum")


def shapes(data: FederatedData, model: str) -> tuple[int, int]:
    """Features and classes of the data, or why this model does not fit it."""
    if data.classes is None:
        raise ValueError(f"{model} is a classifier but the labels are real numbers; use an mlp")
    if data.x.ndim != 2:
        raise ValueError(
            f"{model} needs rows of numbers but a row of x has shape {data.x.shape[1:]}; "
            "flatten it first"
        )
    return data.x.shape[1], len(data.classes)


@lru_cache
def softmax_of(features: int, classes: int, task: str, drawn: bool = False) -> Model:
    zeros = partial(_zeros, weights=(features, classes), bias=(classes,))
    return Model(
        init=partial(dense_layer, inputs=features, outputs=classes) if drawn else zeros,
        loss=_softmax_loss,
        predict=_softmax_predict,
        outputs=_softmax_outputs,
        task=task,  # type: ignore[arg-type]
        stacked=_softmax_kernel,
        name=f"softmax regression{', random start' if drawn else ''}",
        built_in="softmax",
    )


@lru_cache
def svm_of(features: int, reduction: Reduction) -> Model:
    return Model(
        init=partial(_zeros, weights=(features,), bias=()),
        loss=_svm_loss,
        predict=_svm_predict,
        penalty=_svm_penalty,
        reduction=reduction,
        task="binary",
        stacked=_svm_kernel,
        name=f"linear SVM ({reduction})",
        built_in="svm" if reduction == "sum" else "svm-mean",
    )


def _zeros(key: PRNGKeyArray | None, weights: tuple[int, ...], bias: tuple[int, ...]) -> Weights:
    del key  # a convex model starts at zero, whatever the seed
    return {"bias": jnp.zeros(bias), "weights": jnp.zeros(weights)}


# Softmax regression -----------------------------------------------------------------------------


def cross_entropy(
    logits: Float[Array, "rows classes"], y: Int[Array, " rows"]
) -> Float[Array, " rows"]:
    """log sum_c exp(z_c) - z_y, row by row."""
    chosen = jnp.take_along_axis(logits, y[:, None], axis=-1)[:, 0]
    return jax.nn.logsumexp(logits, axis=-1) - chosen


def _softmax_loss(
    params: Weights, x: Float[Array, "rows features"], y: Int[Array, " rows"], key: object
) -> Float[Array, " rows"]:
    del key
    return cross_entropy(_softmax_outputs(params, x), y)


def _softmax_outputs(
    params: Weights, x: Float[Array, "rows features"]
) -> Float[Array, "rows classes"]:
    return x @ params["weights"] + params["bias"]


def _softmax_predict(params: Weights, x: Float[Array, "rows features"]) -> Int[Array, " rows"]:
    return jnp.argmax(_softmax_outputs(params, x), axis=-1).astype(jnp.int32)


def _logits(
    params: Weights, x: Float[Array, "rows features"]
) -> Float[Array, "rows classes models"]:
    features, classes, models = params["weights"].shape
    z = x @ params["weights"].reshape(features, classes * models)
    return z.reshape(x.shape[0], classes, models) + params["bias"]


def _one_hot(y: Int[Array, " rows"], classes: int, like: Array) -> Float[Array, "rows classes"]:
    return materialise((y[:, None] == jnp.arange(classes)).astype(like.dtype))


def _softmax_losses(
    params: Weights, x: Float[Array, "rows features"], y: Int[Array, " rows"]
) -> Float[Array, "rows models"]:
    z = _logits(params, x)
    top = z.max(axis=1)
    powers = materialise(jnp.exp(z - top[:, None]))
    chosen = (z * _one_hot(y, z.shape[1], z)[:, :, None]).sum(axis=1)
    return materialise(top + jnp.log(powers.sum(axis=1)) - chosen)


def _softmax_correct(
    params: Weights, x: Float[Array, "rows features"], y: Int[Array, " rows"]
) -> Bool[Array, "rows models"]:
    return jnp.argmax(_logits(params, x), axis=1) == y[:, None]


def _softmax_gradient(
    params: Weights,
    x: Float[Array, "rows features"],
    y: Int[Array, " rows"],
    weight: Float[Array, "rows models"],
    key: object,
) -> Weights:
    del key
    z = _logits(params, x)
    powers = jnp.exp(z - z.max(axis=1, keepdims=True))
    scale = (weight / powers.sum(axis=1))[:, None]
    error = materialise(powers * scale - _one_hot(y, z.shape[1], z)[:, :, None] * weight[:, None])
    flat = error.reshape(x.shape[0], -1)
    return {"bias": error.sum(axis=0), "weights": (x.T @ flat).reshape(params["weights"].shape)}


def _softmax_kernel(models: int) -> Stacked:
    return ONE_SOFTMAX if models == 1 else MANY_SOFTMAX


MANY_SOFTMAX = Stacked(_softmax_losses, _softmax_correct, _softmax_gradient)

# One model alone: classes first and rows last, so that element-wise work runs along the rows and no
# product needs a transpose (measured: 1.7x on mini-batches of ten).


def _one_logits(params: Weights, x: Float[Array, "rows features"]) -> Float[Array, "classes rows"]:
    return jnp.einsum("cd,rd->cr", params["weights"][..., 0], x) + params["bias"]


def _one_losses(
    params: Weights, x: Float[Array, "rows features"], y: Int[Array, " rows"]
) -> Float[Array, "rows 1"]:
    z = _one_logits(params, x)
    top = z.max(axis=0)
    chosen = (z * _one_hot(y, z.shape[0], z).T).sum(axis=0)
    return (top + jnp.log(jnp.exp(z - top).sum(axis=0)) - chosen)[:, None]


def _one_correct(
    params: Weights, x: Float[Array, "rows features"], y: Int[Array, " rows"]
) -> Bool[Array, "rows 1"]:
    return (jnp.argmax(_one_logits(params, x), axis=0) == y)[:, None]


def _one_gradient(
    params: Weights,
    x: Float[Array, "rows features"],
    y: Int[Array, " rows"],
    weight: Float[Array, "rows 1"],
    key: object,
) -> Weights:
    del key
    z, u = _one_logits(params, x), weight[:, 0]
    powers = jnp.exp(z - z.max(axis=0))
    error = powers * (u / powers.sum(axis=0)) - _one_hot(y, z.shape[0], z).T * u
    return {"bias": error.sum(axis=1)[:, None], "weights": (error @ x)[..., None]}


def _classes_first(params: Weights) -> Weights:
    return {**params, "weights": params["weights"].swapaxes(0, 1)}


ONE_SOFTMAX = Stacked(_one_losses, _one_correct, _one_gradient, _classes_first, _classes_first)


# Support vector machine -------------------------------------------------------------------------


def _sign(y: Int[Array, " rows"]) -> Int[Array, " rows"]:
    return 2 * y - 1


def _svm_loss(
    params: Weights, x: Float[Array, "rows features"], y: Int[Array, " rows"], key: object
) -> Float[Array, " rows"]:
    del key
    return jax.nn.relu(1 - _sign(y) * (x @ params["weights"] + params["bias"]))


def _svm_predict(params: Weights, x: Float[Array, "rows features"]) -> Int[Array, " rows"]:
    return (x @ params["weights"] + params["bias"] > 0).astype(jnp.int32)


def _svm_penalty(params: Weights) -> Float[Array, ""]:
    return 0.5 * jnp.sum(params["weights"] ** 2)


def _shortfall(
    params: Weights, x: Float[Array, "rows features"], y: Int[Array, " rows"]
) -> Float[Array, "rows models"]:
    """How far each row stays short of the margin: 1 - y f(x)."""
    return 1 - _sign(y)[:, None] * (x @ params["weights"] + params["bias"])


def _svm_losses(
    params: Weights, x: Float[Array, "rows features"], y: Int[Array, " rows"]
) -> Float[Array, "rows models"]:
    return jax.nn.relu(_shortfall(params, x, y))


def _svm_correct(
    params: Weights, x: Float[Array, "rows features"], y: Int[Array, " rows"]
) -> Bool[Array, "rows models"]:
    return (x @ params["weights"] + params["bias"] > 0) == (y[:, None] > 0)


def _svm_gradient(
    params: Weights,
    x: Float[Array, "rows features"],
    y: Int[Array, " rows"],
    weight: Float[Array, "rows models"],
    key: object,
) -> Weights:
    del key
    active = _shortfall(params, x, y) > 0
    error = materialise(jnp.where(active, -weight * _sign(y)[:, None], 0).T)
    # Rows contracted where they are contiguous; the product x.T @ error takes three times as long.
    return {"bias": error.sum(axis=1), "weights": materialise(error @ x).T}


def _svm_kernel(models: int) -> Stacked:
    del models
    return MANY_SVM


MANY_SVM = Stacked(_svm_losses, _svm_correct, _svm_gradient)
