"""FedMGDA+: normalised updates, the shortest mixture near the weights, descent for everyone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fairfl
from cohorts import coefficients, cohort, drawn
from fairfl.algorithms.rules import fedmgda


def of_updates(D, weights=None):
    D = np.asarray(D, np.float32)
    return cohort(np.ones(len(D)), weights=weights)._replace(gram=jnp.asarray(D @ D.T))


@pytest.mark.parametrize("seed", range(5))
def test_fedmgda_with_eps_0_is_fedavg_on_normalised_updates(seed):
    """The peers minimise whatever eps is; theirs reaches p only up to their solver's tolerance."""
    people = drawn(seed)
    a = coefficients(fedmgda(), people, eps=0, eta=1)[0]
    p = people.weights / people.weights.sum()
    np.testing.assert_array_equal(a, p / jnp.sqrt(jnp.diag(people.gram)))


@pytest.mark.parametrize("seed", range(5))
def test_the_mixture_stays_within_eps_of_the_weights(seed):
    people = drawn(seed)
    a = coefficients(fedmgda(), people, eps=0.03, eta=1)[0]
    mixture = a * jnp.sqrt(jnp.diag(people.gram))
    p = people.weights / people.weights.sum()
    np.testing.assert_allclose(mixture.sum(), 1, rtol=1e-5)
    assert (jnp.abs(mixture - p) <= 0.03 + 1e-6).all()
    assert jnp.abs(mixture - p).max() > 0.02


def test_free_mixtures_let_every_client_descend():
    """With eps = 1 it is MGDA: <d_k, d> >= |d|^2 for every client k, whom FedAvg may hurt."""
    draw = np.random.default_rng(4)
    D = draw.normal(size=(6, 16))
    D[0] = -10 * D[1:].mean(axis=0) + 0.1 * draw.normal(size=16)
    directions = D / np.linalg.norm(D, axis=1, keepdims=True)
    assert (directions @ D.mean(axis=0)).min() < 0
    with jax.enable_x64(True):
        people = cohort(np.ones(6), dtype=np.float64)._replace(gram=jnp.asarray(D @ D.T))
        step = np.asarray(coefficients(fedmgda(), people, eps=1, eta=1)[0]) @ D
    assert (directions @ step).min() >= step @ step - 1e-9


def test_fedmgda_by_hand():
    """d_1 and d_2 at right angles: (1/2, 1/2) is shortest, and .1 from (3/4, 1/4) is (.65, .35)."""
    people = of_updates([[2, 0], [0, 1]], weights=[3, 1])
    free = coefficients(fedmgda(), people, eps=1, eta=1)[0]
    np.testing.assert_allclose(free, [0.25, 0.5], rtol=1e-5)
    near = coefficients(fedmgda(), people, eps=0.1, eta=2)[0]
    np.testing.assert_allclose(near, [0.65, 0.7], rtol=1e-5)


def test_the_length_of_an_update_does_not_matter():
    """A client that sends a thousand times as much moves the model no further."""
    draw = np.random.default_rng(0)
    D = draw.normal(size=(5, 16))
    scaled = D * np.array([[1], [1000], [1], [0.01], [1]])
    steps = [
        np.asarray(coefficients(fedmgda(), of_updates(X), eps=0.2)[0]) @ X for X in (D, scaled)
    ]
    np.testing.assert_allclose(*steps, rtol=1e-3, atol=1e-5)


def test_opposite_updates_take_no_step_and_say_so():
    people = of_updates([[1, 0], [-2, 0]])
    a, _, info = coefficients(fedmgda(), people, eps=1, eta=1)
    np.testing.assert_allclose(a @ jnp.array([1.0, -2.0]), 0, atol=1e-6)
    assert info["common_descent"] < 1e-6


def test_a_client_with_nothing_to_send_does_no_harm():
    a = coefficients(fedmgda(), of_updates([[1, 0], [0, 0], [0, 1]]), eps=0.1)[0]
    assert np.isfinite(a).all()
    assert a[1] == 0


def test_the_step_of_training_is_at_most_eta(data, model):
    family = fairfl.fedmgda(eta=[0.1, 1], eps=1)
    found = fairfl.train(data, model, family, rounds=1, cohort=4).params
    for place, eta in enumerate((0.1, 1)):
        step = np.sqrt(sum((leaf[place] ** 2).sum() for leaf in jax.tree.leaves(found)))
        assert 0.1 * eta < step <= eta * (1 + 1e-5)
