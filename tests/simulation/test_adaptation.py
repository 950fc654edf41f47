"""MAML and q-MAML in the engine: support rows first, F_k and the gradient where they lead."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fairfl
import oracle
from fairfl.algorithms import Algorithm
from fairfl.algorithms.algorithm import assemble
from fairfl.algorithms.maml import adapted_gradient
from fairfl.algorithms.rules import mean
from fairfl.models import Model
from fairfl.simulation.plan import cohort_of, shuffles_of, support_batches
from test_engine_oracle import flat, relative_error

FEATURES, CLASSES, ROUNDS, SEED = 4, 3, 4, 2
SUPPORT = [3, 8, 5, 12, 0, 6]
QUERY = [7, 10, 4, 15, 9, 1]
INNER, RATE = 0.3, 0.1
Q = [0, 0.1, 2]


@cache
def tasks():
    """Six clients to train on, one of them without support rows, and two for evaluation only."""
    draw = np.random.default_rng(8)

    def rows(n, centre):
        x = draw.normal(size=(n, FEATURES)) + centre
        return x.astype(np.float32), draw.integers(CLASSES, size=n)

    centres = draw.normal(size=(8, FEATURES))
    names = [f"task-{k}" for k in range(6)]
    train = {n: rows(size, c) for n, size, c in zip(names, QUERY, centres, strict=False)}
    support = {
        n: rows(size, c) for n, size, c in zip(names, SUPPORT, centres, strict=False) if size
    }
    held_out = {
        f"held-out-{k}": (rows(11, centres[6 + k]), rows(20, centres[6 + k])) for k in (0, 1)
    }
    support |= {name: pair[0] for name, pair in held_out.items()}
    test = {name: pair[1] for name, pair in held_out.items()} | {"task-0": rows(5, centres[0])}
    return fairfl.from_arrays(train, test=test, support=support)


@cache
def softmax():
    return fairfl.models.softmax_regression(tasks())


def meta(**options):
    given = {"learning_rate": RATE, "inner_learning_rate": INNER, "batch_size": 4}
    return fairfl.q_maml(**{"q": Q, **given, **options})


def trained(algorithm, data=None, model=None, rounds=ROUNDS, **options):
    given = {"cohort": 3, "seed": SEED, "x64": True, **options}
    return fairfl.train(data or tasks(), model or softmax(), algorithm, rounds=rounds, **given)


def problem():
    objective = oracle.softmax_cross_entropy(FEATURES, CLASSES)
    return oracle.Problem(objective, tasks().x.astype(np.float64), tasks().y, [])


def visits(algorithm, cohort=3):
    """What each task reads in each round, from fairfl's public draws."""
    split, work = tasks().split(SEED), algorithm.work
    rounds = []
    for t in range(ROUNDS):
        ids, weights = cohort_of(tasks(), algorithm, cohort, SEED, t)
        rounds.append(
            [_task(split, work, t, *pair) for pair in zip(ids.tolist(), weights, strict=True)]
        )
    return rounds


def _task(split, work, t, k, weight):
    found, filled = support_batches(
        split.support.of(k), work.adaptation.steps, work.batch_size, SEED, t, k
    )
    support = [rows[:n] for rows, n in zip(found, filled, strict=True) if n]
    query = shuffles_of(split.train.of(k), SEED, t, k, 1)[0][: work.batch_size]
    return oracle.Meta(support, query, float(weight))


# --- the engine agrees with the algorithm as printed, and with the exact gradient -----------------


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize(("inner_steps", "order"), [(1, 1), (3, 1), (1, 2), (3, 2)])
def test_q_maml_agrees_with_algorithm_4(inner_steps, order, lanes):
    algorithm = meta(inner_steps=inner_steps, order=order)
    result = trained(algorithm, lanes=lanes)
    bend = oracle.softmax_hessian_times(FEATURES, CLASSES) if order == 2 else None
    start = np.zeros((FEATURES + 1) * CLASSES)
    for place, q in enumerate(Q):
        wanted = oracle.q_maml(problem(), visits(algorithm), start, q, 1 / RATE, INNER, bend)
        assert relative_error(flat(result.params, place), wanted) < 1e-9


