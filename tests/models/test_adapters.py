"""Modules of Flax and Equinox train as models: what is trained, what is drawn, what is refused."""

import pickle
import subprocess
import sys

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import fairfl
from conftest import made_up

FEATURES, HIDDEN, CLASSES = 5, 6, 3


class Linen(nn.Module):
    rate: float = 0.0

    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.relu(nn.Dense(HIDDEN)(x))
        return nn.Dense(CLASSES)(nn.Dropout(self.rate, deterministic=not train)(x))


class Deterministic(nn.Module):
    rate: float = 0.0

    @nn.compact
    def __call__(self, x, deterministic: bool):
        return Linen(self.rate)(x, train=not deterministic)


class Nnx(nnx.Module):
    def __init__(self, rngs, rate=0.0):
        self.layers = nnx.List([nnx.Linear(FEATURES, HIDDEN, rngs=rngs)])
        self.dropout = nnx.Dropout(rate, rngs=rngs)
        self.last = nnx.Linear(HIDDEN, CLASSES, rngs=rngs)

    def __call__(self, x):
        return self.last(self.dropout(nnx.relu(self.layers[0](x))))


class Equinox(eqx.Module):
    first: eqx.nn.Linear
    dropout: eqx.nn.Dropout
    last: eqx.nn.Linear

    def __init__(self, key, rate=0.0):
        keys = jax.random.split(key)
        self.first = eqx.nn.Linear(FEATURES, HIDDEN, key=keys[0])
        self.dropout = eqx.nn.Dropout(rate)
        self.last = eqx.nn.Linear(HIDDEN, CLASSES, key=keys[1])

    def __call__(self, x, *, key=None):
        return self.last(self.dropout(jax.nn.relu(self.first(x)), key=key))


class EquinoxWithDropout(Equinox):
    def __init__(self, key):
        super().__init__(key, rate=0.5)


class NnxWithDropout(Nnx):
    def __init__(self, rngs):
        super().__init__(rngs, rate=0.5)


@pytest.fixture(scope="module")
def clients():
    return made_up([12, 20, 9])


PLAIN = {
    "linen": (fairfl.models.from_flax, Linen()),
    "deterministic": (fairfl.models.from_flax, Deterministic()),
    "nnx": (fairfl.models.from_flax, Nnx),
    "equinox": (fairfl.models.from_equinox, Equinox),
}
DRAWING = {
    "linen": (fairfl.models.from_flax, Linen(rate=0.5)),
    "deterministic": (fairfl.models.from_flax, Deterministic(rate=0.5)),
    "nnx": (fairfl.models.from_flax, NnxWithDropout),
    "equinox": (fairfl.models.from_equinox, EquinoxWithDropout),
}


def built(kind, data, modules):
    adapter, module = modules[kind]
    return adapter(module, data)


def of_the_first(result):
    """The parameters of the first experiment."""
    return jax.tree.map(lambda leaf: leaf[0], result.params)


def batch(data, rows=7):
    return jnp.asarray(data.x[:rows]), jnp.asarray(data.y[:rows])


def by_hand(params, x):
    """The same network in NumPy, from the leaves by their shapes."""
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(params)]
    shape = {leaf.shape: leaf for leaf in leaves}
    first = shape[FEATURES, HIDDEN] if (FEATURES, HIDDEN) in shape else shape[HIDDEN, FEATURES].T
    last = shape[HIDDEN, CLASSES] if (HIDDEN, CLASSES) in shape else shape[CLASSES, HIDDEN].T
    hidden = np.maximum(np.asarray(x, np.float64) @ first + shape[HIDDEN,], 0)
    return hidden @ last + shape[CLASSES,]


