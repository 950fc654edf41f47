"""The plan: every row once per epoch, every client in one lane, every round reachable at random."""

from dataclasses import replace
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairfl
from conftest import SIZES
from fairfl.clients import Rows
from fairfl.simulation import plan as plans
from fairfl.simulation.plan import ROUNDS, TILE, lay_out, planner, segments_of, shuffles_of


class Step(NamedTuple):
    """One step of one client: when, in which lane, on which rows, and whether F_k is measured."""

    when: int
    lane: int
    rows: tuple[int, ...]
    measured: bool


class Trip(NamedTuple):
    """One client's part in a round: how often it begins and ends, and its steps in between."""

    client: int
    weight: float
    size: int
    begins: list[int]
    ends: list[int]
    steps: list[Step]


def decoded(plan, chunk):
    """The rounds of a chunk, read as the device reads them: segment by segment, step by step."""
    return [_round(plan, chunk, r) for r in range(int(chunk.rounds))]


def _round(plan, chunk, r):
    people = zip(chunk.ids[r], chunk.weights[r], chunk.sizes[r], strict=True)
    trips = [Trip(int(k), float(u), int(n), [], [], []) for k, u, n in people]
    origin = chunk.start[r, 0]
    for g in range(chunk.start.shape[1]):
        start, length = int(chunk.start[r, g]), int(chunk.length[r, g])
        for p in range(plan.lanes):
            place = chunk.slot[r, g, p]
            if place == plan.cohort:
                assert not any(
                    flags[r, g, p] for flags in (chunk.first, chunk.last, chunk.measured)
                )
                continue
            trip, measured = trips[place], bool(chunk.measured[r, g, p])
            if chunk.first[r, g, p]:
                trip.begins.append(start - origin)
            for s in range(start, start + length):
                rows = tuple(chunk.rows[s, p, : chunk.filled[s, p]].tolist())
                trip.steps.append(Step(int(s - origin), p, rows, measured))
            if chunk.last[r, g, p]:
                trip.ends.append(start + length - origin)
    return trips


