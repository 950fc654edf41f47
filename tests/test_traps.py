"""Mistakes of other code bases that would be easy to repeat; each test names who makes them.

Those that belong to one room are tested there: the projection and the lambdas of AFL, TERM's
weights, q = 0 and overflow with the rules; draws and weights with the samplers; splits with the
clients; replies that are not finite with the engine; metrics of few clients with the metrics.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fairfl
from fairfl.algorithms.rules import q_ffl
from fairfl.simulation.plan import cohort_of


def two_clients(first=10, second=30, seed=0, **options):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(first + second, 3)).astype(np.float32)
    y = (x[:, 0] + 0.3 * draw.normal(size=first + second) > 0).astype(int)
    y[:first] = 1 - y[:first]
    parts = {"a": (x[:first], y[:first]), "b": (x[first:], y[first:])}
    return fairfl.from_arrays(parts, split=None, **options)


def trained(data, model, family, rounds=1, **options):
    return fairfl.train(data, model, family, rounds=rounds, cohort=data.clients, **options)


# --- the paper's reference code -------------------------------------------------------------------


def test_the_svms_loss_adds_up_and_takes_its_penalty_once_a_batch():
    """fair_flearn's Vehicle loss is a sum of hinges plus .5 |W|^2 per batch, which its paper's text
    has as a mean: one batch of n rows at w = 0 steps n times as far."""
    data = two_clients()
    steps = {}
    for reduction in ("sum", "mean"):
        model = fairfl.models.linear_svm(data, reduction=reduction)
        family = fairfl.fedavg(learning_rate=1e-4, batch_size=50, weights="equal")
        steps[reduction] = trained(data, model, family).params["bias"][0]
    slopes = [np.sum(1 - 2 * data.y[rows]) for rows in (slice(10), slice(10, 40))]
    np.testing.assert_allclose(steps["sum"], -1e-4 * np.mean(slopes), rtol=1e-4)
    shares = np.divide(slopes, [10, 30])
    np.testing.assert_allclose(steps["mean"], -1e-4 * np.mean(shares), rtol=1e-4)


@pytest.mark.parametrize("family", [fairfl.fedavg(batch_size=50), fairfl.fedsgd()])
def test_a_penalty_reaches_the_loss_and_the_step(family):
    """fair_flearn's regulariser of three of its models is never added to the loss."""
    data = two_clients()
    plain = fairfl.models.softmax_regression(data)
    ones = {"bias": jnp.ones(2), "weights": jnp.ones((3, 2))}
    bare = replace(plain, init=lambda key: ones)
    heavy = replace(bare, penalty=lambda w: 2 * jnp.sum(w["weights"] ** 2))
    without, having = trained(data, bare, family), trained(data, heavy, family)
    np.testing.assert_allclose(having.history["loss"] - without.history["loss"], 12, rtol=1e-5)
    pulled = without.params["weights"] - having.params["weights"]
    np.testing.assert_allclose(pulled, 0.1 * 4, rtol=1e-4)


def test_a_run_has_as_many_rounds_as_asked():
    """fair_flearn runs one more."""
    data = two_clients()
    result = trained(data, fairfl.models.softmax_regression(data), fairfl.fedavg(), rounds=3)
    assert result.history["round"].tolist() == [1, 2, 3]


def test_with_everyone_in_the_cohort_clients_count_by_their_size():
    """fair_flearn counts them equally then, and so does its published Table 2."""
    data = two_clients()
    model = fairfl.models.softmax_regression(data)
    steps = {
        weights: trained(data, model, fairfl.fedsgd(weights=weights)).params["weights"][0]
        for weights in ("size", "equal")
    }
    x, signs = data.x.astype(float), (1 - 2 * data.y)[:, None]
    each = [(x[rows] * signs[rows]).mean(axis=0) / 2 for rows in (slice(10), slice(10, 40))]
    np.testing.assert_allclose(steps["size"][:, 1], -0.1 * np.dot([0.25, 0.75], each), rtol=1e-4)
    np.testing.assert_allclose(steps["equal"][:, 1], -0.1 * np.mean(each, axis=0), rtol=1e-4)


def test_a_seed_sets_more_than_the_first_weights():
    """fair_flearn's --seed leaves cohorts and shuffles as they are: its seeds are one seed."""
    data = two_clients()
    people = fairfl.from_arrays(dict.fromkeys(range(20), (data.x, data.y)))
    cohorts = {tuple(cohort_of(people, fairfl.fedavg(), 3, seed, 0)[0]) for seed in range(5)}
    assert len(cohorts) == 5


# --- Flower's QFedAvg -----------------------------------------------------------------------------