@pytest.mark.parametrize(
    ("sampler", "weights", "cohort"), [("uniform", "size", 4), ("everyone", "equal", 6)]
)
def test_samplers_and_weights_work_as_everywhere(sampler, weights, cohort):
    algorithm = meta(q=2, sampler=sampler, weights=weights, L=20.0)
    result = trained(algorithm, cohort=cohort)
    start = np.zeros((FEATURES + 1) * CLASSES)
    wanted = oracle.q_maml(problem(), visits(algorithm, cohort), start, 2, 20.0, INNER)
    assert relative_error(flat(result.params, 0), wanted) < 1e-9


def test_the_oracles_hessian_is_the_derivative_of_its_gradient():
    draw = np.random.default_rng(0)
    objective, times = (
        make(FEATURES, CLASSES)
        for make in (oracle.softmax_cross_entropy, oracle.softmax_hessian_times)
    )
    w, v = draw.normal(size=(2, (FEATURES + 1) * CLASSES))
    x, y = draw.normal(size=(9, FEATURES)), draw.integers(CLASSES, size=9)
    step = 1e-5
    change = objective.gradient(w + step * v, x, y) - objective.gradient(w - step * v, x, y)
    assert_allclose(times(w, x, y, v), change / (2 * step), rtol=1e-7, atol=1e-9)


def test_the_loss_of_a_round_is_that_of_the_adapted_models_on_the_query_rows():
    algorithm = meta(q=0)
    result = trained(algorithm, rounds=1)
    start = np.zeros((FEATURES + 1) * CLASSES)
    losses = []
    for task in visits(algorithm)[0]:
        own = oracle.adapted(problem(), start, task.support, INNER)[-1]
        x, y = problem().x[task.query], problem().y[task.query]
        losses.append(problem().objective.value(own, x, y))
    assert_allclose(result.history["loss"][0], np.mean(losses), rtol=1e-12)


# --- neutral settings -----------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
def test_q_maml_at_q_zero_is_maml_bit_for_bit(order):
    options = {"learning_rate": RATE, "inner_learning_rate": INNER, "batch_size": 4, "order": order}
    fair = trained(fairfl.q_maml(q=0, **options), x64=False)
    plain = trained(fairfl.maml(**options), x64=False)
    assert_array_equal(fair.params["weights"], plain.params["weights"])
    assert_array_equal(fair.clients()["accuracy"], plain.clients()["accuracy"])


@pytest.mark.parametrize("order", [1, 2])
def test_without_an_inner_step_size_maml_is_fedsgd_on_the_query_rows(order):
    still = trained(fairfl.maml(inner_learning_rate=0, batch_size=20, order=order))
    plain = trained(fairfl.fedsgd())
    assert_allclose(still.params["weights"], plain.params["weights"], rtol=1e-12, atol=1e-15)
    assert_allclose(still.history["loss"], plain.history["loss"], rtol=1e-12)


def test_a_sweep_equals_its_members():
    together = trained(meta(q=[0, 1], inner_learning_rate=[0.1, 0.5]), width=4)
    for place, one in enumerate(together.experiments):
        values = {name: one[name] for name in ("q", "inner_learning_rate")}
        alone = trained(meta(**values))
        assert_allclose(together.params["weights"][place], alone.params["weights"][0], rtol=1e-9)
        assert_allclose(together[place].clients()["loss"], alone.clients()["loss"], rtol=1e-9)


# --- traps ----------------------------------------------------------------------------------------


def moved(**options):
    return trained(meta(**{"q": 0.1, **options})).params["weights"][0]