@pytest.mark.parametrize("kind", PLAIN)
def test_outputs_are_the_modules_own(kind, clients):
    model = built(kind, clients, PLAIN)
    params = jax.tree.map(lambda leaf: leaf + 0.1, model.init(jax.random.key(0)))
    x, y = batch(clients)
    outputs = by_hand(params, x)
    np.testing.assert_allclose(model.outputs(params, x), outputs, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(model.predict(params, x), outputs.argmax(axis=1))
    expected = np.log(np.exp(outputs).sum(axis=1)) - outputs[np.arange(7), y]
    for key in (None, jax.random.key(1)):
        np.testing.assert_allclose(model.loss(params, x, y, key), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", DRAWING)
def test_dropout_draws_by_the_key_in_training_and_rests_in_evaluation(kind, clients):
    model = built(kind, clients, DRAWING)
    params = model.init(jax.random.key(0))
    params = jax.tree.map(lambda leaf: leaf + 0.5, params)
    x, y = jnp.ones((40, FEATURES)), jnp.zeros(40, jnp.int32)
    one, same, other = (model.loss(params, x, y, jax.random.key(k)) for k in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    assert len(np.unique(np.asarray(one))) > 1, "every row drops units of its own"
    outputs = by_hand(params, x)
    expected = np.log(np.exp(outputs).sum(axis=1)) - outputs[:, 0]
    np.testing.assert_allclose(model.loss(params, x, y, None), expected, rtol=1e-4)


@pytest.mark.parametrize("kind", DRAWING)
def test_a_module_trains_in_a_sweep_and_a_seed_makes_the_first_model(kind, clients):
    model = built(kind, clients, DRAWING)
    family = fairfl.q_fedavg(q=[0, 2], learning_rate=0.1)
    result = fairfl.train(clients, model, family, rounds=3, cohort=2, seed=[0, 1])
    assert np.isfinite(result.fairness("test")["average"]).all()
    first = [jax.tree.leaves(model.init(jax.random.key(k))) for k in (0, 1)]
    assert any(not np.array_equal(a, b) for a, b in zip(*first, strict=True))


@pytest.mark.parametrize("kind", PLAIN)
def test_a_module_trains_to_what_the_same_functions_train_to_in_float64(kind, clients):
    model = built(kind, clients, PLAIN)
    start = model.init(jax.random.key(0))
    same = fairfl.models.from_functions(lambda key: start, model.outputs)
    fixed = fairfl.Model(**{**vars(model), "init": lambda key: start})
    algorithm = fairfl.q_fedavg(q=1)
    found, expected = (
        fairfl.train(clients, m, algorithm, rounds=4, cohort=3, x64=True)[0].params
        for m in (fixed, same)
    )
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", DRAWING)
def test_an_adapted_module_travels_to_another_process(kind, clients):
    model = built(kind, clients, DRAWING)
    there = pickle.loads(pickle.dumps(model))
    params, key = model.init(jax.random.key(0)), jax.random.key(1)
    np.testing.assert_array_equal(
        there.loss(params, *batch(clients), key), model.loss(params, *batch(clients), key)
    )


@pytest.mark.parametrize("kind", ["linen", "nnx", "equinox"])
def test_a_kept_run_gives_the_modules_parameters_again(kind, clients, tmp_path):
    model = built(kind, clients, PLAIN)
    algorithm = fairfl.fedavg()
    kept = fairfl.train(clients, model, algorithm, rounds=2, cohort=2, out=tmp_path / "run")
    again = fairfl.train(
        clients, model, algorithm, rounds=2, cohort=2, out=tmp_path / "run", resume=True
    )
    assert jax.tree.structure(kept[0].params) == jax.tree.structure(again[0].params)
    for a, b in zip(*map(jax.tree.leaves, (kept.params, again.params)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_two_dropout_layers_of_an_nnx_module_draw_apart(clients):
    class Twice(nnx.Module):
        def __init__(self, rngs):
            self.scale = nnx.Param(jnp.ones(CLASSES))
            self.one, self.two = (nnx.Dropout(0.5, rngs=rngs) for _ in range(2))

        def __call__(self, x):
            ones = jnp.ones((len(x), 500))
            both = (self.one(ones) > 0) & (self.two(ones) > 0)
            return both.mean(axis=1)[:, None] * self.scale

    data = fairfl.from_arrays({"a": (np.ones((4, 2)), np.arange(4) % CLASSES)})
    model = fairfl.models.from_flax(Twice, data)
    loss = lambda p: model.loss(p, jnp.ones((8, 2)), jnp.zeros(8, int), jax.random.key(0)).mean()  # noqa: E731
    apart = jnp.log(CLASSES - 1 + jnp.exp(10 * 0.25)) - 10 * 0.25
    params = {"scale": jnp.zeros(CLASSES).at[0].set(10)}
    np.testing.assert_allclose(loss(params), apart, atol=0.15)


class Vectors(eqx.Module):
    """Words in fixed vectors, a counter, a flag and a layer."""

    vectors: jax.Array
    counter: jax.Array
    flag: jax.Array
    layer: eqx.nn.Linear

    def __init__(self, key):
        self.vectors = jnp.eye(4)
        self.counter, self.flag = jnp.arange(3), jnp.array([True, False, True])
        self.layer = eqx.nn.Linear(4, CLASSES, key=key)

    def __call__(self, tokens):
        return self.layer(self.vectors[tokens].sum(axis=0)) + self.counter * self.flag


def tokens():
    draw = np.random.default_rng(0)
    return fairfl.from_arrays({k: (draw.integers(4, size=(9, 6)), np.arange(9) % 3) for k in "ab"})


def test_integers_and_flags_of_an_equinox_module_are_not_trained():
    data = tokens()
    module = Vectors(jax.random.key(0))
    result = fairfl.train(
        data, fairfl.models.from_equinox(module, data), fairfl.fedavg(), rounds=2, cohort=2
    )
    params = of_the_first(result)
    assert params.counter is None
    assert params.flag is None
    trained = eqx.combine(params, module)
    assert not np.array_equal(trained.layer.weight, module.layer.weight)
    assert not np.array_equal(trained.vectors, module.vectors)
    np.testing.assert_array_equal(trained.counter, [0, 1, 2])


def test_frozen_parts_of_an_equinox_module_stay():
    data = tokens()
    module = Vectors(jax.random.key(0))
    model = fairfl.models.from_equinox(
        module, data, frozen=lambda module: (module.vectors, module.layer.bias)
    )
    params = model.init(jax.random.key(1))
    assert [leaf.shape for leaf in jax.tree.leaves(params)] == [(CLASSES, 4)]
    x = jnp.asarray(data.x[:5])
    np.testing.assert_allclose(model.outputs(params, x), jax.vmap(module)(x), rtol=1e-6)


def test_constants_of_a_flax_module_stay():
    class Linens(nn.Module):
        @nn.compact
        def __call__(self, x):
            vectors = self.variable("constants", "vectors", lambda: jnp.eye(4))
            return nn.Dense(CLASSES)(vectors.value[x].sum(axis=1))

    class Nnxs(nnx.Module):
        def __init__(self, rngs):
            self.vectors = nnx.Variable(jnp.eye(4))
            self.layer = nnx.Linear(4, CLASSES, rngs=rngs)

        def __call__(self, x):
            return self.layer(self.vectors[x].sum(axis=1))

    data = tokens()
    for module in (Linens(), Nnxs):
        model = fairfl.models.from_flax(module, data)
        result = fairfl.train(data, model, fairfl.fedavg(), rounds=2, cohort=2)
        shapes = sorted(leaf.shape for leaf in jax.tree.leaves(of_the_first(result)))
        assert shapes == [(CLASSES,), (4, CLASSES)]


def test_every_seed_starts_where_a_module_that_is_made_stands(clients):
    made = Equinox(jax.random.key(5))
    model = fairfl.models.from_equinox(made, clients)
    for seed in (0, 1):
        np.testing.assert_array_equal(model.init(jax.random.key(seed)).last.bias, made.last.bias)
    nnx_made = Nnx(nnx.Rngs(5))
    model = fairfl.models.from_flax(nnx_made, clients)
    kernel = model.init(jax.random.key(1))["last"]["kernel"]
    np.testing.assert_array_equal(kernel, nnx_made.last.kernel[...])


def test_training_leaves_the_users_nnx_module_alone_and_its_answer_goes_in(clients):
    made = Nnx(nnx.Rngs(5))
    before = np.asarray(made.last.kernel[...])
    model = fairfl.models.from_flax(made, clients)
    params = of_the_first(fairfl.train(clients, model, fairfl.fedavg(), rounds=2, cohort=2))
    np.testing.assert_array_equal(made.last.kernel[...], before)
    nnx.update(made, params)
    x = jnp.asarray(clients.x[:4])
    np.testing.assert_allclose(made(x), model.outputs(params, x), rtol=1e-6)


def test_a_regression_by_a_module():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(40, 2)).astype(np.float32)
    data = fairfl.from_arrays({"a": (x, x @ np.array([1.0, -2.0])), "b": (x, x[:, 0])})
    model = fairfl.models.from_equinox(lambda key: eqx.nn.Linear(2, 1, key=key), data)
    assert model.task == "regression"
    result = fairfl.train(data, model, fairfl.fedavg(), rounds=2, cohort=2)
    assert np.isfinite(result.fairness("test")["average"]).all()


class LinenBatchNorm(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        return nn.Dense(CLASSES)(nn.BatchNorm(use_running_average=not train)(x))


class Counting(nn.Module):
    @nn.compact
    def __call__(self, x):
        calls = self.variable("counters", "calls", lambda: jnp.zeros(()))
        if not self.is_initializing():
            calls.value += 1
        return nn.Dense(CLASSES)(x)


class NnxBatchNorm(nnx.Module):
    def __init__(self, rngs):
        self.norm = nnx.BatchNorm(FEATURES, rngs=rngs)
        self.layer = nnx.Linear(FEATURES, CLASSES, rngs=rngs)

    def __call__(self, x):
        return self.layer(self.norm(x))


class EquinoxBatchNorm(eqx.Module):
    norm: eqx.nn.BatchNorm

    def __init__(self, key):
        self.norm = eqx.nn.BatchNorm(FEATURES, "batch", mode="ema")

    def __call__(self, x, state):
        return self.norm(x, state)


class Unled(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(CLASSES)(nn.Dropout(0.5, deterministic=False)(x))


class NarrowCarry(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(CLASSES)(nn.RNN(nn.LSTMCell(2))(x[:, :, None])[:, -1])


@pytest.mark.parametrize(
    ("adapter", "module", "sentence"),
    [
        ("from_flax", LinenBatchNorm(), "running statistics .nn.BatchNorm.* nn.GroupNorm"),
        ("from_flax", NnxBatchNorm, "running statistics .nnx.BatchNorm"),
        ("from_equinox", EquinoxBatchNorm, "running statistics .eqx.nn.BatchNorm"),
        ("from_equinox", eqx.nn.make_with_state(EquinoxBatchNorm), "running statistics"),
        ("from_flax", Counting(), 'collection "counters" is immutable'),
        ("from_flax", Unled(), "needs PRNG"),
        ("from_flax", nn.Dense, "or a function of nnx.Rngs that makes one.*made a Dense"),
        ("from_flax", 3, "takes a linen module.*'int' object is not callable"),
        ("from_flax", nn.Dense(2), "3 classes but the model tells 2 apart"),
        ("from_flax", nnx.Linear, "missing 1 required positional argument: 'out_features'"),
        ("from_equinox", lambda key: 3, "a function of a key that makes one.*made a int"),
        ("from_equinox", eqx.nn.Identity(), "no parameters, so there is nothing to train"),
    ],
)
def test_a_module_that_cannot_be_trained_says_why(adapter, module, sentence, clients):
    with pytest.raises(ValueError, match=sentence):
        getattr(fairfl.models, adapter)(module, clients)


def test_frozen_that_names_nothing_says_so(clients):
    with pytest.raises(ValueError, match=r"frozen names no part of the module .*'vectors'"):
        fairfl.models.from_equinox(Equinox, clients, frozen=lambda module: module.vectors)


def test_a_module_that_is_bound_to_float32_is_refused_in_float64_before_training(clients):
    model = fairfl.models.from_flax(NarrowCarry(), clients)
    with pytest.raises(ValueError, match=r"of float64 .*carry"):
        fairfl.train(clients, model, fairfl.fedavg(), rounds=1, cohort=2, x64=True)


@pytest.mark.parametrize("package", ["flax", "equinox"])
def test_without_the_package_one_sentence_says_what_to_install(package):
    script = f"""
import sys
sys.modules[{package!r}] = None
import fairfl
try:
    fairfl.models.from_{package}(None, None)
except ValueError as error:
    print(error)
"""
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said == (
        f"from_{package} needs {package}, which is not installed; pip install 'fairfl[{package}]'\n"
    )


def test_neither_package_is_imported_before_it_is_used():
    script = "import sys, fairfl; print({'flax', 'equinox', 'torch'} & set(sys.modules))"
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said == "set()\n"