def test_every_client_has_a_loss_of_its_own_so_that_q_changes_the_direction():
    """Flower's first QFedAvg gives all clients one central loss: F^q cancels but for the step."""
    data = two_clients()
    away = {"bias": jnp.zeros(2), "weights": jnp.array([[0.0, 1], [0, 2], [0, 0]])}
    model = replace(fairfl.models.softmax_regression(data), init=lambda key: away)
    family = fairfl.q_fedsgd(q=[0, 5], weights="equal")
    steps = (trained(data, model, family).params["weights"] - away["weights"]).reshape(2, -1)
    cosine = steps[0] @ steps[1] / np.linalg.norm(steps[0]) / np.linalg.norm(steps[1])
    assert cosine < 0.999


def test_no_central_evaluation_is_needed():
    """Flower's first QFedAvg raises NameError without one; here is not even a test split."""
    data = two_clients()
    result = trained(data, fairfl.models.softmax_regression(data), fairfl.q_fedavg(q=1))
    assert np.isfinite(result.params["weights"]).all()
    assert np.isfinite(result.history["effective_step"]).all()


def test_q_zero_is_fedavg_on_flowers_two_clients():
    """Flower's QFedAvg(q=0) ends at .5 where its FedAvg ends at .9: models of 1 and 0 of 9 and 1
    rows. Weights that are not those of the objective are dropped there."""
    updates, rows = np.array([-1.0, 0.0]), jnp.array([9.0, 1.0])
    people = fairfl.rules.Cohort(
        jnp.arange(2), rows, rows, losses=jnp.array([1.0, 2.0]), norms=jnp.asarray(updates**2)
    )
    hyper = {"q": jnp.array(0.0), "L": jnp.array(1.0)}
    a = q_ffl().coefficients(hyper, (), people)[0]
    assert 0 - np.dot(a, updates) == pytest.approx(0.9)


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_clients_loss_is_measured_at_the_model_it_received(epochs):
    """Flower's quickstart reports a running mean DURING training, which is no F_k(w)."""
    data = two_clients()
    model = fairfl.models.softmax_regression(data)
    family = fairfl.q_fedavg(q=1, learning_rate=2.0, epochs=epochs, batch_size=3)
    result = trained(data, model, family, rounds=2)
    np.testing.assert_allclose(result.history["loss"][0], np.log(2), rtol=1e-6)


def test_one_failing_client_does_not_end_the_model():
    """One NaN among the losses makes Flower's global model NaN."""
    data = two_clients()
    broken = data.x.copy()
    broken[:10] = 1e30
    parts = {"a": (broken[:10], data.y[:10]), "b": (data.x[10:], data.y[10:])}
    sick = fairfl.from_arrays(parts, split=None)
    model = fairfl.models.from_functions(
        lambda key: jnp.zeros(3), lambda w, x: jnp.stack([0 * x[:, 0], (x**2) @ w + x[:, 0]], 1)
    )
    result = trained(sick, model, fairfl.q_fedavg(q=1))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result.params))


# --- others ---------------------------------------------------------------------------------------


def test_a_mean_loss_does_not_grow_with_the_clients_rows():
    """FedLab's q-FFL adds up batch means, so that a client with twice the rows is twice as bad."""
    data = two_clients()
    pairs = {"a": (data.x[:10], data.y[:10]), "b": (data.x[10:], data.y[10:])}
    twice = {name: (np.tile(x, (2, 1)), np.tile(y, 2)) for name, (x, y) in pairs.items()}
    found = []
    for parts in (pairs, twice):
        people = fairfl.from_arrays(parts, split=None)
        model = fairfl.models.softmax_regression(people)
        family = fairfl.q_fedsgd(q=2, learning_rate=0.5)
        found.append(trained(people, model, family, rounds=3).params["weights"])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-6)


def test_every_client_reports_its_own_accuracy():
    """GIFAIR's official code reports the last client's N times, which looks perfectly fair."""
    draw = np.random.default_rng(2)
    x = draw.normal(size=(20, 3)).astype(np.float32)
    parts = {k: (x, (x[:, k] > 0).astype(int)) for k in range(3)}
    people = fairfl.from_arrays(parts, test=parts)
    model = fairfl.models.softmax_regression(people)
    result = trained(people, model, fairfl.gifair(learning_rate=0.05), rounds=5)
    z = x @ result.params["weights"][0] + result.params["bias"][0]
    own = [100 * np.mean(z.argmax(axis=1) == y) for _, y in parts.values()]
    assert len(set(own)) > 1
    np.testing.assert_allclose(result.clients("test")["accuracy"], own, rtol=1e-6)
