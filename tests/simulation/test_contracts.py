"""The contracts that later rules and works stand on: Gram, history, state, v_k, answer, keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fairfl
from conftest import made_up
from fairfl.algorithms import Algorithm
from fairfl.algorithms.algorithm import assemble
from fairfl.algorithms.rules import Needs, Rule, mean, required
from fairfl.algorithms.server import mean_iterate
from fairfl.algorithms.work import Work, batch_gradient, difference, full_gradient, local_sgd
from fairfl.models import Model

ROUNDS = 4


def algorithm(rule=None, work=None, sampler="everyone", **hyper) -> Algorithm:
    values = {"learning_rate": 0.1, **hyper}
    return assemble("mine", work or full_gradient(), rule or mean(), values, sampler, "size", None)


def run(data, model, chosen, rounds=ROUNDS, **options):
    return fairfl.train(data, model, chosen, rounds=rounds, **{"cohort": data.clients, **options})


@pytest.fixture
def small():
    data = made_up([20, 30, 40])
    return data, fairfl.models.softmax_regression(data)


def test_the_gram_matrix_holds_the_inner_products_of_the_updates(small):
    def coefficients(hyper, state, cohort):
        gram = required(cohort.gram)
        matches = jnp.allclose(jnp.diag(gram), required(cohort.norms), rtol=1e-5)
        smooth = jnp.all(gram**2 <= jnp.outer(jnp.diag(gram), jnp.diag(gram)) * (1 + 1e-5))
        symmetric = jnp.all(gram == gram.T)
        info = {"good": matches & smooth & symmetric, "gram": gram[0, 1]}
        return cohort.weights / cohort.weights.sum(), state, info

    rule = Rule("gram", lambda hyper, clients: (), coefficients, Needs(norms=True, gram=True))
    result = run(*small, algorithm(rule), rounds=1)
    assert result.history["good"].all()
    # At w = 0 the updates are gradients / L of known data: check one product by hand.
    data, _ = small
    updates = []
    for k in (0, 1):
        rows = data.split(0).train.of(k)
        x, y = data.x[rows], data.y[rows]
        error = (np.full((len(y), 3), 1 / 3) - np.eye(3)[y]) / len(y) * 0.1
        updates.append(np.r_[(x.T @ error).ravel(), error.sum(axis=0)])
    np.testing.assert_allclose(result.history["gram"][0], updates[0] @ updates[1], rtol=1e-4)


def test_history_appends_the_updates_of_past_rounds_with_their_ids_and_ages(small):
    """With coefficient 1 on last round's updates only, w walks one round behind."""

    def coefficients(hyper, state, cohort):
        k = cohort.ids.shape[0]
        past = jnp.where(required(cohort.past_ages) == 1, 1 / 3, 0)
        now = jnp.zeros(k)
        info = {
            "seen": jnp.sum(required(cohort.past_ids) >= 0),
            "oldest": jnp.max(required(cohort.past_ages)),
            "gram": jnp.asarray(required(cohort.gram).shape[0]),
        }
        return jnp.concatenate([now, past]), state, info

    rule = Rule("behind", lambda h, c: (), coefficients, Needs(gram=True, history=2))
    result = run(*small, algorithm(rule), rounds=4)
    assert result.history["seen"].tolist() == [0, 3, 6, 6]
    assert result.history["oldest"].tolist() == [0, 1, 2, 2]
    assert result.history["gram"].tolist() == [9] * 4
    # Round 0 moves nothing; round 1 applies the mean of round 0's updates, taken at w = 0.
    behind = run(*small, algorithm(rule), rounds=2)
    uniform = assemble(
        "m", full_gradient(), mean(), {"learning_rate": 0.1}, "uniform", "equal", None
    )
    plain = run(*small, uniform, rounds=1)
    np.testing.assert_allclose(behind.params["weights"], plain.params["weights"], rtol=1e-4)