def test_q_maml_takes_its_inner_step():
    """R3: the reference's script never switches the inner step on."""
    assert np.abs(moved() - moved(inner_learning_rate=0)).max() > 1e-3
    assert np.abs(moved() - moved(inner_steps=2)).max() > 1e-3


def test_the_exact_gradient_is_not_the_printed_one():
    """R3: the reference has the first-order gradient only."""
    assert np.abs(moved() - moved(order=2)).max() > 1e-3


def test_the_inner_step_size_is_not_tied_to_the_outer():
    """R3: one learning rate is the inner step and 1 / L at once."""

    def first_loss(**options):
        return trained(meta(q=0.1, **options), rounds=1).history["loss"][0]

    assert first_loss(L=2.0) == first_loss(L=50.0)
    assert first_loss(learning_rate=0.01) == first_loss()
    assert first_loss(inner_learning_rate=0.5) != first_loss()


# --- clients that fail, and those without support rows --------------------------------------------


def test_a_client_whose_loss_is_not_finite_is_left_out():
    data = tasks()
    broken = np.array(data.x)
    broken[data.split(0).train.of(3)] = np.inf
    bad = replace(data, x=broken)
    result = trained(meta(q=1, sampler="everyone"), data=bad, cohort=6)
    assert result.quarantined["client"].tolist() == ["task-3"]
    assert np.isfinite(result.params["weights"]).all()


@pytest.mark.parametrize("order", [1, 2])
def test_a_client_without_support_rows_stays_at_w(order):
    """Not even a penalty moves it, so its gradient is that of FedSGD."""
    draw = np.random.default_rng(4)
    x, y = draw.normal(size=(9, FEATURES)).astype(np.float32), np.arange(9) % CLASSES
    alone = fairfl.from_arrays({"a": (x, y)}, test={"b": (x, y)}, support={"b": (x, y)})
    held = replace(softmax(), penalty=lambda p: ((p["bias"] - 1) ** 2).sum())
    adapting = fairfl.maml(batch_size=20, order=order)
    found = trained(adapting, data=alone, model=held, cohort=1)
    plain = trained(fairfl.fedsgd(), data=alone, model=held, cohort=1)
    assert_allclose(found.params["bias"], plain.params["bias"], rtol=1e-12)
    assert_allclose(found.history["loss"], plain.history["loss"], rtol=1e-12)


def test_where_data_have_no_support_every_second_training_row_is_one():
    x = np.random.default_rng(1).normal(size=(13, FEATURES)).astype(np.float32)
    y = np.arange(13) % CLASSES
    train = {"a": (x[:6], y[:6]), "b": (x[6:7], y[6:7]), "c": (x[7:12], y[7:12])}
    test = {"a": (x[12:], y[12:])}
    plain = fairfl.from_arrays(train, test=test)
    query = {"a": (x[:6:2], y[:6:2]), "b": (x[6:7], y[6:7]), "c": (x[7:12:2], y[7:12:2])}
    support = {"a": (x[1:6:2], y[1:6:2]), "c": (x[8:12:2], y[8:12:2])}
    dealt = fairfl.from_arrays(query, test=test, support=support)
    model = fairfl.models.softmax_regression(plain)
    # The orders of equally many rows are the same draws.
    found = [trained(meta(q=1), data=data, model=model, cohort=2) for data in (plain, dealt)]
    assert_allclose(found[0].params["weights"], found[1].params["weights"], rtol=1e-12)
    assert found[0].settings["support"] == "every second training row"
    assert found[1].settings["support"] == "support rows"


