"""A model that does not fit the data is told so in one sentence, before anything is trained."""

import jax.numpy as jnp
import numpy as np
import pytest

import fairfl
from conftest import made_up
from fairfl.models import Model


def trained(model, data):
    return fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=1)


def test_labels_out_of_the_models_range():
    model = fairfl.models.softmax_regression(made_up([30]))
    with pytest.raises(ValueError, match="labels of 5 classes but the model tells 3 apart"):
        trained(model, made_up([200], classes=5))


def test_labels_out_of_the_range_of_a_model_from_functions():
    model = fairfl.models.from_functions(
        lambda key: {"w": jnp.zeros((5, 2))}, lambda params, x: x @ params["w"]
    )
    with pytest.raises(ValueError, match="labels of 3 classes but the model tells 2 apart"):
        trained(model, made_up([30]))


def test_rows_of_another_shape():
    model = fairfl.models.softmax_regression(made_up([30], features=4))
    with pytest.raises(ValueError, match=r"does not take rows of shape \(5,\) .* build the model"):
        trained(model, made_up([30], features=5))


def test_two_classes_are_not_three():
    model = fairfl.models.linear_svm(made_up([30], classes=2))
    with pytest.raises(ValueError, match="tells two classes apart but the data has 3"):
        trained(model, made_up([30]))


def test_a_classifier_does_not_regress():
    data = fairfl.from_arrays({"a": (np.ones((9, 5)), np.linspace(0, 1, 9))})
    model = fairfl.models.softmax_regression(made_up([30]))
    with pytest.raises(ValueError, match="for multiclass but the labels make a regression"):
        trained(model, data)


def test_a_loss_of_the_whole_batch():
    data = made_up([30])
    right = fairfl.models.softmax_regression(data)
    wrong = Model(right.init, lambda p, x, y, key: right.loss(p, x, y, key).mean(), right.predict)
    with pytest.raises(
        ValueError, match=r"loss has shape \(\) for 2 rows; return one loss per row"
    ):
        trained(wrong, data)


def test_a_model_may_tell_more_classes_apart_than_the_data_has():
    wide = made_up([50], classes=5)
    model = fairfl.models.softmax_regression(wide)
    assert len(trained(model, made_up([30]))) == 1