def test_state_by_client_id_survives_between_rounds(small):
    def coefficients(hyper, state, cohort):
        visits = state.at[cohort.ids].add(1)
        return cohort.weights / cohort.weights.sum(), visits, {"visits": visits.max()}

    rule = Rule("visits", lambda hyper, clients: jnp.zeros(clients, jnp.int32), coefficients)
    data, model = small
    by_size = algorithm(rule, sampler="by-size")
    result = run(data, model, by_size, rounds=6, cohort=1)
    from fairfl.simulation.plan import cohort_of

    visits = np.zeros(3, int)
    expected = []
    for t in range(6):
        visits[cohort_of(data, by_size, 1, 0, t)[0]] += 1
        expected.append(visits.max())
    assert result.history["visits"].tolist() == expected


def test_every_client_keeps_its_own_model_between_rounds(small):
    """A work that walks v_k <- v_k - .1 and reports it through D_k = 0."""
    work = Work(
        "own",
        start=lambda hyper, model, w, v: v,
        step=lambda hyper, model, w, local, batch: local,
        finish=lambda hyper, model, w, local, n: (
            jax.tree.map(lambda leaf: leaf * 0 + local["bias"].mean(), w),
            jax.tree.map(lambda leaf: leaf - 0.1, local),
        ),
        epochs=1,
        batch_size=8,
        personal=lambda w: w,
    )
    data, model = small
    one = algorithm(work=work, sampler="by-size")
    result = run(data, model, one, rounds=6, cohort=1)
    from fairfl.simulation.plan import cohort_of

    v, w = np.zeros(3), 0.0
    for t in range(6):
        k = cohort_of(data, one, 1, 0, t)[0][0]
        w, v[k] = w - v[k], v[k] - 0.1
    np.testing.assert_allclose(result.params["bias"][0], w, rtol=1e-5)


@pytest.mark.parametrize("lanes", [1, 2])
def test_personal_models_train_in_every_lane(small, lanes):
    """v_k starts where the client left it: D_k = w - v_k after one local epoch from v_k."""
    work = Work(
        "continue",
        start=lambda hyper, model, w, v: v,
        step=lambda hyper, model, w, local, batch: jax.tree.map(
            lambda p, g: p - hyper["learning_rate"] * g, local, batch_gradient(model, local, batch)
        ),
        finish=lambda hyper, model, w, local, n: (difference(w, local), local),
        epochs=2,
        batch_size=8,
        personal=lambda w: w,
    )
    results = [run(*small, algorithm(work=work), lanes=n) for n in (1, lanes)]
    np.testing.assert_allclose(
        results[0].params["weights"], results[1].params["weights"], rtol=1e-4, atol=1e-6
    )


def test_the_mean_iterate_leaves_the_initial_model_out(small):
    """easyFL's AFL averages the initial model in."""
    chosen = algorithm()
    averaged = Algorithm(**{**vars(chosen), "answer": mean_iterate()})
    iterates = [run(*small, chosen, rounds=t).params["bias"][0] for t in (1, 2, 3)]
    answer = run(*small, averaged, rounds=3).params["bias"][0]
    np.testing.assert_allclose(answer, np.mean(iterates, axis=0), rtol=1e-5)


def noisy(small_model):
    """A stochastic model: dropout of the inputs."""

    def loss(params, x, y, key):
        if key is not None:
            x = x * jax.random.bernoulli(key, 0.5, x.shape)
        return small_model.loss(params, x, y, None)

    return Model(small_model.init, loss, small_model.predict, stochastic=True)


def test_stochastic_losses_get_keys_that_do_not_depend_on_chunks(small, monkeypatch):
    from fairfl.simulation import engine, plan

    data, model = small
    chosen = algorithm(work=local_sgd(2, 8))
    whole = run(data, noisy(model), chosen)
    plain = run(data, model, chosen)
    monkeypatch.setattr(plan, "STEPS", 1)
    monkeypatch.setattr(engine, "SECONDS", 0)
    pieces = run(data, noisy(model), chosen)
    np.testing.assert_array_equal(whole.params["weights"], pieces.params["weights"])
    assert not np.allclose(whole.params["weights"], plain.params["weights"], atol=1e-3)
    other = run(data, noisy(model), chosen, seed=1)
    assert not np.allclose(whole.params["weights"], other.params["weights"], atol=1e-3)