# --- evaluation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_clients_are_evaluated_after_so_many_steps_on_their_support_rows(steps):
    result = trained(meta(q=0.1, personal_steps=steps))
    found, split = result.clients("test"), tasks().split(SEED)
    assert found["client"].tolist() == ["task-0", "held-out-0", "held-out-1"]
    for place, k in enumerate((0, 6, 7)):
        rows, filled = support_batches(split.support.of(k), steps, 4, SEED, 0, k)
        batches = [batch[:n] for batch, n in zip(rows, filled, strict=True)]
        own = oracle.adapted(problem(), flat(result.params, 0), batches, INNER)[-1]
        x, y = (part[split.test.of(k)] for part in (problem().x, problem().y))
        assert_allclose(found["loss"][place], problem().objective.value(own, x, y), rtol=1e-9)
        scores = x @ own[:-CLASSES].reshape(FEATURES, CLASSES) + own[-CLASSES:]
        assert_allclose(found["accuracy"][place], 100 * np.mean(scores.argmax(axis=1) == y))


def test_each_member_of_a_sweep_is_evaluated_with_its_own_inner_step_size():
    result = trained(meta(q=0, learning_rate=0.1, inner_learning_rate=[0, 0.3], L=1e9))
    assert result[0].clients()["loss"].tolist() != result[1].clients()["loss"].tolist()


def test_training_rows_are_not_evaluated_after_adaptation():
    result = trained(meta(q=0.1))
    with pytest.raises(
        ValueError, match="q-maml evaluates no training rows, because clients adapt"
    ):
        result.fairness("train")
    assert len(result.missing("train")) == result.data.clients


def test_adaptation_adds_the_models_penalty_at_the_adapted_model():
    base = softmax()
    held = replace(base, penalty=lambda p: 3 + 0 * p["bias"].sum())
    with_it, without = (trained(meta(q=0), model=model, lanes=2) for model in (held, base))
    assert_allclose(with_it.history["loss"], without.history["loss"] + 3, rtol=1e-12)
    assert_allclose(with_it.clients()["loss"], without.clients()["loss"] + 3, rtol=1e-12)


# --- interruptions and chunks ---------------------------------------------------------------------


def noisy(model):
    """Dropout of the inputs, in the inner steps too."""

    def loss(params, x, y, key):
        if key is not None:
            x = x * jax.random.bernoulli(key, 0.5, x.shape)
        return model.loss(params, x, y, None)

    return Model(model.init, loss, model.predict, stochastic=True)


def test_chunks_change_no_bit(monkeypatch):
    from fairfl.simulation import engine, plan

    whole = trained(meta(inner_steps=2), model=noisy(softmax()))
    monkeypatch.setattr(plan, "STEPS", 1)
    monkeypatch.setattr(engine, "SECONDS", 0)
    pieces = trained(meta(inner_steps=2), model=noisy(softmax()))
    assert_array_equal(whole.params["weights"], pieces.params["weights"])
    assert_array_equal(whole.clients()["loss"], pieces.clients()["loss"])
    other = trained(meta(inner_steps=2), model=softmax())
    assert np.abs(whole.params["weights"] - other.params["weights"]).max() > 1e-3


def test_a_custom_work_adapts_too():
    """Any work gets w_k in the place of w: here with twice the steps."""

    def made(steps) -> Algorithm:
        work = adapted_gradient(steps, 0, 4, exact=False)
        hyper = {"learning_rate": RATE, "inner_learning_rate": INNER}
        return assemble("mine", work, mean(), hyper, "everyone", "size", None)

    named = trained(
        fairfl.maml(RATE, INNER, inner_steps=2, batch_size=4, sampler="everyone"), cohort=6
    )
    assert_array_equal(trained(made(2), cohort=6).params["bias"], named.params["bias"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"order": 3}, "order=3 is neither 1, the gradient as Algorithm 4 prints it, nor 2"),
        ({"inner_steps": 0}, "inner_steps=0 must be one whole number of at least 1"),
        ({"personal_steps": -1}, "personal_steps=-1 must be one whole number of at least 0"),
        (
            {"inner_learning_rate": -1},
            "inner_learning_rate=-1 must be a finite number 0 or greater",
        ),
    ],
)
def test_settings_that_cannot_be_hear_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        fairfl.maml(**options)
