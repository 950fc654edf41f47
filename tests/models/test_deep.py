"""The paper's deep models: their shapes, that they learn, and how the engine runs them."""

import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fairfl
from fairfl.models.alone import PIECE, alone
from fairfl.models.model import stack

CHARACTERS, WORDS = 6, 12


def text(rows=30, steps=5, clients=3, seed=0):
    """The next character is the one before the last: the state has to remember."""
    draw = np.random.default_rng(seed)
    x = draw.integers(CHARACTERS, size=(clients, rows, steps))
    return fairfl.from_arrays({f"role-{k}": (rows, rows[:, -2]) for k, rows in enumerate(x)})


def tweets(rows=30, steps=4, seed=0):
    """A tweet is positive when its last word is of the upper half of the vocabulary."""
    draw = np.random.default_rng(seed)
    x = draw.integers(WORDS, size=(2, rows, steps))
    data = fairfl.from_arrays({k: (own, own[:, -1] >= WORDS // 2) for k, own in enumerate(x)})
    return dataclasses.replace(data, embeddings=draw.normal(size=(WORDS, 8)).astype(np.float32))


def images(shape=(8, 8), rows=20, seed=0):
    """Bars: class 0 lies, class 1 stands."""
    draw = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    x = 0.1 * draw.normal(size=(rows, 8, 8))
    for image, upright, place in zip(x, y, draw.integers(8, size=rows), strict=True):
        (image.T if upright else image)[place] += 1
    x = x.astype(np.float32).reshape(rows, *shape)
    return fairfl.from_arrays({"a": (x[:10], y[:10]), "b": (x[10:], y[10:])}, split=None)


def small(kind):
    if kind == "char":
        data = text()
        return data, fairfl.models.char_lstm(data, hidden=16)
    if kind == "sentiment":
        data = tweets()
        return data, fairfl.models.sentiment_lstm(data, hidden=8)
    data = images()
    return data, fairfl.models.omniglot_cnn(data)


def parameters(model):
    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(model.init, jax.random.key(0))))


def test_the_character_model_is_as_large_as_the_papers():
    alphabet = np.arange(80)
    data = fairfl.from_arrays({"a": (np.tile(alphabet, (80, 1)), alphabet)})
    first, second = 4 * 256 * (8 + 256 + 1), 4 * 256 * (256 + 256 + 1)
    assert parameters(fairfl.models.char_lstm(data)) == 80 * 8 + first + second + 257 * 80


def test_the_sentiment_model_does_not_train_its_vectors():
    model = fairfl.models.sentiment_lstm(tweets())
    first, second = 4 * 100 * (8 + 100 + 1), 4 * 100 * (100 + 100 + 1)
    assert parameters(model) == first + second + 101 * 2


def test_the_omniglot_model_is_as_large_as_the_references():
    data = fairfl.from_arrays({"a": (np.zeros((5, 28, 28), np.float32), np.arange(5))})
    convolutions = 26 * 32 + (25 * 32 + 1) * 64
    dense = (7 * 7 * 64 + 1) * 2048 + 2049 * 5
    assert parameters(fairfl.models.omniglot_cnn(data)) == convolutions + dense


@pytest.mark.parametrize("shape", [(64,), (8, 8), (8, 8, 1)])
def test_an_image_is_the_same_however_its_row_is_shaped(shape):
    data = images(shape)
    model = fairfl.models.omniglot_cnn(data)
    params = model.init(jax.random.key(0))
    square = jnp.asarray(images((8, 8)).x)
    expected = fairfl.models.omniglot_cnn(images((8, 8))).outputs(params, square)
    np.testing.assert_array_equal(model.outputs(params, jnp.asarray(data.x)), expected)


@pytest.mark.parametrize(
    ("kind", "rate", "rounds"), [("char", 1.0, 60), ("sentiment", 0.5, 25), ("cnn", 0.05, 6)]
)
def test_a_deep_model_learns(kind, rate, rounds):
    data, model = small(kind)
    algorithm = fairfl.q_fedavg(q=0.1, learning_rate=rate, batch_size=5)
    result = fairfl.train(data, model, algorithm, rounds=rounds, cohort=2)
    assert result.fairness("train")["average"][0] > 90


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("kind", ["char", "sentiment", "cnn"])
def test_a_deep_model_alone_and_stacked_is_the_same_model(kind, models):
    data, model = small(kind)
    sets = [model.init(jax.random.key(seed)) for seed in range(models)]
    packed = jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=-1), *sets)
    x, y = jnp.asarray(data.x[:9]), jnp.asarray(data.y[:9])
    weight = jax.random.uniform(jax.random.key(1), (9, models)).at[3].set(0)
    kernel = stack(model, models)
    losses, hits = jax.jit(kernel.losses)(packed, x, y), jax.jit(kernel.correct)(packed, x, y)
    gradient = jax.jit(kernel.gradient)(packed, x, y, weight, None)
    one = jax.jit(model.loss)
    for m, params in enumerate(sets):
        np.testing.assert_allclose(losses[:, m], one(params, x, y, None), rtol=1e-4)
        np.testing.assert_array_equal(hits[:, m], model.predict(params, x) == y)
        loss = lambda p, m=m: weight[:, m] @ model.loss(p, x, y, None)  # noqa: E731
        pairs = zip(
            jax.tree.leaves(gradient), jax.tree.leaves(jax.jit(jax.grad(loss))(params)), strict=True
        )
        for found, expected in pairs:
            np.testing.assert_allclose(found[..., m], expected, rtol=1e-3, atol=1e-5)


