"""Clients drawn to the mean and deviation of a published table."""

import numpy as np
import pytest

from fairfl.datasets.matched import Published, at_least, chosen_clients, matched

SIZES = np.random.default_rng(0).lognormal(5, 1, 300).astype(int) + 10
TABLE = Published(clients=20, samples=6_000, deviation=250)


@pytest.mark.parametrize("seed", range(5))
def test_any_seed_meets_the_table(seed):
    chosen = matched(SIZES, 20, TABLE, seed)
    assert len(set(chosen.tolist())) == 20
    assert SIZES[chosen].mean() == pytest.approx(300, abs=0.5)
    assert SIZES[chosen].std() == pytest.approx(250, abs=0.5)


def test_seeds_draw_different_clients_and_the_same_seed_the_same():
    assert matched(SIZES, 20, TABLE, 1).tolist() == matched(SIZES, 20, TABLE, 1).tolist()
    assert matched(SIZES, 20, TABLE, 1).tolist() != matched(SIZES, 20, TABLE, 2).tolist()


def test_a_table_that_cannot_be_met_gives_the_nearest_and_ends():
    far = Published(clients=20, samples=20_000_000, deviation=0)
    chosen = matched(SIZES, 3, far, seed=0)
    assert sorted(SIZES[chosen].tolist()) == np.sort(SIZES)[-3:].tolist()


def test_all_of_them_are_all_of_them():
    assert matched(SIZES, 300, TABLE, seed=0).tolist() == list(range(300))


def test_where_fewer_have_enough_rows_than_are_published_all_are_taken():
    sizes = np.array([5, 50, 7, 60])
    assert chosen_clients(sizes, None, 10, TABLE, 0, "roles", "samples").tolist() == [1, 3]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"clients": 0}, r"clients=0 must be a whole number of at least 1"),
        ({"clients": 2.5}, r"clients=2.5 must be"),
        ({"least": -1}, r"least=-1 must be"),
        ({"clients": 301}, r"clients=301 are more than the 300 roles with at least 1 samples"),
    ],
)
def test_a_wrong_request_hears_a_sentence(wrong, sentence):
    asked = {"clients": 2, "least": 1, **wrong}
    with pytest.raises(ValueError, match=sentence):
        chosen_clients(SIZES, published=TABLE, seed=0, of="roles", rows="samples", **asked)


def test_a_least_that_nobody_has_names_the_largest():
    with pytest.raises(ValueError, match=r"least=99, but the largest of 2 accounts has 7 tweets"):
        at_least(np.array([3, 7]), 99, "accounts", "tweets")
