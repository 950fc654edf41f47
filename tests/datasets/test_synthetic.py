"""The synthetic family against the paper's statistics and against its own generating formula."""

import numpy as np
import pytest

from fairfl.clients.federated import as_mapping
from fairfl.datasets.synthetic import (
    CLASSES,
    FEATURES,
    heavy_sizes,
    own_source,
    paper_sizes,
    shared_source,
    stream,
    synthetic,
    synthetic_hybrid,
    synthetic_iid,
)

SEEDS = (0, 1, 2)
family = pytest.mark.parametrize("generate", [synthetic, synthetic_iid, synthetic_hybrid])


def rows_of(data, client):
    return as_mapping(data)[data.ids[client]]


def labelled_by(source, x):
    return np.argmax(x.astype(np.float64) @ source.weights + source.bias, axis=1)


def own(seed, client, alpha=1.0, beta=1.0):
    return own_source(stream(seed, client=client), alpha, beta)


def client_means(data):
    return np.add.reduceat(data.x, data.offsets[:-1]) / data.sizes[:, None]


# What comes out.


@family
@pytest.mark.parametrize("seed", SEEDS)
def test_statistics_are_those_of_the_papers_table(generate, seed):
    data = generate(seed)
    assert (data.clients, len(data.y)) == (100, 12_697)
    assert round(data.sizes.mean()) == 127
    assert round(data.sizes.std()) == 73


@family
def test_every_client_and_class_has_its_place(generate):
    data = generate(0, clients=3)
    assert data.ids == ("f_00000", "f_00001", "f_00002")
    assert data.classes is not None
    assert data.classes.tolist() == list(range(10))
    assert (data.task, data.fractions) == ("multiclass", (0.8, 0.1, 0.1))
    assert data.x.shape == (381, FEATURES)
    assert (data.x.dtype, data.y.dtype) == (np.float32, np.int32)
    assert data.offsets[0] == 0
    assert data.offsets[-1] == len(data.y)


@family
def test_labels_are_class_numbers(generate):
    y = generate(0).y
    assert y.min() >= 0
    assert y.max() < CLASSES
    assert len(np.unique(y)) > 5


@family
def test_the_whole_is_a_function_of_the_seed(generate):
    assert generate(0).fingerprint == generate(0).fingerprint
    first, second = generate(0), generate(1)
    for array in ("sizes", "x", "y"):
        assert (getattr(first, array)[:50] != getattr(second, array)[:50]).any()


@family
@pytest.mark.parametrize("sizes", ["paper", "heavy"])
def test_a_client_keeps_its_rows_when_there_are_more_clients(generate, sizes):
    few, many = generate(0, clients=6, sizes=sizes), generate(0, clients=21, sizes=sizes)
    for client in range(6):
        (x, y), (x2, y2) = rows_of(few, client), rows_of(many, client)
        rows = min(len(y), len(y2))
        assert rows >= 50
        np.testing.assert_array_equal(x[:rows], x2[:rows])
        np.testing.assert_array_equal(y[:rows], y2[:rows])


def test_clients_do_not_share_their_draws():
    x = synthetic_iid(0, clients=50).x
    assert len(np.unique(x, axis=0)) == len(x)


# Sizes.


@pytest.mark.parametrize("clients", [1, 2, 3, 10, 23, 50, 101, 1_000])
def test_any_number_of_clients_has_the_papers_mean_and_deviation(clients):
    sizes = paper_sizes(0, clients)
    assert len(sizes) == clients
    assert sizes.sum() == round(126.97 * clients)
    assert sizes.std() == pytest.approx(0 if clients == 1 else 73, abs=0.5)
    assert sizes.min() >= 50


def test_the_papers_sizes_follow_a_power_law():
    # The quantiles of n(p) = c (1 - p)^-t lie on a line of slope -t in log-log scale.
    sizes = np.sort(paper_sizes(0, 1_000))
    tail = 1 - (np.arange(1_000) + 0.5) / 1_000
    slope, intercept = np.polyfit(np.log(tail), np.log(sizes), 1)
    assert -0.5 < slope < -0.3
    np.testing.assert_allclose(slope * np.log(tail) + intercept, np.log(sizes), atol=0.02)


def test_a_seed_changes_who_is_large_but_not_the_sizes():
    a, b = paper_sizes(0, 100), paper_sizes(1, 100)
    assert (a != b).any()
    np.testing.assert_array_equal(np.sort(a), np.sort(b))


def test_heavy_sizes_are_the_reference_generators():
    sizes = heavy_sizes(0, 20_000)
    assert sizes.min() >= 50
    logarithms = np.log(sizes - 49.5)
    assert np.median(logarithms) == pytest.approx(4, abs=0.05)
    quartiles = np.quantile(logarithms, [0.25, 0.75])
    assert np.diff(quartiles) / 1.349 == pytest.approx(2, abs=0.05)
    np.testing.assert_array_equal(synthetic(0, clients=5, sizes="heavy").sizes, sizes[:5])


