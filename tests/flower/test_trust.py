"""What is put aside, and what is bounded."""

import numpy as np
import pytest

import fairfl
from fairfl.flower.trust import BELIEVE_ALL, Trust, bounding, fault, oversized

MODEL = [np.zeros((2, 3), np.float32), np.zeros(3, np.float32)]


def reply(**changed):
    """A good reply, with some of its arrays replaced."""
    arrays = {"w": np.ones((2, 3), np.float32), "b": np.ones(3, np.float32)} | changed
    return [array for array in arrays.values() if array is not None]


@pytest.mark.parametrize(
    ("update", "loss", "words"),
    [
        ([], 1.0, "empty"),
        (reply(b=None), 1.0, "1 arrays but the model has 2"),
        (reply(b=np.ones(4)), 1.0, "array 2 has the shape"),
        (reply(b=np.array([1, np.nan, 1])), 1.0, "array 2 holds values that are not finite"),
        (reply(b=np.array([1, np.inf, -np.inf])), 1.0, "not finite"),
        (reply(b=np.array(["a", "b", "c"])), 1.0, "no numbers"),
        (reply(), float("nan"), "its loss is nan"),
        (reply(), float("inf"), "its loss is inf"),
        (reply(), -1.0, "its loss is -1"),
    ],
)
def test_a_reply_that_no_arithmetic_could_use_is_put_aside(update, loss, words):
    assert words in str(fault(update, loss, MODEL))


def test_what_can_be_used_is_used():
    assert fault(reply(), 0.0, MODEL) is None
    assert fault(reply(b=np.ones(3, np.int64)), 1e30, MODEL) is None
    # Its sum overflows a 32-bit number, and it is finite all the same.
    assert fault(reply(b=np.full(3, 3e38, np.float32)), 1.0, MODEL) is None
    assert fault(reply(b=np.full(3, 1e308)), 1.0, MODEL) is None


def test_an_update_far_longer_than_the_cohorts_is_oversized():
    squares = np.array([1.0, 2.0, 0.0, 1.5, 1e5])
    assert oversized(squares, Trust(update_ratio=10)).tolist() == [False] * 4 + [True]
    assert not oversized(squares, BELIEVE_ALL).any()
    assert oversized(np.array([]), Trust()).shape == (0,)


def test_bounds_stand_in_front_of_rules_that_read_losses():
    family = fairfl.q_fedavg(q=[0, 5])
    held = bounding(family, Trust(loss_spread=3, loss_growth=None))
    assert held.rule.name == "bounded q-FFL"
    assert held.hyper["spread"] == (3.0,)
    assert held.hyper["growth"][0] > 1e30
    assert held.experiments[1]["q"] == 5
    assert bounding(family, BELIEVE_ALL) is family
    assert bounding(fairfl.fedavg(), Trust()).rule.name == "mean"


@pytest.mark.parametrize(
    "wrong", [{"loss_spread": -1}, {"loss_growth": 0.5}, {"update_ratio": float("nan")}]
)
def test_a_bound_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match="or None to switch it off"):
        Trust(**wrong)
