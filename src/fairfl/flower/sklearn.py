"""A site around a linear scikit-learn classifier and your own training function."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fairfl.clients.federated import SplitName
from fairfl.flower.client import Arrays, Measured, Rows, Site, counted
from fairfl.flower.orders import Orders


def sklearn_site(
    estimator: Any,
    data: Mapping[SplitName, Rows],
    classes: Sequence[Any],
    train: Callable[[Any, Orders, np.ndarray, np.ndarray], Any],
) -> Site:
    """A site around a linear scikit-learn classifier with probabilities, such as SGDClassifier.

    train(estimator, orders, x, y) goes on from the coefficients that the estimator has, by
    partial_fit. `classes` are those of the whole federation. F_k is the mean log loss. The model
    travels as "coef" [classes, features] and "intercept" [classes], one row for two classes.
    """
    known = np.asarray(classes)

    def load(arrays: Arrays) -> None:
        estimator.classes_ = known
        estimator.coef_, estimator.intercept_ = (
            np.array(arrays["coef"]),
            np.array(arrays["intercept"]),
        )

    def measure(arrays: Arrays, split: SplitName) -> Measured:
        load(arrays)
        x, y = data[split]
        probability = estimator.predict_proba(x)[np.arange(len(y)), np.searchsorted(known, y)]
        log_loss = -np.log(np.maximum(probability, np.finfo(float).tiny)).mean()
        return Measured(float(log_loss), 100 * float(np.mean(estimator.predict(x) == y)))

    def trained(arrays: Arrays, orders: Orders) -> Arrays:
        load(arrays)
        train(estimator, orders, *data["train"])
        like = arrays["coef"].dtype
        return {
            "coef": estimator.coef_.astype(like),
            "intercept": estimator.intercept_.astype(like),
        }

    return Site(counted(data), measure, trained, "binary" if len(known) == 2 else "multiclass")
