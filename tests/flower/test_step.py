"""One round on the server, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
from flwr.app import Array, ArrayRecord

import fairfl
from fairfl.algorithms.rules import Needs, Rule
from fairfl.flower.aggregation import gram, square
from fairfl.flower.arrays import Written, leaves, seen
from fairfl.flower.received import Update
from fairfl.flower.standing import Standing, as_bytes, from_bytes
from fairfl.flower.step import Drawn, fresh, stepped


def record(**arrays):
    return ArrayRecord({name.replace("_of_", "."): Array(one) for name, one in arrays.items()})


def drawn(u, ids=None):
    ids = np.arange(len(u)) if ids is None else np.array(ids)
    return Drawn(ids, np.ones(len(u), np.int64), np.array(u, float))


def update(*arrays, loss=1.0, length=1.0):
    return Update(list(arrays), loss, length, False)


def test_the_mean_weighs_clients_and_leaves_out_who_is_absent():
    model = record(w=np.array([1.0, 1.0], np.float32))
    algorithm = fairfl.fedavg()
    states = fresh(algorithm, 3, model, 3)
    found = {0: update(np.zeros(2, "f4")), 2: update(np.array([3, 5], "f4"))}
    got = stepped(algorithm, states, model, drawn([1, 7, 3]), found)
    assert got.model["w"].numpy().tolist() == [2.25, 3.75]
    assert got.a.tolist() == [0.25, 0, 0.75]


def test_a_client_that_was_drawn_twice_counts_twice():
    model = record(w=np.zeros(1, np.float32))
    found = {0: update(np.array([3], "f4")), 1: update(np.array([6], "f4"))}
    algorithm = fairfl.fedavg(sampler="by-size-with-replacement")
    states = fresh(algorithm, 3, model, 2)
    got = stepped(algorithm, states, model, drawn([1, 1, 1], [0, 1, 1]), found)
    assert got.model["w"].numpy().tolist() == [5.0]


def test_running_statistics_are_averaged_by_weight_and_counters_stay():
    model = ArrayRecord(
        {
            "w": Array(np.zeros(1, np.float32)),
            "bn.running_mean": Array(np.zeros(1, np.float32)),
            "bn.num_batches_tracked": Array(np.array(4)),
        }
    )
    one = [np.ones(1, "f4"), np.array([2], "f4"), np.array(9)]
    two = [np.ones(1, "f4"), np.array([6], "f4"), np.array(11)]
    algorithm = fairfl.q_fedavg(q=1, learning_rate=1)
    found = {0: update(*one, loss=1.0, length=1.0), 1: update(*two, loss=3.0, length=1.0)}
    got = stepped(algorithm, fresh(algorithm, 2, model, 2), model, drawn([1, 3]), found)
    # s = (1 / 3, 3), shares = s (1 + |D|^2 / F) = (2 / 3, 4): the step is (10 / 3) / (14 / 3).
    np.testing.assert_allclose(got.model["w"].numpy(), [5 / 7], rtol=1e-6)
    assert got.model["bn.running_mean"].numpy().tolist() == [5.0]
    assert got.model["bn.num_batches_tracked"].numpy() == 4


def remembering():
    """A rule that takes away what it remembers of the last round."""

    def coefficients(hyper, state, cohort):
        here = jnp.where(cohort.weights > 0, 1.0, 0.0)
        past = jnp.where(cohort.past_ids >= 0, -1.0, 0.0)
        info = {"oldest": cohort.past_ages.max(), "cross": cohort.gram[0, -1]}
        return jnp.concatenate([here, past]), state, info

    return Rule("remembering", lambda hyper, m: (), coefficients, Needs(gram=True, history=1))


def test_a_rule_that_asks_for_past_updates_is_given_them():
    algorithm = fairfl.with_rule(remembering())
    model = record(w=np.zeros(2, np.float32))
    first = stepped(
        algorithm, fresh(algorithm, 1, model, 2), model, drawn([1], [1]),
        {1: update(np.array([2, 0], "f4"))},
    )  # fmt: skip
    assert first.model["w"].numpy().tolist() == [2, 0]
    assert first.states.memory.ids.tolist() == [1]
    second = stepped(
        algorithm, first.states, first.model, drawn([1], [0]), {0: update(np.array([5, 1], "f4"))}
    )
    # D = (-3, -1), the past one is (-2, 0): w - D + past.
    assert second.model["w"].numpy().tolist() == [3, 1]
    assert second.info == {"oldest": 1.0, "cross": 6.0}


def test_coefficients_that_overflow_end_the_run_with_a_sentence():
    algorithm = fairfl.fixed_step(q=100, learning_rate=1)
    model = record(w=np.zeros(1, np.float32))
    with pytest.raises(ValueError, match="try a smaller q"):
        stepped(
            algorithm, fresh(algorithm, 1, model, 1), model, drawn([1]),
            {0: update(np.ones(1, "f4"), loss=1e30)},
        )  # fmt: skip


@pytest.mark.parametrize("size", [0, 1, 70_000])
def test_blocks_cover_a_model_of_any_size(size):
    draw = np.random.default_rng(0)
    w, own = (draw.normal(size=size).astype(np.float32) for _ in range(2))
    np.testing.assert_allclose(square([w], [own]), ((w - own) ** 2).sum(), rtol=1e-5)
    products = gram([w], [[own], None, [w]], None)
    np.testing.assert_allclose(products[0, 0], square([w], [own]), rtol=1e-5)
    assert not products[1:].any()


def test_half_and_double_precision_keep_their_type():
    for kind in (np.float16, np.float64):
        model = record(w=np.ones((2, 2), kind).T)
        algorithm = fairfl.fedavg()
        found = {0: update(np.full((2, 2), 3, kind))}
        got = stepped(algorithm, fresh(algorithm, 1, model, 1), model, drawn([1]), found)
        assert got.model["w"].numpy().dtype == kind
        assert got.model["w"].numpy().tolist() == [[3, 3], [3, 3]]


def test_arrays_are_read_where_they_lie():
    turned = np.arange(6.0).reshape(2, 3).T
    assert seen(Array(turned)).tolist() == turned.tolist()
    assert seen(Array(np.array(3))).tolist() == 3
    assert not seen(Array(turned)).flags.owndata
    written = Written(np.zeros((2, 3)))
    written.flat[:] = np.arange(6)
    assert written.array().numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="not a NumPy array"):
        seen(Array("float32", (1,), "pickle", b""))


def test_a_standing_comes_back_to_the_bit():
    algorithm = fairfl.afl()
    model = record(w=np.linspace(0, 1, 5, dtype=np.float32))
    standing = Standing(model, fresh(algorithm, 2, model, 3), [], 0, done=4)
    standing.trace.append({"loss": float("nan"), "effective_step": 0.1 + 0.2})
    standing.refuse("ward", "it is late")
    again = from_bytes(as_bytes(standing), lambda m, clients: fresh(algorithm, 2, m, 3))
    assert as_bytes(again) == as_bytes(standing)
    assert again.trace[0]["effective_step"] == 0.1 + 0.2
    assert leaves(again.model)[0].tolist() == leaves(model)[0].tolist()
