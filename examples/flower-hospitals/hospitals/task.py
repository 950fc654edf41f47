"""The task: does a person earn more than 50,000 dollars a year?

The people of one occupation stand for the patients of one hospital. In a deployment of your own,
`rows_of` reads what the site has, and nothing else in this app changes.
"""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np

import fairfl

OCCUPATIONS = (
    "Prof-specialty",
    "Craft-repair",
    "Exec-managerial",
    "Adm-clerical",
    "Sales",
    "Other-service",
    "Machine-op-inspct",
    "Transport-moving",
    "Handlers-cleaners",
    "Farming-fishing",
)
"""The ten largest, site by site."""

FIRST = 31
"""The first of the fourteen inputs that tell the occupation."""

ORDER = (
    *("Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial"),
    *("Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical"),
    *("Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv", "Armed-Forces"),
)


@lru_cache(maxsize=1)
def model():
    """Logistic regression over 99 categories."""

    def init(_):
        return {"weights": jnp.zeros((99, 2)), "bias": jnp.zeros(2)}

    def apply(w, x):
        return x @ w["weights"] + w["bias"]

    return fairfl.models.from_functions(init, apply, task="binary")


def rows_of(site: int):
    """The rows of one site: four fifths of its people to train on, the others to test on."""
    data = fairfl.datasets.load("adult")
    here = data.x[:, FIRST + ORDER.index(OCCUPATIONS[site])] == 1
    x, y = data.x[here], data.y[here]
    tested = np.arange(len(y)) % 5 == 4
    return {"train": (x[~tested], y[~tested]), "test": (x[tested], y[tested])}