def owned(sizes):
    """Rows of clients of these sizes; row numbers are not simply counted up."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Rows(np.random.default_rng(0).permutation(int(offsets[-1])), offsets)


def batches(order, size):
    return [tuple(order[i : i + size].tolist()) for i in range(0, len(order), size)]


def planned(sizes, cohort, epochs=1, batch=5, lanes=1, seed=0, sampler="uniform"):
    algorithm = fairfl.fedavg(epochs=epochs, batch_size=batch, sampler=sampler)
    return planner(owned(sizes), algorithm, cohort, seed, lanes)


@st.composite
def cases(draw):
    """Arguments of `planned`."""
    sizes = [*draw(st.lists(st.integers(0, 40), max_size=7)), draw(st.integers(1, 60))]
    able = sum(n > 0 for n in sizes)
    sampler = draw(st.sampled_from(["by-size", "uniform", "by-size-with-replacement", "everyone"]))
    return {
        "sizes": sizes,
        "cohort": draw(st.integers(1, able + 3 * (sampler == "by-size-with-replacement"))),
        "epochs": draw(st.integers(1, 3)),
        "batch": draw(st.integers(1, 9)),
        "lanes": draw(st.integers(1, 4)),
        "seed": draw(st.integers(0, 1000)),
        "sampler": sampler,
    }


MANY = settings(max_examples=80, deadline=None)


def tight(steps=1):
    """Chunks that hold hardly more than they must."""
    return mock.patch.object(plans, "STEPS", steps)


# --- a round --------------------------------------------------------------------------------------


@given(case=cases(), start=st.integers(0, 50))
@MANY
def test_every_training_row_comes_once_in_every_epoch_of_every_client(case, start):
    found = planned(**case)
    with tight(200):
        rounds = decoded(found, found.chunk(start, start + 3))
    for round, trips in enumerate(rounds, start):
        for trip in trips:
            own = found.rows.of(trip.client)
            expected = [
                batch
                for order in shuffles_of(own, found.seed, round, trip.client, found.epochs)
                for batch in batches(order, found.batch)
            ]
            assert [step.rows for step in trip.steps] == expected
            per_epoch = -(-len(own) // found.batch)
            for epoch in range(found.epochs):
                part = trip.steps[epoch * per_epoch : (epoch + 1) * per_epoch]
                assert sorted(row for step in part for row in step.rows) == sorted(own.tolist())


@given(case=cases(), start=st.integers(0, 50))
@MANY
def test_a_client_begins_once_ends_once_and_is_measured_in_its_first_epoch(case, start):
    found = planned(**case)
    with tight(200):
        rounds = decoded(found, found.chunk(start, start + 3))
    for trips in rounds:
        for trip in trips:
            when = [step.when for step in trip.steps]
            assert trip.begins == [when[0]]
            assert trip.ends == [when[-1] + 1]
            per_epoch = -(-trip.size // found.batch)
            assert [s.measured for s in trip.steps] == [i < per_epoch for i in range(len(when))]


@given(case=cases(), start=st.integers(0, 50))
@MANY
def test_a_client_stays_in_its_lane_and_has_it_for_itself(case, start):
    found = planned(**case)
    with tight(200):
        rounds = decoded(found, found.chunk(start, start + 3))
    for trips in rounds:
        taken = [(step.when, step.lane) for trip in trips for step in trip.steps]
        assert len(set(taken)) == len(taken)
        for trip in trips:
            when = [step.when for step in trip.steps]
            assert when == list(range(when[0], when[0] + len(when)))
            assert len({step.lane for step in trip.steps}) == 1


@given(case=cases(), start=st.integers(0, 50))
@MANY
def test_a_round_names_its_cohort_with_sizes_and_weights(case, start):
    found = planned(**case)
    with tight(200):
        rounds = decoded(found, found.chunk(start, start + 3))
    for round, trips in enumerate(rounds, start):
        ids, u = found.draw(round)
        assert [trip.client for trip in trips] == ids.tolist()
        assert [trip.weight for trip in trips] == u.tolist()
        assert [trip.size for trip in trips] == found.people.sizes[ids].tolist()


@given(case=cases())
@MANY
def test_padding_costs_less_than_a_batch_an_epoch_and_repeats_a_row_of_the_client(case):
    found = planned(**case)
    with tight(200):
        chunk = found.chunk(0, 3)
        rounds = decoded(found, chunk)
    for r, trips in enumerate(rounds):
        for trip in trips:
            own = set(found.rows.of(trip.client).tolist())
            assert len(trip.steps) == found.epochs * -(-trip.size // found.batch)
            assert sum(len(step.rows) for step in trip.steps) == found.epochs * trip.size
            for step in trip.steps:
                assert set(chunk.rows[chunk.start[r, 0] + step.when, step.lane].tolist()) <= own


def test_the_segments_of_a_round_by_hand():
    """Two lanes, two epochs: client 0 takes steps 0-3, then 2 takes 4-5; client 1 takes 0-5."""
    begin, until, end = np.array([0, 0, 4]), np.array([2, 3, 5]), np.array([4, 6, 6])
    found = segments_of(begin, until, end, np.array([0, 1, 0]), lanes=2)
    assert found.start.tolist() == [0, 2, 3, 4, 5]
    assert found.length.tolist() == [2, 1, 1, 1, 1]
    assert found.slot.tolist() == [[0, 1], [0, 1], [0, 1], [2, 1], [2, 1]]
    assert found.first.astype(int).tolist() == [[1, 1], [0, 0], [0, 0], [1, 0], [0, 0]]
    assert found.last.astype(int).tolist() == [[0, 0], [0, 0], [1, 0], [0, 0], [1, 1]]
    assert found.measured.astype(int).tolist() == [[1, 1], [0, 1], [0, 0], [1, 0], [0, 0]]


def test_full_gradient_work_reads_the_rows_in_their_own_order():
    sizes = [TILE + 3, 5, 2 * TILE]
    found = planner(owned(sizes), fairfl.q_fedsgd(), cohort=2, seed=0)
    for trips in decoded(found, found.chunk(0, 4)):
        for trip in trips:
            expected = batches(found.rows.of(trip.client), TILE)
            assert [step.rows for step in trip.steps] == expected
            assert all(step.measured for step in trip.steps)


# --- lanes ----------------------------------------------------------------------------------------


@given(steps=st.lists(st.integers(1, 60), min_size=1, max_size=15), lanes=st.integers(1, 6))
@settings(max_examples=200, deadline=None)
def test_the_longest_client_goes_to_the_emptiest_lane(steps, lanes):
    begin, lane = lay_out(np.array(steps), lanes)
    filled = [0] * lanes
    order = range(len(steps))
    for k in order if lanes == 1 else sorted(order, key=lambda k: -steps[k]):
        assert begin[k] == filled[lane[k]] == min(filled)
        filled[lane[k]] += steps[k]
    # What the size of a chunk is reckoned with: no lane is fuller than an even share and a client.
    assert max(filled) <= sum(steps) // lanes + max(steps)


def test_equal_clients_take_the_lanes_in_turn():
    begin, lane = lay_out(np.array([2, 2, 2, 2, 2]), lanes=2)
    assert lane.tolist() == [0, 1, 0, 1, 0]
    assert begin.tolist() == [0, 0, 2, 2, 4]


def test_more_lanes_than_clients_stay_idle():
    found = planned([7, 12], cohort=2, lanes=4)
    (trips,) = decoded(found, found.chunk(0, 1))
    assert {step.lane for trip in trips for step in trip.steps} == {0, 1}


# --- chunks ---------------------------------------------------------------------------------------


@given(case=cases(), start=st.integers(0, 20), steps=st.sampled_from([1, 40, 400]))
@MANY
def test_a_chunk_holds_a_round_at_least_and_never_more_than_it_can(case, start, steps):
    """Were a round too long for a chunk, the engine would ask for it for ever."""
    found = planned(**case)
    with tight(steps):
        at = start
        for _ in range(4):
            chunk = found.chunk(at, at + 30)
            assert chunk.rounds >= 1
            assert (chunk.start + chunk.length).max() <= len(chunk.rows)
            assert chunk.first_round == at
            at += int(chunk.rounds)


@pytest.mark.parametrize("lanes", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("sampler", "ids"),
    [("by-size", [0, 2, 4]), ("by-size-with-replacement", [0, 0, 0]), ("everyone", range(6))],
)
def test_the_longest_possible_round_fits(lanes, sampler, ids):
    """A draw of the largest clients only; with replacement, of the largest one each time."""
    sizes, ids = np.array([90, 1, 77, 3, 60, 2]), np.array(ids)
    usual = planned(sizes, 3, epochs=2, batch=1, lanes=lanes, sampler=sampler)
    worst = replace(usual, sampler=usual.sampler._replace(draw=lambda *_: ids))
    with tight():
        chunk = worst.chunk(0, 1)
    assert chunk.rounds == 1
    (trips,) = decoded(worst, chunk)
    assert [len(trip.steps) for trip in trips] == (2 * sizes[ids]).tolist()


@given(case=cases(), start=st.integers(0, 12), stop=st.integers(1, 6))
@MANY
def test_a_round_is_the_same_wherever_its_chunk_begins(case, start, stop):
    found = planned(**case)
    with tight(10**4):
        long = decoded(found, found.chunk(0, start + stop))
    with tight(60):
        part = decoded(found, found.chunk(start, start + stop))
    expected = long[start:]
    # A chunk may end before `stop` where it is full; what it holds is the same.
    shared = min(len(expected), len(part))
    assert part[:shared] == expected[:shared]


def test_chunk_after_chunk_is_the_whole_run():
    found = planned(SIZES, cohort=4, epochs=2, batch=8, lanes=2)
    whole = decoded(found, found.chunk(0, 40))
    pieces, at = [], 0
    with tight(1):
        while at < 40:
            chunk = found.chunk(at, 40)
            pieces += decoded(found, chunk)
            at += int(chunk.rounds)
    assert len(whole) == 40
    assert pieces == whole


def test_a_chunk_stops_where_it_is_told_and_at_its_limit_of_rounds():
    found = planned([3, 4, 5], cohort=2)
    assert found.chunk(7, 10).rounds == 3
    assert found.chunk(0, 10**6).rounds == ROUNDS


def test_every_chunk_has_the_same_shapes():
    """Or the program would be compiled again."""
    found = planned([1, 100, 3, 40], cohort=2, epochs=2, lanes=2)
    shapes = {
        tuple((part.shape, part.dtype) for part in found.chunk(*bounds))
        for bounds in [(0, 1), (5, 70), (9, 10**4)]
    }
    assert len(shapes) == 1


# --- shuffles -------------------------------------------------------------------------------------


def orders(plan, round):
    """Each client's steps, whatever its place in the cohort."""
    (trips,) = decoded(plan, plan.chunk(round, round + 1))
    return {trip.client: [step.rows for step in trip.steps] for trip in trips}


