"""Evaluation: every client on every split, against the same numbers straight from NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairfl
from conftest import SIZES, made_up
from fairfl.clients import Rows, Split
from fairfl.models.model import stack
from fairfl.simulation.evaluation import BLOCK, TILE, blocks_of, evaluate


def stacked(model, members):
    """Parameter sets in a list, as the engine holds them."""
    one = jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=-1), *members)
    return stack(model, len(members)).pack(one)


def drawn(model, members, seed=0):
    """Different made-up parameters of the model's shapes."""
    rng = np.random.default_rng(seed)
    shapes = model.init(jax.random.key(0))
    return [
        jax.tree.map(lambda leaf: rng.normal(size=leaf.shape).astype(np.float32), shapes)
        for _ in range(members)
    ]


def evaluated(data, model, members, split):
    w = stacked(model, members)
    return evaluate(model, w, jnp.asarray(data.x), jnp.asarray(data.y), blocks_of(split))


def softmax(params, x, y):
    """Accuracy in percent and the mean of -log p_y."""
    z = x.astype(float) @ params["weights"] + params["bias"]
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return 100 * np.mean(z.argmax(axis=1) == y), -np.mean(log_p[np.arange(len(y)), y])


def svm(reduction):
    def of(params, x, y):
        """Accuracy in percent; hinge losses summed or averaged, plus |w|^2 / 2 once."""
        sign, z = 2 * y - 1, x.astype(float) @ params["weights"] + params["bias"]
        hinge = np.maximum(0, 1 - sign * z)
        loss = hinge.sum() if reduction == "sum" else hinge.mean()
        return 100 * np.mean((z > 0) == y), loss + 0.5 * np.sum(
            params["weights"].astype(float) ** 2
        )

    return of


CASES = {
    "softmax": (3, fairfl.models.softmax_regression, softmax),
    "svm, sum": (2, lambda d: fairfl.models.linear_svm(d, reduction="sum"), svm("sum")),
    "svm, mean": (2, lambda d: fairfl.models.linear_svm(d, reduction="mean"), svm("mean")),
}


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_every_client_is_as_numpy_finds_it(case, members):
    classes, make, expected = CASES[case]
    # More rows than one tile of blocks holds, in clients of less and of more than a block.
    data = made_up([*SIZES, BLOCK, 2 * BLOCK, TILE * BLOCK], classes=classes)
    model, split = make(data), data.split(0)
    params = drawn(model, members)
    found = evaluated(data, model, params, split)
    assert len(blocks_of(split).filled) > TILE
    for evaluation, part in zip(found, split[:3], strict=True):
        assert evaluation.size.tolist() == part.sizes.tolist()
        for k in range(data.clients):
            rows = part.of(k)
            for m in range(members):
                accuracy, loss = evaluation.accuracy[k, m], evaluation.loss[k, m]
                if len(rows) == 0:
                    assert np.isnan([accuracy, loss]).all()
                    continue
                direct = expected(params[m], data.x[rows], data.y[rows])
                np.testing.assert_allclose([accuracy, loss], direct, rtol=2e-5)


def test_a_sum_grows_with_the_client_and_holds_the_penalty_once():
    """The paper's Vehicle loss is a sum over rows (R4); its penalty is not."""
    data = fairfl.from_arrays(
        {"a": (np.ones((2, 1)), [0, 1]), "b": (np.ones((5, 1)), [1] * 5)}, split=None
    )
    model = fairfl.models.linear_svm(data, reduction="sum")
    zero = {"weights": np.zeros(1, np.float32), "bias": np.float32(0)}
    four = {"weights": np.full(1, 4, np.float32), "bias": np.float32(0)}
    train, validation, test = evaluated(data, model, [zero, four], data.split(0))
    # At w = 4 the hinge of a's row of class 0 is 1 + 4, that of every other row 0; 4^2 / 2 = 8.
    assert train.loss.tolist() == [[2, 5 + 8], [5, 8]]
    assert np.isnan([validation.loss, test.loss]).all()


