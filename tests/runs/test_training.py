"""Training: what may be asked for, how progress is told, and how a run ends before its time."""

import re
import threading
from itertools import pairwise

import jaxtyping
import numpy as np
import pytest

import fairfl
from conftest import made_up
from fairfl.models import Model
from fairfl.models.fit import ROWS
from fairfl.runs.training import check_seeds
from fairfl.simulation import engine
from fairfl.simulation.worker import DATA


@pytest.fixture
def unchecked(monkeypatch):
    """The package as its users run it, without the type checks that the tests switch on."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="module")
def small():
    data = made_up([10, 20, 30], classes=2)
    return data, fairfl.models.softmax_regression(data)


def train(small, algorithm=None, **options):
    options = {"rounds": 2, "cohort": 2, **options}
    return fairfl.train(*small, algorithm or fairfl.fedavg(), **options)


def refusal(function, *args, **kwargs):
    """What a call is refused with: one line, one sentence."""
    with pytest.raises(ValueError, match=r"\A[^\n]+[^.\n]\Z") as caught:
        function(*args, **kwargs)
    assert not re.search(r"[.;?] [A-Z]", str(caught.value)), caught.value
    return str(caught.value)


def workers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("fairfl")]


# --- what may be asked for ------------------------------------------------------------------------

NO_COUNT = [0, -1, "5", 1.5, True, [2], float("nan")]


@pytest.mark.parametrize("name", ["rounds", "cohort", "evaluate_every"])
@pytest.mark.parametrize("bad", NO_COUNT, ids=repr)
def test_a_count_is_one_whole_number_of_at_least_one(small, unchecked, name, bad):
    said = refusal(train, small, **{name: bad})
    assert said.startswith(f"{name}={bad!r} must be one whole number of at least 1")


@pytest.mark.parametrize("name", ["width", "lanes"])
@pytest.mark.parametrize("bad", [0, -1, 1.5, "2"])
def test_width_and_lanes_are_too(small, unchecked, name, bad):
    said = refusal(train, small, **{name: bad})
    assert said.startswith(f"{name}={bad!r} must be one whole number")


@pytest.mark.parametrize(
    "bad", [-1, "a", 1.5, True, None, 2**64, [1, -1], [0, "1"], [0.0]], ids=repr
)
def test_a_seed_is_a_whole_number_that_64_bits_hold(small, unchecked, bad):
    said = refusal(train, small, seed=bad)
    named = next(s for s in bad if type(s) is not int or s < 0) if isinstance(bad, list) else bad
    assert said.startswith(f"seed={named!r} must be one whole number")


@pytest.mark.parametrize("bad", [-1, "a", 1.5, True, 2**64, [1]], ids=repr)
def test_a_split_seed_is_too(small, unchecked, bad):
    said = refusal(train, small, split_seed=bad)
    assert said.startswith(f"split_seed={bad!r} must be one whole number")


@pytest.mark.parametrize("empty", [[], (), range(0)])
def test_no_seeds(small, empty):
    assert refusal(train, small, seed=empty) == "seed is an empty list; give at least one seed"


@pytest.mark.parametrize("seeds", [[1, 1], [0, 2, 0]])
def test_a_seed_that_is_listed_twice(small, seeds):
    said = refusal(train, small, seed=seeds)
    assert said == f"seed={seeds} names a seed twice; list each seed once"


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [
        (3, [3]),
        (np.int64(3), [3]),
        ([2, 0], [2, 0]),
        (range(3), [0, 1, 2]),
        (np.array([5, 4], np.uint32), [5, 4]),
        ([np.int8(1), 0], [1, 0]),
        (2**64 - 1, [2**64 - 1]),
    ],
    ids=repr,
)
def test_seeds_are_plain_numbers_in_the_order_given(unchecked, seeds, expected):
    found = check_seeds(seeds)
    assert found == expected
    assert all(type(seed) is int for seed in found)


def test_numpy_numbers_will_do(small, unchecked):
    plain = train(small, seed=[1, 0], rounds=2, cohort=2)
    same = train(small, seed=np.array([1, 0]), rounds=np.int64(2), cohort=np.int32(2))
    assert same.experiments == plain.experiments
    np.testing.assert_array_equal(same.params["weights"], plain.params["weights"])


@pytest.mark.parametrize(
    ("rounds", "every", "expected"),
    [(5, 2, [2, 4, 5]), (5, 1, [1, 2, 3, 4, 5]), (5, 99, [5]), (3, None, [1, 2, 3])],
)
def test_a_run_is_evaluated_as_often_as_asked_and_at_its_end(small, rounds, every, expected):
    result = train(small, rounds=rounds, evaluate_every=every)
    assert sorted(result.members[0].fairness) == expected


def test_a_long_run_is_evaluated_about_twenty_times(small):
    result = train(small, rounds=47)
    assert sorted(result.members[0].fairness) == [*range(2, 47, 2), 47]


# --- progress -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seeds", "width"), [([0], None), ([0, 1, 2], 2)])
def test_progress_grows_to_the_whole_in_the_callers_thread(small, seeds, width):
    """Rounds are counted over all groups: three seeds of three q, two to a group."""
    heard, threads = [], set()

    def hear(progress):
        heard.append(progress)
        threads.add(threading.current_thread())

    q = [0] if width is None else [0, 1, 2]
    train(small, fairfl.q_fedavg(q=q), rounds=6, seed=seeds, width=width, on_chunk=hear)
    groups = 1 if width is None else 6
    done = [progress.done for progress in heard]
    assert all(before < after for before, after in pairwise(done))
    assert done[-1] == 6 * groups
    assert {progress.total for progress in heard} == {6 * groups}
    seconds = [progress.seconds for progress in heard]
    assert seconds == sorted(seconds)
    assert len({id(progress.group) for progress in heard}) == groups
    assert threads == {threading.current_thread()}


def test_a_quick_run_reports_once_per_evaluation_or_more(small):
    heard = []
    train(small, rounds=6, evaluate_every=2, on_chunk=lambda progress: heard.append(progress.done))
    assert set(heard) >= {2, 4, 6}


# --- ends before time -----------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_stops_every_worker(small, monkeypatch, error):
    """A million rounds of three seeds, stopped at the third report."""
    monkeypatch.setattr(engine, "SECONDS", 0.02)
    heard = []

    def interrupt(progress):
        heard.append(progress)
        assert workers()
        if len(heard) == 3:
            raise error("enough")

    with pytest.raises(error, match="enough"):
        train(small, rounds=10**6, seed=[0, 1, 2], on_chunk=interrupt)
    assert len(heard) == 3
    assert workers() == []
    assert DATA.find(small[0].fingerprint) is None


def test_workers_end_with_their_run(small):
    train(small, seed=[0, 1])
    assert workers() == []
    assert DATA.find(small[0].fingerprint) is None


def test_an_error_in_a_worker_reaches_the_caller_once(small):
    """Three groups fail; the caller hears of the first, and the next run is none the worse."""
    data, model = small
    heard = []

    def loss(params, x, y, key):
        # The check before training sees two rows; a worker's batch has more.
        if len(x) > ROWS:
            raise RuntimeError("made-up failure")
        return model.loss(params, x, y, key)

    failing = Model(model.init, loss, model.predict, task="binary")
    with pytest.raises(RuntimeError, match=r"\Amade-up failure") as caught:
        train((data, failing), seed=[0, 1, 2], on_chunk=heard.append)
    assert "made-up failure" not in str(caught.value.__context__)
    assert heard == []
    assert workers() == []
    assert len(train(small)) == 1
