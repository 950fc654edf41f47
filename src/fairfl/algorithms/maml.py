"""MAML's work: adapt on support rows, then the gradient on query rows (Algorithm 4)."""

import jax
import jax.numpy as jnp

from fairfl.algorithms.work import Adaptation, Batch, Hyper, Work, batch_gradient, full_gradient
from fairfl.models.model import Model, Params


def adapted_gradient(steps: int, evaluated: int, batch_size: int, exact: bool) -> Work:
    """D_k = grad F_k(w_k) / L on a mini-batch of query rows, w_k after steps on the support rows.

    As printed it is the gradient at w_k; `exact` multiplies it by the derivative of w_k in w, the
    product of I - alpha Hess F_k(w_j) over the steps, which makes it the gradient in w.
    """
    name = "adapted gradient, exact" if exact else "adapted gradient"
    adaptation = Adaptation(steps, evaluated, batch_size, _inner_sgd, exact)
    gradient = full_gradient()
    return gradient._replace(name=name, batch_size=batch_size, batches=1, adaptation=adaptation)


def _inner_sgd(hyper: Hyper, model: Model, w: Params, support: Batch) -> Params:
    """w_k <- w_k - alpha grad F_batch(w_k) for every mini-batch."""

    def step(w_k: Params, batch: Batch) -> tuple[Params, None]:
        # Without support rows not even a penalty moves the model.
        rate = jnp.where(batch.live.any(), hyper["inner_learning_rate"], 0)
        gradient = batch_gradient(model, w_k, batch)
        return jax.tree.map(lambda p, g: p - rate * g, w_k, gradient), None

    return jax.lax.scan(step, w, support)[0]
