"""Numerically sound: nothing overflows, nobody stalls the others, and whoever fails is named."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import fairfl
from conftest import SIZES, made_up
from fairfl.models import Model


def least_squares(features=3):
    return fairfl.models.from_functions(
        lambda key: {"w": jnp.zeros(features), "b": jnp.zeros(())},
        lambda params, x: x @ params["w"] + params["b"],
        task="regression",
    )


@pytest.mark.parametrize("scale", [1e3, 1e-6])
def test_q_100_stays_finite_and_serves_the_worst_client(scale):
    """F^100 is far outside float32 and float64 on both sides."""
    rng = np.random.default_rng(0)
    clients = {
        k: (rng.normal(size=(20, 3)), np.full(20, np.sqrt(2 * scale * (k + 1)))) for k in range(5)
    }
    data = fairfl.from_arrays(clients, task="regression", split=None)
    algorithm = fairfl.q_fedsgd(q=100, learning_rate=0.1)
    result = fairfl.train(data, least_squares(), algorithm, rounds=1, cohort=5)
    direction = result.params["b"][0]
    assert np.isfinite(direction)
    assert direction > 0
    # At w = 0 the worst client has F = 5 scale, |grad|^2 > 2 F (bias) and all the weight:
    # h = 1 + q L |D|^2 / F with D = grad / L, so the step is below 1 / (1 + 100 * 2 / L).
    assert direction < 0.1 * np.sqrt(10 * scale) / (1 + 100 * 2 / 10)
    assert result.history["coefficient_spread"][0] > 1.9


@pytest.mark.parametrize("q", [0.1, 0.5])
def test_a_client_at_loss_zero_slows_q_by_less_than_two_and_the_history_says_so(q):
    """An absolute guard of 1e-10 makes the step 1e-9; the history names the cap."""
    rng = np.random.default_rng(1)
    clients = {k: (rng.normal(size=(20, 3)), rng.normal(size=20) + 2) for k in range(4)}
    # F = 5e-9 but, with features far beyond 1 / L, L |D|^2 = 3e-5: the term would be 6,000.
    solved = {**clients, "solved": (np.full((20, 3), 100.0), np.full(20, 1e-4))}

    def step(pairs):
        data = fairfl.from_arrays(pairs, task="regression", split=None)
        algorithm = fairfl.q_fedsgd(q=q, learning_rate=0.1)
        return fairfl.train(data, least_squares(), algorithm, rounds=1, cohort=len(pairs))

    without, having = step(clients), step(solved)
    share = having.history["effective_step"][0] / without.history["effective_step"][0]
    assert share > 0.5
    assert having.history["capped"].tolist() == [1]
    assert without.history["capped"].tolist() == [0]
    assert any("capped 1 times" in note for note in having.notes)


def poisoned(bad=np.inf):
    """A model whose loss is not finite for rows with a large first feature."""
    base = least_squares()

    def loss(params, x, y, key):
        return jnp.where(x[:, 0] > 50, bad, 1.0) * base.loss(params, x, y, key)

    return Model(init=base.init, loss=loss, predict=base.predict, task="regression")


def with_one_bad_client():
    rng = np.random.default_rng(2)
    clients = {k: (rng.normal(size=(20, 3)), rng.normal(size=20)) for k in "abcd"}
    clients["bad"] = (np.full((20, 3), 100.0), np.ones(20))
    return clients


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("name", ["fedavg", "q_fedavg", "q_fedsgd"])
def test_a_client_with_losses_that_are_not_finite_is_left_out_and_named(name, bad):
    """One NaN loss makes Flower's global model NaN; no peer checks isfinite."""
    clients = with_one_bad_client()
    data = fairfl.from_arrays(clients, task="regression", split=None)
    algorithm = getattr(fairfl, name)(learning_rate=0.01)
    with pytest.warns(fairfl.metrics.FairnessWarning, match="bad"):
        result = fairfl.train(data, poisoned(bad), algorithm, rounds=5, cohort=5)
    assert result.quarantined["client"].tolist() == ["bad"]
    assert result.quarantined["rounds"].tolist() == [5]
    assert result.history["quarantined"].tolist() == [1] * 5
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result.params))
    assert any("from 1 clients: bad" in note for note in result.notes)
    clients.pop("bad")
    others = fairfl.from_arrays(clients, task="regression", split=None)
    alone = fairfl.train(others, poisoned(bad), algorithm, rounds=5, cohort=4)
    np.testing.assert_allclose(result.params["w"], alone.params["w"], rtol=1e-6)


