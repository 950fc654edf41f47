"""Models: the stacked kernels equal what vmap derives from the per-row loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fairfl
from conftest import made_up
from fairfl.models.model import penalties, penalty_gradient, stack

KINDS = ["softmax", "svm sum", "svm mean", "mlp"]
WIDTHS = [1, 2, 5]


def built(kind):
    data = made_up([20], features=4, classes=2 if "svm" in kind else 3)
    if kind == "softmax":
        return data, fairfl.models.softmax_regression(data)
    if kind == "mlp":
        return data, fairfl.models.mlp(data, hidden=(6,))
    return data, fairfl.models.linear_svm(data, reduction=kind.split()[1])


def stacked_params(model, width):
    """Random parameters, user layout with the models last."""
    keys = jax.random.split(jax.random.key(0), width)
    sets = [model.init(key) for key in keys]
    noisy = [
        jax.tree.map(lambda leaf, key=key: leaf + jax.random.normal(key, leaf.shape), params)
        for params, key in zip(sets, keys, strict=True)
    ]
    return noisy, jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=-1), *noisy)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_stacked_losses_and_hits_are_the_models_own(kind, width):
    data, model = built(kind)
    sets, packed = stacked_params(model, width)
    kernel = stack(model, width)
    x, y = jnp.asarray(data.x), jnp.asarray(data.y)
    losses = kernel.losses(kernel.pack(packed), x, y)
    hits = kernel.correct(kernel.pack(packed), x, y)
    for m, params in enumerate(sets):
        np.testing.assert_allclose(losses[:, m], model.loss(params, x, y, None), rtol=2e-5)
        np.testing.assert_array_equal(hits[:, m], model.predict(params, x) == y)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_stacked_gradient_is_the_gradient_of_the_weighted_losses(kind, width):
    data, model = built(kind)
    sets, packed = stacked_params(model, width)
    kernel = stack(model, width)
    x, y = jnp.asarray(data.x), jnp.asarray(data.y)
    weight = jax.random.uniform(jax.random.key(1), (len(y), width))
    found = kernel.unpack(kernel.gradient(kernel.pack(packed), x, y, weight, None))
    for m, params in enumerate(sets):
        objective = lambda p, m=m: jnp.sum(weight[:, m] * model.loss(p, x, y, None))  # noqa: E731
        expected = jax.grad(objective)(params)
        for name, leaf in jax.tree.leaves_with_path(expected):
            got = dict(jax.tree.leaves_with_path(found))[name][..., m]
            np.testing.assert_allclose(got, leaf, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("kind", ["softmax", "svm sum"])
def test_packing_and_unpacking_is_the_identity(kind):
    _, model = built(kind)
    for width in WIDTHS:
        _, packed = stacked_params(model, width)
        kernel = stack(model, width)
        back = kernel.unpack(kernel.pack(packed))
        assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), packed, back))


def test_a_row_of_weight_zero_adds_nothing_even_where_its_loss_is_infinite():
    model = fairfl.models.from_functions(
        lambda key: {"w": jnp.ones(1)}, lambda params, x: x * params["w"], task="regression"
    )
    x, y = jnp.array([[1.0], [1e30]]), jnp.array([0.0, 0.0])
    kernel = stack(model, 1)
    weight = jnp.array([[1.0], [0.0]])
    gradient = kernel.gradient({"w": jnp.ones((1, 1))}, x, y, weight, None)
    assert gradient["w"].item() == 1.0


def test_linear_models_start_at_zero_whatever_the_key():
    for kind in ("softmax", "svm sum"):
        _, model = built(kind)
        assert all((leaf == 0).all() for leaf in jax.tree.leaves(model.init(jax.random.key(3))))


def test_softmax_of_zero_weights_loses_log_of_the_classes():
    data, model = built("softmax")
    loss = model.loss(model.init(None), jnp.asarray(data.x), jnp.asarray(data.y), None)
    np.testing.assert_allclose(loss, np.log(3), rtol=1e-6)


def test_svm_by_hand():
    """w = (1, 0), b = 0.5: x = (1, 9) of class 1 has margin 1.5, of class 0 loses 2.5."""
    _, model = built("svm sum")
    params = {"weights": jnp.array([1.0, 0, 0, 0]), "bias": jnp.array(0.5)}
    x = jnp.array([[1.0, 9, 0, 0], [1.0, 9, 0, 0]])
    np.testing.assert_allclose(model.loss(params, x, jnp.array([1, 0]), None), [0, 2.5])
    assert model.penalty(params).item() == 0.5


def test_penalty_of_every_stacked_model_and_none_without_one():
    _, svm = built("svm sum")
    params = {"weights": jnp.array([[1.0, 2.0]] * 4), "bias": jnp.array([7.0, 8.0])}
    np.testing.assert_allclose(penalties(svm, params), [2.0, 8.0])
    gradient = penalty_gradient(svm, params)
    np.testing.assert_allclose(gradient["weights"], params["weights"])
    np.testing.assert_allclose(gradient["bias"], 0)
    _, softmax = built("softmax")
    assert (
        penalties(softmax, {"weights": jnp.ones((4, 3, 2)), "bias": jnp.ones((3, 2))}) == 0
    ).all()


def test_mlp_starts_differently_for_every_seed():
    _, model = built("mlp")
    first, second = (model.init(jax.random.key(seed))[0]["weights"] for seed in (0, 1))
    assert not (first == second).all()


def test_two_functions_make_a_model_that_trains():
    data = made_up([30, 30], features=4)
    model = fairfl.models.from_functions(
        lambda key: {"w": jnp.zeros((4, 3))}, lambda params, x: x @ params["w"]
    )
    result = fairfl.train(data, model, fairfl.fedavg(), rounds=30, cohort=2)
    assert result.fairness("train")["average"][0] > 60


def test_a_regression_reports_fairness_of_losses():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 3)).astype(np.float32)
    y = x @ np.array([1.0, -2.0, 0.5]) + 0.25
    data = fairfl.from_arrays({"a": (x[:30], y[:30]), "b": (x[30:], y[30:])})
    model = fairfl.models.mlp(data, hidden=())
    result = fairfl.train(data, model, fairfl.fedavg(), rounds=200, cohort=2)
    assert np.isnan(result.clients("test")["accuracy"]).all()
    assert result.fairness("test")["worst"][0] < 1e-2
    assert result.fairness("test")["worst"][0] >= result.fairness("test")["best"][0]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: fairfl.models.linear_svm(made_up([20])),
            "separates two classes but the data has 3",
        ),
        (
            lambda: fairfl.models.linear_svm(made_up([20], classes=2), reduction="max"),
            "neither 'mean' nor 'sum'",
        ),
        (
            lambda: fairfl.models.softmax_regression(
                fairfl.from_arrays({"a": (np.ones((3, 2)), [0.5, 1.5, 2.5])})
            ),
            "labels are real numbers",
        ),
        (
            lambda: fairfl.models.softmax_regression(
                fairfl.from_arrays({"a": (np.ones((4, 2, 2)), [0, 1, 0, 1])})
            ),
            r"shape \(2, 2\)",
        ),
        (lambda: fairfl.models.mlp(made_up([20]), hidden=(0,)), "positive layer widths"),
    ],
)
def test_a_model_that_does_not_fit_the_data_says_why(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_a_regression_starts_at_zero_unless_it_is_asked_to_draw():
    data = made_up([20], features=4, classes=3)
    params = fairfl.models.softmax_regression(data).init(jax.random.key(0))
    assert not params["weights"].any()
    assert not params["bias"].any()


def test_drawn_weights_differ_by_seed_within_glorots_bound_and_the_bias_is_zero():
    """The bound is sqrt(6 / (4 + 3)), and the variance a third of its square: 2 / 7."""
    data = made_up([20], features=4, classes=3)
    model = fairfl.models.softmax_regression(data, start="glorot")
    drawn = jnp.stack([model.init(jax.random.key(seed))["weights"] for seed in range(400)])
    assert 0.92 < abs(drawn).max() <= (6 / 7) ** 0.5
    assert drawn.var() == pytest.approx(2 / 7, rel=0.05)
    assert (drawn[0] != drawn[1]).all()
    assert not model.init(jax.random.key(0))["bias"].any()
    assert model.name == "softmax regression, random start"


def test_a_start_that_is_not_known_hears_a_sentence():
    data = made_up([20], features=4, classes=3)
    with pytest.raises(ValueError, match=r"start='he' is neither 'zero' nor 'glorot'; choose one"):
        fairfl.models.softmax_regression(data, start="he")