def test_rows_are_evaluated_in_pieces_and_come_back_in_order():
    data = text(rows=PIECE, clients=3)
    model = fairfl.models.char_lstm(data, hidden=4)
    params = model.init(jax.random.key(0))
    packed = jax.tree.map(lambda leaf: leaf[..., None], params)
    losses = stack(model, 1).losses(packed, jnp.asarray(data.x), jnp.asarray(data.y))
    expected = model.loss(params, jnp.asarray(data.x), jnp.asarray(data.y), None)
    np.testing.assert_allclose(losses[:, 0], expected, rtol=1e-5)


def test_every_experiment_of_a_deep_model_has_a_program_of_its_own():
    data, model = small("char")
    family = fairfl.q_fedavg(q=[0, 1, 5], learning_rate=0.5)
    seen = []
    result = fairfl.train(
        data, model, family, rounds=2, cohort=2, on_chunk=lambda now: seen.append(now.group)
    )
    assert {len(group.task.members) for group in seen} == {1}
    assert {group.task.lanes for group in seen} == {1}
    single = fairfl.train(data, model, fairfl.q_fedavg(q=5, learning_rate=0.5), rounds=2, cohort=2)
    for found, expected in zip(
        jax.tree.leaves(result[2].params), jax.tree.leaves(single[0].params), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["char", "sentiment", "cnn"])
def test_a_deep_model_travels_to_another_process(kind):
    data, model = small(kind)
    there = pickle.loads(pickle.dumps(model))
    params = model.init(jax.random.key(0))
    x, y = jnp.asarray(data.x[:4]), jnp.asarray(data.y[:4])
    found, expected = there.loss(params, x, y, None), model.loss(params, x, y, None)
    np.testing.assert_array_equal(found, expected)


def numbers():
    return fairfl.from_arrays({"a": (np.ones((4, 3)), [0, 1, 1, 0])})


def regression(shape):
    return fairfl.from_arrays({"a": (np.ones((3, *shape), int), [0.5, 1.5, 2.5])})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: fairfl.models.char_lstm(numbers()), "reads rows of token numbers"),
        (lambda: fairfl.models.char_lstm(regression((3,))), "labels are real numbers"),
        (lambda: fairfl.models.char_lstm(text(), hidden=0), "hidden=0 must be a positive width"),
        (lambda: fairfl.models.sentiment_lstm(text()), "the data has no embeddings"),
        (
            lambda: fairfl.models.sentiment_lstm(
                dataclasses.replace(tweets(), embeddings=np.ones((3, 2), np.float32))
            ),
            "the word number 11 but embeddings of only 3 words",
        ),
        (lambda: fairfl.models.omniglot_cnn(numbers()), r"has shape \(3,\)"),
        (lambda: fairfl.models.omniglot_cnn(regression((4, 4))), "labels are real numbers"),
    ],
)
def test_data_that_a_deep_model_cannot_read(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("batch_size", [4, 100])
@pytest.mark.parametrize("epochs", [1, 2])
def test_training_alone_is_training_side_by_side(epochs, batch_size):
    """The kernel without an axis of models, and updates added in turn, change no result."""
    draw = np.random.default_rng(0)
    sizes = {"a": 3, "b": 29, "c": 9, "d": 150}
    clients = {k: (draw.normal(size=(n, 5)), np.arange(n) % 3) for k, n in sizes.items()}
    data = fairfl.from_arrays(clients, split=None)
    model = fairfl.models.mlp(data, hidden=(4,))
    algorithm = fairfl.q_fedavg(q=1, learning_rate=0.1, epochs=epochs, batch_size=batch_size)
    found, expected = (
        fairfl.train(data, m, algorithm, rounds=3, cohort=3, x64=True, evaluate_every=3, lanes=1)
        for m in (alone(model), model)
    )
    for a, b in zip(*map(jax.tree.leaves, (found.params, expected.params)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.history["loss"], expected.history["loss"], rtol=1e-12)