# Features.


@family
def test_features_vary_as_sigma_within_a_client(generate):
    data = generate(0)
    centred = data.x - np.repeat(client_means(data), data.sizes, axis=0)
    variance = (centred**2).sum(0) / (len(data.y) - data.clients)
    expected = np.array([j**-1.2 for j in range(1, 61)])
    np.testing.assert_allclose(variance, expected, rtol=0.06)


def test_a_clients_mean_is_drawn_around_its_own_centre():
    # Across clients mean_kj = B_k + N(0, 1): B_k is common to the features, deviation beta.
    means = np.array([own(0, client, beta=3.0).mean for client in range(2_000)])
    assert means.mean(axis=1).std() == pytest.approx(3, rel=0.05)
    assert means.std(axis=1).mean() == pytest.approx(1, rel=0.05)
    assert means.mean() == pytest.approx(0, abs=0.25)


def test_rows_lie_around_the_clients_mean():
    x, _ = rows_of(synthetic(0, clients=1), 0)
    error = np.sqrt(np.arange(1, 61) ** -1.2 / len(x))
    assert np.abs((x.mean(0) - own(0, 0).mean) / error).max() < 4


def test_iid_features_have_mean_zero():
    means = client_means(synthetic_iid(0))
    assert np.abs(means).max() < 4.5 / np.sqrt(79)


@pytest.mark.parametrize("seed", SEEDS)
def test_heterogeneity_of_features_grows_with_beta(seed):
    spread = [client_means(synthetic(seed, beta=beta)).var(0).mean() for beta in (0, 1, 2, 4)]
    np.testing.assert_allclose(spread, [1, 2, 5, 17], rtol=0.4)
    assert spread == sorted(spread)


# Labels.


def test_weights_and_bias_are_drawn_around_one_centre():
    sources = [own(0, client, alpha=3.0) for client in range(500)]
    weights = np.array([source.weights for source in sources])
    bias = np.array([source.bias for source in sources])
    assert weights.mean(axis=(1, 2)).std() == pytest.approx(3, rel=0.1)
    assert weights.std(axis=(1, 2)).mean() == pytest.approx(1, rel=0.02)
    centred = bias - weights.mean(axis=(1, 2))[:, None]
    assert centred.std() == pytest.approx(1, rel=0.05)
    assert np.abs(centred.mean(axis=1)).max() < 1.5


def test_heterogeneity_of_rules_grows_with_alpha_but_no_label_notices():
    # u_k (1 + sum_j x_j) is added to every logit alike.
    spread = [np.std([own(0, client, alpha=a).bias for client in range(300)]) for a in (0, 1, 4)]
    np.testing.assert_allclose(spread, np.sqrt([1, 2, 17]), rtol=0.15)
    assert synthetic(0, alpha=0).fingerprint == synthetic(0, alpha=4).fingerprint


def test_iid_clients_share_one_labelling_function():
    data, source = synthetic_iid(0), shared_source(0)
    np.testing.assert_array_equal(labelled_by(source, data.x), data.y)


def test_the_shared_rule_is_drawn_from_the_unit_normal():
    sources = [shared_source(seed) for seed in range(40)]
    weights = np.array([source.weights for source in sources])
    assert weights.mean() == pytest.approx(0, abs=0.03)
    assert weights.std() == pytest.approx(1, rel=0.02)
    assert np.std([source.bias for source in sources]) == pytest.approx(1, rel=0.15)


def test_every_client_of_synthetic_has_a_rule_of_its_own():
    # A neighbour's rule agrees on a client whose mean is far out only by luck, one in ten.
    neighbours = []
    for client, (x, y) in enumerate(as_mapping(synthetic(0)).values()):
        np.testing.assert_array_equal(labelled_by(own(0, client), x), y)
        neighbours.append((labelled_by(own(0, client + 1), x) == y).mean())
    assert np.mean(neighbours) == pytest.approx(0.1, abs=0.1)


def test_half_of_the_hybrids_clients_are_iid_and_half_are_not():
    hybrid, iid, own_rules = synthetic_hybrid(0), synthetic_iid(0), synthetic(0)
    shared = shared_source(0)
    follows = np.array(
        [(labelled_by(shared, x) == y).all() for x, y in as_mapping(hybrid).values()]
    )
    assert follows.sum() == 50
    for client in range(hybrid.clients):
        twin = iid if follows[client] else own_rules
        for ours, theirs in zip(rows_of(hybrid, client), rows_of(twin, client), strict=True):
            np.testing.assert_array_equal(ours, theirs)