def test_when_nobody_is_left_the_run_stops_and_keeps_the_last_good_model():
    clients = {"bad": (np.full((20, 3), 100.0), np.ones(20))}
    data = fairfl.from_arrays(clients, task="regression", split=None)
    with pytest.warns(fairfl.metrics.FairnessWarning):
        result = fairfl.train(data, poisoned(), fairfl.fedavg(), rounds=500, cohort=1)
    assert (result.params["w"] == 0).all()
    assert result.members[0].stopped
    assert result.members[0].rounds == 0
    assert len(result.history["round"]) < 500
    assert any("stopped after 0 rounds" in note for note in result.notes)


def test_a_dead_member_freezes_and_the_others_go_on(data, model):
    algorithm = fairfl.fixed_step(q=[0, 200], learning_rate=[0.1, 1e30])
    result = fairfl.train(data, model, algorithm, rounds=10, cohort=4, width=4)
    assert [member.stopped for member in result.members] == [False, True, True, True]
    alone = fairfl.train(
        data, model, fairfl.fixed_step(q=0, learning_rate=0.1), rounds=10, cohort=4, width=4
    )
    np.testing.assert_array_equal(result.params["weights"][0], alone.params["weights"][0])
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result.params))


def test_a_huge_learning_rate_ends_with_a_sentence_not_with_nan(data, model):
    result = fairfl.train(data, model, fairfl.fedavg(learning_rate=1e38), rounds=30, cohort=4)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result.params))
    if result.members[0].stopped:
        assert any("smaller learning rate" in note for note in result.notes)


def test_a_negative_loss_is_an_error_where_the_rule_needs_losses():
    base = least_squares()
    negative = Model(
        init=base.init,
        loss=lambda params, x, y, key: base.loss(params, x, y, key) - 100,
        predict=base.predict,
        task="regression",
    )
    data = fairfl.from_arrays(
        {"a": (np.ones((20, 3)), np.linspace(0, 1, 20))}, task="regression", split=None
    )
    with pytest.raises(ValueError, match=r"client 'a' has the negative loss .* q-FFL needs losses"):
        fairfl.train(data, negative, fairfl.q_fedavg(), rounds=2, cohort=1)


def test_the_effective_step_is_reported_and_is_one_at_q_zero(data, model):
    """Local steps damp the server: |D|^2 grows with the square of their number."""
    result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1, 5]), rounds=4, cohort=4)
    step = result.history["effective_step"].reshape(3, 4)
    np.testing.assert_allclose(step[0], 1, rtol=1e-6)
    assert (step[1] < 1).all()
    assert (step[2] < step[1]).all()
    damped = fairfl.train(data, model, fairfl.q_fedavg(q=1, epochs=5), rounds=1, cohort=4)
    assert damped.history["effective_step"][0] < step[1][0]


def test_a_server_optimiser_takes_the_place_of_the_plain_step(data, model):
    """optax.sgd(1) on sum a_k D_k is the plain step."""
    plain = fairfl.train(data, model, fairfl.fedavg(), rounds=5, cohort=4)
    sgd = fairfl.train(data, model, fairfl.fedavg(server=optax.sgd(1.0)), rounds=5, cohort=4)
    np.testing.assert_allclose(plain.params["weights"], sgd.params["weights"], rtol=1e-5, atol=1e-6)
    adam = fairfl.train(data, model, fairfl.fedavg(server=optax.adam(0.1)), rounds=1, cohort=4)
    np.testing.assert_allclose(np.abs(adam.params["weights"]).max(), 0.1, rtol=1e-3)


def test_a_server_optimiser_with_a_norm_never_mixes_experiments(data, model):
    clipped = optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(1.0))
    both = fairfl.train(
        data, model, fairfl.q_fedavg(q=[0, 5], server=clipped), rounds=3, cohort=4, width=2
    )
    for place, q in enumerate((0, 5)):
        alone = fairfl.train(
            data, model, fairfl.q_fedavg(q=q, server=clipped), rounds=3, cohort=4, width=2
        )
        np.testing.assert_array_equal(both.params["weights"][place], alone.params["weights"][0])


def test_float64_on_request(data, model):
    result = fairfl.train(data, model, fairfl.q_fedavg(), rounds=2, cohort=4, x64=True)
    assert result.params["weights"].dtype == np.float64
    again = fairfl.train(data, model, fairfl.q_fedavg(), rounds=2, cohort=4)
    assert again.params["weights"].dtype == np.float32


def test_a_client_of_one_row_trains():
    data = made_up([1, *SIZES])
    model = fairfl.models.softmax_regression(data)
    result = fairfl.train(data, model, fairfl.fedavg(), rounds=3, cohort=11)
    assert result.missing("test")[0] == "client-0"
    assert any("have no test rows" in note for note in result.notes)
