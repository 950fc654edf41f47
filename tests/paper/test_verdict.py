"""Verdicts, with the arithmetic done by hand."""

import pytest

from fairfl.metrics import Interval, interval
from fairfl.paper.published import Published
from fairfl.paper.verdict import Change, cell, judge


def theirs(value, deviation, metric="average"):
    return Published("table-1", "synthetic", "q=1", "test", metric, value, deviation)


def ours(mean, deviation, count=5):
    return Interval(mean, mean - 1, mean + 1, deviation, count)


def test_a_number_matches_up_to_two_deviations_of_the_difference_and_half_a_digit():
    """2 sqrt(3^2 + 4^2) = 10, and .05 for the digit that the paper rounds to."""
    assert judge(theirs(80, 3), ours(90.04, 4), None) == "matches"
    assert judge(theirs(80, 3), ours(90.06, 4), None) == "differs"
    assert judge(theirs(80, 3), ours(69.96, 4), None) == "matches"
    assert judge(theirs(80, 3), ours(69.94, 4), None) == "differs"


def test_the_strict_comparison_is_of_means_over_five_runs():
    """Two standard errors are 10 / sqrt(5) = 4.47."""
    near, far = (cell(theirs(80, 3), ours(80 + gap, 4)) for gap in (4.5, 4.6))
    assert (near.strictly, far.strictly) == (True, False)
    assert far.verdict == "matches"


@pytest.mark.parametrize(
    ("metric", "value", "same", "other"),
    [("kl", 0.003, 0.0034, 0.0036), ("variance", 48, 48.4, 48.6), ("worst10", 70, 70.04, 70.06)],
)
def test_without_deviations_the_printed_digit_decides(metric, value, same, other):
    assert judge(theirs(value, 0.0, metric), interval([same]), None) == "matches"
    assert judge(theirs(value, None, metric), interval([other]), None) == "differs"


def test_a_change_of_the_same_sign_is_the_same_direction():
    far = ours(10, 0.1)
    assert judge(theirs(80, 0.1), far, Change(-5, -30)) == "same direction"
    assert judge(theirs(80, 0.1), far, Change(-5, 30)) == "differs"


def test_a_change_below_the_printed_digit_is_no_change():
    far = ours(10, 0.1)
    assert judge(theirs(80, 0.1), far, Change(0, 0.04)) == "same direction"
    assert judge(theirs(80, 0.1), far, Change(0, 0.06)) == "differs"


def test_a_failed_run_never_matches():
    assert judge(theirs(80, 3), interval([80, float("nan")]), Change(1, float("nan"))) == "differs"
