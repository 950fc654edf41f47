"""Partitioners: every row has one owner, every client has rows, and they always end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairfl
from fairfl.clients.partition import (
    by_column,
    dealt,
    dirichlet,
    iid,
    partitioned,
    power_law,
    shards,
)

LABELS = np.repeat(np.arange(10), 600)

KINDS = {
    "dirichlet": lambda y, clients, seed: dirichlet(y, clients, 0.3, seed),
    "iid": iid,
    "power law": lambda y, clients, seed: power_law(y, clients, 1.5, seed),
    "shards": lambda y, clients, seed: shards(y, clients, 2, seed),
}


def mixtures(labels, owners):
    counts = np.zeros((owners.max() + 1, labels.max() + 1))
    np.add.at(counts, (owners, labels), 1)
    return counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_partition_is_a_function_of_its_seed(kind):
    first, again, other = (KINDS[kind](LABELS, 20, seed) for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_dealt_in_no_order(kind):
    """A client's rows are not a run of neighbours, which in a sorted file are all alike."""
    owners = KINDS[kind](np.zeros(4_000, int), 4, 0)
    assert np.count_nonzero(np.diff(owners)) > 1_000 or kind == "shards"


# ---- they always end (FedLab's and Flower's Dirichlet partitioners can loop forever) ----


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(any),
    clients=st.integers(1, 40),
    least=st.integers(1, 3),
    alpha=st.one_of(
        st.sampled_from([0.0, 5e-324, 1e-300, 1e-8, 1e308]), st.floats(0, 1e3, exclude_max=True)
    ),
    exponent=st.sampled_from([1e-300, 1e-3, 1.0, 2.0, 1e300]),
    seed=st.integers(0, 2**64 - 1),
)
def test_every_row_has_an_owner_and_every_client_its_rows(
    sizes, clients, least, alpha, exponent, seed
):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    kinds = {
        "dirichlet": lambda: dirichlet(labels, clients, alpha, seed, least),
        "power law": lambda: power_law(labels, clients, exponent, seed, least),
        "shards": lambda: shards(labels, clients, least, seed),
        "iid": lambda: iid(np.repeat(labels, least), clients, seed),
    }
    for name, deal in kinds.items():
        if clients * least > len(labels):
            if name != "iid":
                with pytest.raises(ValueError, match="ask for fewer clients"):
                    deal()
            continue
        owners = deal()
        counts = np.bincount(owners, minlength=clients)
        assert len(counts) == clients, name
        assert counts.min() >= (least if name != "shards" else 1), name
        assert counts.sum() == len(labels) * (least if name == "iid" else 1), name


def test_many_clients_are_topped_up_in_no_time():
    owners = dirichlet(np.zeros(300_000, int), clients=100_000, alpha=0.0)
    assert np.bincount(owners).min() == 1


# ---- what each is for ----


def test_a_concentration_of_zero_gives_each_class_to_one_client():
    owners = dirichlet(LABELS, clients=3, alpha=0.0, seed=1)
    assert all(len(set(owners[name == LABELS])) == 1 for name in range(10))


def test_a_smaller_concentration_skews_more():
    skews = [
        mixtures(LABELS, dirichlet(LABELS, 20, alpha, seed=0)).max(axis=1).mean()
        for alpha in (0.01, 0.1, 1.0, 100.0)
    ]
    assert skews == sorted(skews, reverse=True)
    assert skews[0] > 0.8
    assert skews[-1] < 0.15


def test_dirichlet_shares_have_the_law_of_their_name():
    """Of one class, client k's share has mean 1 / m and variance (m - 1) / (m^2 (m alpha + 1))."""
    m, alpha, rows = 4, 0.5, 2_000
    draws = [
        np.bincount(dirichlet(np.zeros(rows, int), m, alpha, seed), minlength=m) / rows
        for seed in range(600)
    ]
    variance = (m - 1) / (m**2 * (m * alpha + 1))
    assert np.mean(draws, axis=0) == pytest.approx(1 / m, abs=4 * np.sqrt(variance / 600))
    assert np.var(draws, axis=0).mean() == pytest.approx(variance, rel=0.1)