@pytest.mark.parametrize("lanes", [1, 3])
def test_shuffles_belong_to_the_client_and_not_to_its_place(lanes):
    """So that runs with other cohorts, samplers or lanes stay pairs."""
    sizes = [30, 12, 25, 8, 40]
    everyone = planned(sizes, 5, epochs=2, lanes=lanes, sampler="everyone")
    few = planned(sizes, 2, epochs=2, sampler="by-size")
    places = set()
    for round in range(12):
        full, part = orders(everyone, round), orders(few, round)
        for place, (client, steps) in enumerate(part.items()):
            assert steps == full[client]
            places.add((client, place))
    assert len(places) > 5


def test_a_client_drawn_twice_makes_the_same_trip_twice():
    found = planned([20, 1], 6, sampler="by-size-with-replacement")
    (trips,) = decoded(found, found.chunk(0, 1))
    steps = [[step.rows for step in trip.steps] for trip in trips if trip.client == 0]
    assert len(steps) > 1
    assert all(again == steps[0] for again in steps)


def test_shuffles_differ_from_round_to_round_epoch_to_epoch_and_seed_to_seed():
    """The paper's code shuffles with seed 100 each time (R6)."""
    rows = np.arange(100, 130)
    found = [
        tuple(order.tolist())
        for seed in range(3)
        for round in range(3)
        for client in range(3)
        for order in shuffles_of(rows, seed, round, client, epochs=3)
    ]
    assert len(set(found)) == 81
    assert all(sorted(order) == rows.tolist() for order in found)
