"""Paired differences on made-up results, with intervals computed by hand."""

import math

import pytest

from fairfl.comparison.differences import differences
from made_up_results import experiment, result


def method(data, averages, variance=500.0):
    members = [
        experiment(data, {"x": 0.0}, seed, test=(average, variance))
        for seed, average in enumerate(averages)
    ]
    return result(data, members)


def of_average(data, mine, plain, comparisons=1):
    found = differences("mine", method(data, mine), method(data, plain), comparisons)
    return found[0]


def test_the_interval_is_students_of_the_pairs(data):
    # Differences 1, 2, 3: mean 2, deviation 1, and t = 4.303 for two degrees of freedom.
    found = of_average(data, [71.0, 82.0, 93.0], [70.0, 80.0, 90.0])
    assert (found.metric, found.difference, found.deviation) == ("average", 2.0, 1.0)
    assert found.low == pytest.approx(2 - 4.302653 / math.sqrt(3))
    assert found.high == pytest.approx(2 + 4.302653 / math.sqrt(3))
    assert not found.real


def test_a_difference_is_real_when_its_interval_leaves_out_zero(data):
    # Differences 5, 6, 7: 6 -+ 2.484.
    found = of_average(data, [75.0, 86.0, 97.0], [70.0, 80.0, 90.0])
    assert found.real
    assert of_average(data, [65.0, 74.0, 83.0], [70.0, 80.0, 90.0]).real


def test_pairing_takes_the_luck_of_the_seeds_out(data):
    """Side by side the means of 60, 70, 80 and 61, 71.1, 80.9 could not be told apart."""
    assert of_average(data, [61.0, 71.1, 80.9], [60.0, 70.0, 80.0]).real


def test_more_comparisons_ask_for_more(data):
    # 6 -+ t / sqrt(3): t at 97.5 % is 6.2, at 99.5 % 14.1.
    mine, plain = [75.0, 86.0, 97.0], [70.0, 80.0, 90.0]
    few, many = (of_average(data, mine, plain, comparisons) for comparisons in (2, 10))
    assert (few.real, few.sure) == (True, True)
    assert (many.real, many.sure) == (True, False)


def test_where_the_seeds_changed_nothing_no_difference_is_called_real(data):
    found = of_average(data, [75.0, 75.0], [70.0, 70.0])
    assert (found.difference, found.real, found.sure) == (5.0, False, False)


def test_one_seed_has_a_difference_but_no_interval(data):
    found = of_average(data, [75.0], [70.0])
    assert (found.difference, found.real) == (5.0, False)
    assert math.isnan(found.low)


def test_other_seeds_make_no_pairs(data):
    with pytest.raises(ValueError, match="mine has other seeds than the baseline"):
        of_average(data, [75.0, 76.0], [70.0])