def test_iid_clients_are_of_one_size_and_alike():
    owners = iid(LABELS, clients=7)
    assert np.ptp(np.bincount(owners)) <= 1
    assert mixtures(LABELS, owners).max() < 0.15


def test_power_law_sizes_are_its_quantiles():
    sizes = np.sort(np.bincount(power_law(np.zeros(100_000, int), 100, exponent=2)))
    expected = (1 - (np.arange(100) + 0.5) / 100) ** -0.5
    assert sizes == pytest.approx(expected * 100_000 / expected.sum(), abs=1)


def test_a_shard_client_knows_few_classes():
    owners = shards(LABELS, clients=100, per_client=2)
    known = [len(set(LABELS[owners == client].tolist())) for client in range(100)]
    assert max(known) <= 3
    assert np.mean(known) < 2.5
    assert set(np.bincount(owners)) == {60}


def test_by_column_is_one_client_per_value():
    owners, ids = by_column(np.array(["b", "a", "b", "c"]))
    assert (owners.tolist(), ids) == ([1, 0, 1, 2], ("a", "b", "c"))


# ---- as data ----


def test_rows_keep_their_labels_and_their_order():
    x = np.arange(12.0).reshape(6, 2)
    data = partitioned(x, ["n", "y", "n", "y", "n", "n"], [1, 0, 1, 1, 0, 1], ids=["a", "b"])
    assert data.ids == ("a", "b")
    assert data.sizes.tolist() == [2, 4]
    assert data.x[:, 0].tolist() == [2, 8, 0, 4, 6, 10]
    assert data.classes[data.y].tolist() == ["y", "n", "n", "n", "y", "n"]
    assert data.fractions == (0.8, 0.1, 0.1)


def test_roles_go_with_their_rows():
    pairs = {"a": (np.eye(3), [0, 1, 1])}
    whole = fairfl.from_arrays(train=pairs, test={"a": (np.ones((2, 3)), [0, 1])})
    data = dealt(whole, np.array([0, 1, 0, 1, 0]), ("k", "l"))
    assert data.roles.tolist() == [0, 0, 2, 0, 2]


def test_partitioned_data_trains():
    x = np.random.default_rng(0).normal(size=(200, 3))
    y = (x[:, 0] > 0).astype(int)
    owners = fairfl.partition.dirichlet(y, clients=8, alpha=0.2)
    data = fairfl.partition.partitioned(x, y, owners)
    result = fairfl.train(
        data, fairfl.models.softmax_regression(data), fairfl.q_fedavg(q=1), rounds=3, cohort=4
    )
    assert result.fairness("train")["average"][0] > 60


@pytest.mark.parametrize(
    ("deal", "sentence"),
    [
        (lambda: dirichlet(LABELS, 10, -1), r"alpha=-1 must be a finite number of at least 0"),
        (lambda: dirichlet(LABELS, 10, float("inf")), r"alike use iid"),
        (lambda: dirichlet(LABELS, 0, 1), r"clients=0 must be a whole number of at least 1"),
        (lambda: iid(LABELS, 2.5), r"clients=2.5 must be a whole number"),
        (lambda: iid(LABELS[:3], 4), r"4 clients with at least 1 rows each need 4 rows but there"),
        (lambda: power_law(LABELS, 2, exponent=0), r"exponent=0 must be a number above 0"),
        (lambda: shards(LABELS, 2, per_client=0), r"per_client=0 must be a whole number"),
        (lambda: iid(np.zeros((2, 2)), 1), r"labels of shape \(2, 2\) cannot be dealt"),
        (lambda: partitioned(np.eye(2), [0, 1], [0]), r"give one client number per row"),
        (lambda: partitioned(np.eye(2), [0, 1], [0, -1]), r"counted from 0"),
        (lambda: partitioned(np.eye(2), [0, 1], [0, 2]), r"0 to 2, of which 2 have rows"),
        (lambda: partitioned(np.eye(2), [0, 1], [0, 1], ids=["a"]), r"there are 1 names"),
        (lambda: partitioned(np.eye(2), [0, 1], [0, 1], split=(1.0, 1.0, 1.0)), r"three fractions"),
    ],
)
def test_a_wrong_request_hears_a_sentence(deal, sentence):
    with pytest.raises(ValueError, match=sentence):
        deal()