def test_a_regression_has_losses_but_no_accuracies():
    rng = np.random.default_rng(0)
    data = fairfl.from_arrays(
        {k: (rng.normal(size=(n, 3)), rng.normal(size=n)) for k, n in enumerate([5, 30])}
    )
    model = fairfl.models.from_functions(
        lambda key: {"w": jnp.zeros(3)}, lambda params, x: x @ params["w"], task="regression"
    )
    params = drawn(model, 2)
    split = data.split(0)
    for evaluation, part in zip(evaluated(data, model, params, split), split[:3], strict=True):
        assert np.isnan(evaluation.accuracy).all()
        for k in np.flatnonzero(part.sizes).tolist():
            rows = part.of(k)
            for m in range(2):
                direct = 0.5 * np.mean((data.x[rows] @ params[m]["w"] - data.y[rows]) ** 2)
                np.testing.assert_allclose(evaluation.loss[k, m], direct, rtol=1e-5)


def test_small_losses_are_not_lost_beside_large_ones():
    """Blocks are added in float64: in float32, 2^24 + 1 is 2^24."""
    x = np.full((BLOCK + 1, 1), 1 - 2.0**24 / BLOCK)
    x[BLOCK] = 0
    data = fairfl.from_arrays({"a": (x, [1] * len(x)), "b": ([[0.0]], [0])}, test={})
    model = fairfl.models.linear_svm(data, reduction="sum")
    one = {"weights": np.ones(1, np.float32), "bias": np.float32(0)}
    train, *_ = evaluated(data, model, [one], data.split(0))
    assert train.loss[0, 0] == 2**24 + 1 + 0.5


# --- clients without rows -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    """SIZES begins with a client of one row, which only trains, and one of three: 2 and 0 and 1."""
    data = made_up(SIZES)
    model = fairfl.models.softmax_regression(data)
    return fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=2, cohort=3)


def test_clients_without_rows_are_named(result):
    assert result.missing("train") == ()
    assert result.missing("validation") == ("client-0", "client-1")
    assert result.missing("test") == ("client-0",)
    said = "1 of 10 clients have no test rows and are in none of its metrics: client-0."
    assert said in result.notes
    assert not any("train rows" in note for note in result.notes)


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_clients_without_rows_are_in_none_of_the_metrics(result, split):
    clients, found = result.clients(split), result.fairness(split)
    absent = result.missing(split)
    assert not set(clients["client"]) & set(absent)
    assert len(clients["client"]) == 2 * (10 - len(absent))
    assert np.isfinite(clients["accuracy"]).all()
    assert np.isfinite(clients["loss"]).all()
    for m in range(2):
        mine = clients["q"] == m
        expected = fairfl.fairness(clients["accuracy"][mine], clients["size"][mine])
        assert {name: found[name][m] for name in expected._fields} == expected._asdict()


def test_their_own_numbers_are_nan(result):
    for member in result.members:
        evaluation = member.final["validation"]
        assert np.isnan(evaluation.accuracy[:2]).all()
        assert np.isnan(evaluation.loss[:2]).all()
        assert evaluation.size[:2].tolist() == [0, 0]


# --- blocks ---------------------------------------------------------------------------------------


@given(
    sizes=st.lists(st.tuples(*[st.integers(0, 3 * BLOCK)] * 3), min_size=1, max_size=6),
    seed=st.integers(0, 100),
)
@settings(max_examples=100, deadline=None)
def test_blocks_cover_each_row_once_for_its_owner(sizes, seed):
    counts = np.array(sizes)
    places = np.random.default_rng(seed).permutation(counts.sum())
    ends = np.cumsum(counts.sum(axis=0))
    split = Split(
        *(
            Rows(places[end - n.sum() : end], np.concatenate([[0], np.cumsum(n)]))
            for n, end in zip(counts.T, ends, strict=True)
        ),
        support=Rows(places[:0], np.zeros(len(sizes) + 1, int)),
    )
    blocks = blocks_of(split)
    assert blocks.size.tolist() == counts.T.ravel().tolist()
    assert (np.diff(blocks.owner) >= 0).all()
    assert ((blocks.filled >= 1) & (blocks.filled <= BLOCK)).all()
    assert len(blocks.owner) == int(np.ceil(counts / BLOCK).sum())
    for owner in range(3 * len(sizes)):
        own = split[owner // len(sizes)].of(owner % len(sizes))
        mine = np.flatnonzero(blocks.owner == owner)
        rows = [row for b in mine for row in blocks.rows[b, : blocks.filled[b]].tolist()]
        assert rows == own.tolist()
        assert set(blocks.rows[mine].ravel().tolist()) == set(own.tolist())
