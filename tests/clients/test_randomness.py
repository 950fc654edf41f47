"""Random streams: each a function of (seed, stream, round, client) and of nothing else."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations as arrangements
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fairfl.clients.randomness import Stream, generator, permutations

WHERE = {"seed": 5, "stream": Stream.SHUFFLE, "round": 3, "client": 8}


@pytest.mark.parametrize(("rows", "copies"), [(1, 1), (2, 3), (5, 2), (8, 1), (64, 2), (65, 3)])
def test_a_permutation_is_the_order_of_the_generators_own_bits(rows, copies):
    """Row i's key is the i-th raw draw; its lowest bits, where the row number goes, do not count.

    Anybody with NumPy can repeat a simulation's shuffles so, without this package.
    """
    raw = generator(**WHERE).bit_generator.random_raw(rows * copies).reshape(copies, rows)
    bits = max(rows - 1, 1).bit_length()
    expected = np.argsort(raw >> np.uint64(bits), axis=1, kind="stable")
    np.testing.assert_array_equal(permutations(rows, copies, **WHERE), expected)


def test_the_streams_are_those_of_every_run_before():
    """A changed number, key or counter would give every seed another meaning."""
    assert {stream.name: int(stream) for stream in Stream} == {
        "SPLIT": 1,
        "MODEL": 2,
        "COHORT": 3,
        "SHUFFLE": 4,
        "DATA": 5,
        "NOISE": 6,
        "PARTITION": 7,
        "SUPPORT": 8,
    }
    philox = np.random.Philox(
        key=np.array([5, 4], np.uint64), counter=np.array([0, 0, 3, 8], np.uint64)
    )
    assert generator(**WHERE).integers(10**9) == np.random.Generator(philox).integers(10**9)
    assert permutations(6, 1, **WHERE).tolist() == [[2, 1, 4, 3, 5, 0]]


@given(
    rows=st.integers(0, 300),
    copies=st.integers(1, 4),
    seed=st.integers(0, 2**64 - 1),
    round=st.integers(0, 2**40),
    client=st.integers(0, 2**40),
)
@settings(max_examples=150, deadline=None)
def test_permutations_are_permutations(rows, copies, seed, round, client):
    found = permutations(rows, copies, seed, Stream.SHUFFLE, round, client)
    assert found.shape == (copies, rows)
    np.testing.assert_array_equal(np.sort(found, axis=1), np.tile(np.arange(rows), (copies, 1)))


SOURCES = {
    "copies": lambda n: permutations(3, n, 0, Stream.SHUFFLE),
    "rounds": lambda n: [permutations(3, 1, 0, Stream.SHUFFLE, t)[0] for t in range(n)],
    "clients": lambda n: [permutations(3, 1, 0, Stream.SHUFFLE, 0, k)[0] for k in range(n)],
    "seeds": lambda n: [permutations(3, 1, s, Stream.SHUFFLE)[0] for s in range(n)],
}


@pytest.mark.parametrize("source", SOURCES)
def test_all_orders_of_three_are_equally_likely_over(source):
    drawn = [tuple(order) for order in np.asarray(SOURCES[source](3000)).tolist()]
    counts = [drawn.count(order) for order in arrangements(range(3))]
    assert sum(counts) == 3000
    assert stats.chisquare(counts).pvalue > 0.001


@pytest.mark.parametrize("rows", [5, 8, 9])
def test_every_row_is_equally_likely_at_every_place(rows):
    drawn = permutations(rows, 4000, 1, Stream.SPLIT)
    for place in range(rows):
        counts = np.bincount(drawn[:, place], minlength=rows)
        assert stats.chisquare(counts).pvalue > 1e-4


def test_no_two_seeds_streams_rounds_or_clients_share_their_draws():
    """The paper's code shuffles with seed 100 in every run and draws by the round alone (R6)."""
    keys = list(product(range(4), Stream, range(4), range(4)))
    raw = [generator(*key).bit_generator.random_raw(4) for key in keys]
    assert len(set(np.concatenate(raw).tolist())) == 4 * len(keys)
    orders = {tuple(permutations(40, 1, *key)[0].tolist()) for key in keys}
    assert len(orders) == len(keys)


def test_local_epochs_are_shuffled_apart():
    assert len({tuple(order) for order in permutations(40, 50, **WHERE).tolist()}) == 50


def test_more_epochs_do_not_change_the_first_ones():
    np.testing.assert_array_equal(permutations(9, 5, **WHERE)[:2], permutations(9, 2, **WHERE))


CALLS = [
    (rows, copies, seed, stream, round, client)
    for rows, copies in [(1, 1), (7, 1), (6, 3), (33, 2)]
    for seed in (0, 2**63)
    for stream in (Stream.SPLIT, Stream.SHUFFLE)
    for round, client in [(0, 0), (2, 9)]
]


def test_a_draw_does_not_depend_on_the_draws_before_it():
    expected = [permutations(*call).tolist() for call in CALLS]
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(len(CALLS)), 5))
    for i in order:
        assert permutations(*CALLS[i]).tolist() == expected[i]


def test_a_draw_does_not_depend_on_the_thread():
    expected = [permutations(*call).tolist() for call in CALLS]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda call: permutations(*call).tolist(), CALLS * 20))
    assert found == expected * 20


def test_generators_do_not_share_a_state():
    one, other = generator(0, Stream.COHORT), generator(0, Stream.COHORT)
    first = one.integers(10**9, size=5).tolist()
    assert other.integers(10**9, size=5).tolist() == first
    assert one.integers(10**9, size=5).tolist() != first
