"""A site that trains a fairfl model: a built-in one, your own JAX functions, or Flax's."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from flwr.app import Array, ArrayRecord

from fairfl.algorithms.work import Batch, batch_gradient
from fairfl.clients.federated import SplitName
from fairfl.clients.randomness import Stream, generator, permutations
from fairfl.flower.client import Arrays, Measured, Rows, Site, counted
from fairfl.flower.orders import Orders
from fairfl.models import Model
from fairfl.models.model import Params, penalties, stack
from fairfl.runs.trees import formed, named


def model_site(model: Model, data: Mapping[SplitName, Rows]) -> Site:
    """A site that trains a fairfl model, its own functions or Flax's, by local SGD.

    The steps and shuffles are the simulator's, so the federation does what `fairfl.train` does.

    >>> import jax.numpy as jnp, numpy as np, fairfl
    >>> from fairfl.flower import Orders, model_site
    >>> model = fairfl.models.from_functions(
    ...     lambda key: {"w": jnp.zeros((2, 3))}, lambda params, x: x @ params["w"]
    ... )
    >>> site = model_site(model, {"train": (np.eye(2, dtype=np.float32), np.array([0, 2]))})
    >>> w = {"w": np.zeros((2, 3), np.float32)}
    >>> round(site.measure(w, "train").loss, 4)
    1.0986
    >>> site.train(w, Orders(round=1, learning_rate=0.6))["w"].argmax(axis=1).tolist()
    [0, 2]
    """

    def measure(arrays: Arrays, split: SplitName) -> Measured:
        return _measured(model, _tree(model, arrays), *data[split])

    def train(arrays: Arrays, orders: Orders) -> Arrays:
        w = _tree(model, arrays)
        return _named(model, _walked(model, w, orders, *data["train"]))

    return Site(counted(data), measure, train, model.task)


def model_arrays(model: Model, seed: int = 0) -> ArrayRecord:
    """The first parameters of a seed, as the simulator draws them, for the server to begin with.

    >>> import jax.numpy as jnp, fairfl
    >>> from fairfl.flower import model_arrays
    >>> model = fairfl.models.from_functions(
    ...     lambda key: {"w": jnp.zeros((2, 3))}, lambda params, x: x @ params["w"]
    ... )
    >>> model_arrays(model)["w"].numpy().shape
    (2, 3)
    """
    number = int(generator(seed, Stream.MODEL).integers(2**31))
    first = named(model.init(jax.random.key(number)))
    return ArrayRecord({name: Array(leaf.astype(np.float32)) for name, leaf in first.items()})


def _tree(model: Model, arrays: Arrays) -> Params:
    """The arrays as the model's own tree, with the axis of models that its functions take."""
    form = jax.eval_shape(model.init, jax.random.key(0))
    tree = formed(form, arrays)
    return stack(model, 1).pack(jax.tree.map(lambda leaf: jnp.asarray(leaf)[..., None], tree))


def _named(model: Model, w: Params) -> dict[str, np.ndarray]:
    return named(jax.tree.map(lambda leaf: np.asarray(leaf[..., 0]), stack(model, 1).unpack(w)))


def _measured(model: Model, w: Params, x: np.ndarray, y: np.ndarray) -> Measured:
    """Summed on the host in double precision, as the simulator's evaluation is."""
    total, hits = 0.0, 0.0
    for start in range(0, len(y), TILE):
        part = slice(start, start + TILE)
        losses, correct = _rows_program(model)(w, x[part], y[part])
        total += float(np.asarray(losses, np.float64).sum())
        hits += float(np.asarray(correct).sum())
    loss = total / len(y) if model.reduction == "mean" else total
    accuracy = math.nan if model.task == "regression" else 100 * hits / len(y)
    return Measured(loss + float(penalties(model, w)[0]), accuracy)


TILE = 4096
"""Rows that are measured at a time."""


@lru_cache(maxsize=8)
def _rows_program(model: Model) -> Callable[..., tuple[jax.Array, jax.Array]]:
    def run(w: Params, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        stacked = stack(model, 1)
        losses = stacked.losses(w, x, y)
        regression = model.task == "regression"
        return losses, jnp.zeros(()) if regression else stacked.correct(w, x, y)

    return jax.jit(run)


def _walked(model: Model, w: Params, orders: Orders, x: np.ndarray, y: np.ndarray) -> Params:
    """E epochs of SGD on shuffled batches, the last one shorter; the proximal term where mu > 0."""
    step, own, size = _step_program(model), w, orders.batch_size or len(y)
    round = jax.random.fold_in(jax.random.key(orders.seed % 2**32), orders.round)
    key = jax.random.fold_in(round, orders.client)
    for count, rows in enumerate(_batches(len(y), size, orders)):
        filled = np.float32(len(rows))
        padded = np.pad(rows, (0, min(size, len(y)) - len(rows)))
        live = (np.arange(len(padded)) < len(rows)).astype(np.float32)
        noise = jax.random.fold_in(key, count)
        real, labels = jnp.asarray(x[padded]), jnp.asarray(y[padded])
        batch = Batch(real, labels, jnp.asarray(live), jnp.asarray(filled), noise)
        own = step(w, own, batch, np.float32(orders.learning_rate), np.float32(orders.mu))
    return own


def _batches(rows: int, size: int, orders: Orders) -> Iterable[np.ndarray]:
    """The rows in the simulator's order; one full batch keeps its own."""
    if orders.batch_size is None:
        return [np.arange(rows)] * orders.epochs
    named = (orders.seed, Stream.SHUFFLE, orders.round - 1, orders.client)
    every = permutations(rows, orders.epochs, *named)
    return [one[start : start + size] for one in every for start in range(0, rows, size)]


@lru_cache(maxsize=8)
def _step_program(model: Model) -> Callable[..., Params]:
    def run(w: Params, own: Params, batch: Batch, rate: jax.Array, mu: jax.Array) -> Params:
        gradient = batch_gradient(model, own, batch)
        return jax.tree.map(lambda p, g, start: p - rate * (g + mu * (p - start)), own, gradient, w)

    return jax.jit(run)
