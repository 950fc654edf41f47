"""Metrics against numbers worked out by hand, against scipy, and against their own algebra."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fairfl.metrics import (
    Fairness,
    FairnessWarning,
    Interval,
    fairness,
    fairness_of_losses,
    interval,
    paired_interval,
)

nan = math.nan
# An accuracy is right / total, so it is 0 or not far below a percent; losses are unbounded.
accuracies = st.lists(st.just(0.0) | st.floats(0.01, 100), min_size=1, max_size=60)
losses = st.lists(st.floats(0, allow_infinity=False, allow_nan=False), min_size=1, max_size=60)
quick = settings(deadline=None, database=None, max_examples=200)


def close(expected, rel=1e-12, abs=1e-12):
    return pytest.approx(expected, rel=rel, abs=abs)


# --- numbers worked out by hand -------------------------------------------------------------------


@pytest.fixture
def four():
    """Accuracies 20, 40, 60, 80 of clients with 1, 2, 3, 4 points: mu = 50, p = .1, .2, .3, .4."""
    return fairness([20, 40, 60, 80], size=[1, 2, 3, 4])


def test_fields_keep_the_order_other_tools_read():
    assert Fairness._fields == (
        *("average", "average_clients", "worst10", "best10", "variance", "angle"),
        *("kl", "entropy", "jain", "gini", "worst", "best"),
    )
    assert Interval._fields == ("mean", "low", "high", "deviation", "count")


def test_average_is_over_data_points(four):
    assert four.average == close(60)  # (20 + 80 + 180 + 320) / 10


def test_average_clients_is_over_clients(four):
    assert four.average_clients == close(50)  # 200 / 4


def test_average_without_sizes_is_over_clients():
    assert fairness([20, 40, 60, 80]).average == close(50)


def test_a_client_without_data_counts_among_clients_but_not_among_data_points():
    found = fairness([20, 80], size=[0, 5])
    assert (found.average, found.average_clients, found.worst) == (80, 50, 20)


def test_variance_is_the_population_variance_of_percent(four):
    assert four.variance == close(500)  # (900 + 100 + 100 + 900) / 4


def test_angle_is_in_degrees_from_the_all_ones_vector(four):
    # cos = 200 / (sqrt(4) sqrt(400 + 1600 + 3600 + 6400)) = 200 / (2 sqrt(12000)) = .912871
    assert four.angle == close(24.0948425521107, rel=1e-13)


def test_kl_is_in_nats_from_uniform(four):
    # .1 ln .4 + .2 ln .8 + .3 ln 1.2 + .4 ln 1.6
    # = -.0916290732 - .0446287103 + .0546964670 + .1880014517
    assert four.kl == close(0.1064401353, abs=1e-9)


def test_entropy_is_in_nats_of_normalised_accuracies(four):
    # .1 ln 10 + .2 ln 5 + .3 ln 3.3333 + .4 ln 2.5
    # = .2302585093 + .3218875825 + .3611918413 + .3665162927
    assert four.entropy == close(1.2798542258, abs=1e-9)


def test_jain_is_squared_sum_over_m_times_sum_of_squares(four):
    assert four.jain == close(5 / 6)  # 200^2 / (4 * 12000)


def test_gini_is_the_mean_absolute_difference_over_twice_the_mean(four):
    # pairs differ by 20 (three), 40 (two), 60 (one), each met twice: 2 * 200 / (2 * 16 * 50)
    assert four.gini == close(0.25)


def test_worst_and_best_are_single_clients(four):
    assert (four.worst, four.best) == (20, 80)


def test_everything_for_one_client_sits_at_the_uneven_extreme():
    # Two clients, one served: 45 degrees, kl = ln 2, jain = 1 / m, gini = 1 - 1 / m.
    found = fairness([100, 0])
    assert found[4:] == close((2500, 45, math.log(2), 0, 0.5, 0.5, 0, 100))


@pytest.mark.parametrize(
    ("count", "worst10", "best10"),
    [
        (9, 5, 45),  # floor(.9) = 0, so at least one client: 5 and 45
        (10, 5, 50),
        (19, 5, 95),  # floor(1.9) = 1
        (20, 7.5, 97.5),  # two clients: (5 + 10) / 2 and (95 + 100) / 2
    ],
)
def test_worst10_and_best10_take_the_tenth_rounded_down_but_at_least_one(count, worst10, best10):
    found = fairness([5 * k for k in range(1, count + 1)])
    assert (found.worst10, found.best10) == (worst10, best10)


def test_losses_call_the_largest_worst():
    # 20 losses 1 .. 20 with all data on the first: two clients in a tenth.
    found = fairness_of_losses(list(range(1, 21)), size=[3] + [0] * 19)
    assert (found.worst, found.worst10, found.best10, found.best) == (20, 19.5, 1.5, 1)
    assert (found.average, found.average_clients) == (1, 10.5)
    assert found.variance == close(33.25)  # (20^2 - 1) / 12


def test_losses_may_exceed_a_hundred():
    assert fairness_of_losses([100, 300]).average == 200


# --- the algebra of the metrics -------------------------------------------------------------------


@quick
@given(
    st.lists(st.tuples(st.floats(0, 100), st.integers(1, 50)), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
def test_the_order_of_clients_changes_no_bit(clients, random):
    shuffled = random.sample(clients, len(clients))
    assert fairness(*map(list, zip(*shuffled, strict=True))) == fairness(
        *map(list, zip(*clients, strict=True))
    )


@quick
@given(accuracies, st.floats(0.01, 1))
def test_scaling_every_accuracy_scales_variance_by_its_square_and_leaves_evenness(values, factor):
    before, after = fairness(values), fairness([factor * value for value in values])
    assert after.variance == close(factor**2 * before.variance, rel=1e-9, abs=1e-20)
    for metric in ("angle", "kl", "entropy", "jain", "gini"):
        assert getattr(after, metric) == close(getattr(before, metric), rel=1e-9)
    for metric in ("average", "average_clients", "worst10", "best10", "worst", "best"):
        assert getattr(after, metric) == close(factor * getattr(before, metric))


@quick
@given(accuracies)
def test_entropy_and_kl_add_up_to_log_m(values):
    found = fairness(values)
    assert found.entropy + found.kl == close(math.log(len(values)))


@quick
@given(accuracies)
def test_jain_is_the_squared_cosine_of_the_angle(values):
    found = fairness(values)
    assert found.jain == close(math.cos(math.radians(found.angle)) ** 2)


@quick
@given(accuracies)
def test_metrics_stay_within_their_ranges(values):
    found, count = fairness(values), len(values)
    assert 0 <= found.angle <= 90
    assert 0 <= found.kl <= math.log(count) + 1e-12
    assert 0 <= found.entropy <= math.log(count)
    assert 1 / count - 1e-12 <= found.jain <= 1
    assert 0 <= found.gini <= 1 - 1 / count + 1e-12


@quick
@given(accuracies)
def test_worst_to_best_is_in_order(values):
    found = fairness(values)
    assert found.worst <= found.worst10 <= found.best10 <= found.best
    assert found.worst10 <= found.average_clients * (1 + 1e-15)
    assert found.average_clients <= found.best10 * (1 + 1e-15)


@quick
@given(losses)
def test_any_finite_losses_are_measured_in_order_and_without_nan(values):
    found = fairness_of_losses(values)
    assert found.best <= found.best10 <= found.worst10 <= found.worst
    assert not any(map(math.isnan, found))


@quick
@given(accuracies)
def test_evenness_agrees_with_the_textbook_formulas(values):
    a = np.array(values)
    if a.sum() == 0:
        return
    found, m = fairness(values), a.size
    assert found.entropy == close(stats.entropy(a), abs=1e-9)
    assert found.kl == close(stats.entropy(a, np.ones(m)), abs=1e-9)
    assert found.jain == close(a.sum() ** 2 / (m * (a**2).sum()))
    assert found.gini == close(np.abs(a[:, None] - a).sum() / (2 * m * a.sum()))
    assert found.variance == close(a.var(), rel=1e-9, abs=1e-9)


# --- edges ----------------------------------------------------------------------------------------


def test_one_client_is_perfectly_even():
    assert fairness([70], size=[3]) == (70, 70, 70, 70, 0, 0, 0, 0, 1, 0, 70, 70)


@pytest.mark.parametrize("level", [0, 0.1, 33.3, 100])
def test_equal_accuracies_are_exactly_even(level):
    found = fairness([level] * 30, size=[0.1] * 30)
    assert found == (*[level] * 4, 0, 0, 0, math.log(30), 1, 0, level, level)


def test_nearly_equal_accuracies_keep_their_digits():
    # Ratios to the mean are 1 + k 1e-8 with k = -5, -4, 0, 1, 2, 6: squares sum to 82.
    # tan(angle)^2 = 82 / 6 1e-16 and kl is half of it; differences of pairs sum to 74, each met
    # twice: gini = 2 * 74 / (2 * 36) 1e-8. By arccos, or by log m - entropy, all digits are lost.
    found = fairness([40 * (1 + k * 1e-8) for k in (6, 0, 1, -5, 2, -4)])
    assert found.angle == close(math.degrees(math.sqrt(82 / 6) * 1e-8), rel=1e-6, abs=0)
    assert found.kl == close(82 / 12 * 1e-16, rel=1e-6, abs=0)
    assert found.gini == close(74 / 36 * 1e-8, rel=1e-6, abs=0)


@pytest.mark.parametrize("unit", [1e-300, 1e-20, 1e-3])
def test_tiny_accuracies_are_as_even_as_large_ones(unit):
    assert fairness([unit, 3 * unit])[5:10] == close(fairness([25, 75])[5:10])
    assert fairness([unit, 3 * unit]).average == close(2 * unit, abs=0)


def test_huge_losses_do_not_overflow_their_mean():
    found = fairness_of_losses([1e308, 1.5e308])
    assert found.average_clients == close(1.25e308)
    assert found.angle == close(fairness([10, 15]).angle)
    assert found.variance == math.inf


def test_rounding_just_outside_0_to_100_is_clipped():
    found = fairness([-1e-7, 100 + 1e-7, float(np.nextafter(np.float32(100), np.float32(200)))])
    assert (found.worst, found.best) == (0, 100)


def test_lists_and_arrays_of_any_number_type_give_the_same():
    expected = fairness([25.0, 50.0, 75.0], size=[1.0, 2.0, 3.0])
    for kind in (np.int32, np.float32, np.float64):
        assert fairness(np.array([25, 50, 75], kind), size=np.array([1, 2, 3], kind)) == expected


def test_every_number_is_a_plain_float():
    assert {type(number) for number in fairness([1, 2])} == {float}
    assert {type(number) for number in interval([1, 2])[:4]} == {float}


# --- NaN is never averaged away -------------------------------------------------------------------


def test_nan_accuracy_makes_every_metric_nan_and_names_the_client():
    with pytest.warns(FairnessWarning, match="^accuracy is NaN for client ward, so every"):
        found = fairness([50, nan], client=["lab", "ward"])
    assert len(found) == 12
    assert all(map(math.isnan, found))


def test_nan_warning_names_five_clients_and_counts_the_rest():
    with pytest.warns(FairnessWarning, match=r"client 1, 2, 3, 4, 5 and 2 more, so"):
        fairness([50] + [nan] * 7)


def test_nan_warning_names_exactly_five_clients_without_a_rest():
    with pytest.warns(FairnessWarning, match=r"client 0, 1, 2, 3, 4, so"):
        fairness([nan] * 5)


def test_nan_loss_makes_every_metric_nan_and_warns_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fairness_of_losses([nan, 1], client=np.array(["a", "b"]))
    assert all(map(math.isnan, found))
    assert [str(w.message).split(",")[0] for w in caught] == ["loss is NaN for client a"]


# --- bad input is refused with a sentence ---------------------------------------------------------


@pytest.mark.parametrize("measure", [fairness, fairness_of_losses])
@pytest.mark.parametrize(
    ("values", "more", "sentence"),
    [
        ([], {}, "is empty: give the number of at least one client"),
        ([[1, 2]], {}, r"has shape \(1, 2\): give one number per client"),
        (np.array(5.0), {}, r"has shape \(\): give one number per client"),
        (["high"], {}, r"is not a list of numbers \(.*high.*\): give one number per client"),
        ([1, 2], {"size": [1]}, "size has 1 entries for 2 clients: give one size"),
        ([1, 2], {"client": ["a"]}, "client has 1 names for 2 clients: give one name"),
        ([1, 2], {"size": [1, -3], "client": ["a", "b"]}, r"size of client b is -3\.0: give its"),
        ([1, 2], {"size": [1, nan]}, "size of client 1 is nan: give its number of data points"),
        ([1, 2], {"size": [1, math.inf]}, "size of client 1 is inf: give its number"),
        ([1, 2], {"size": [0, 0]}, "size is 0 for all 2 clients: .* or leave size out"),
        ([1, 2], {"size": [[1, 2]]}, r"size has shape \(1, 2\)"),
        ([3, -1], {"client": ["a", "b"]}, r"of client b is -1\.0: give"),
        ([math.inf], {}, "of client 0 is inf: give"),
    ],
)
def test_bad_input_is_refused(measure, values, more, sentence):
    with pytest.raises(ValueError, match=sentence):
        measure(values, **more)


def test_accuracy_above_a_hundred_is_refused():
    with pytest.raises(ValueError, match=r"^accuracy of client 1 is 100\.01: .* from 0 to 100\.$"):
        fairness([50, 100.01, nan])


def test_negative_loss_is_refused_however_small():
    with pytest.raises(ValueError, match=r"^loss of client 0 is -1e-09: give finite losses, zero"):
        fairness_of_losses([-1e-9])


# --- intervals over seeds -------------------------------------------------------------------------


def test_interval_by_hand():
    # mean 2.5, deviation sqrt(5 / 3) = 1.2909944, t(.975, 3) = 3.1824463 (any table)
    # half = 3.1824463 * 1.2909944 / 2 = 2.0542603
    found = interval([4, 1, 3, 2])
    assert found == close((2.5, 0.4457397, 4.5542603, 1.2909944, 4), abs=1e-6)


def test_interval_of_two_seeds_follows_the_cauchy_distribution():
    # One degree of freedom: t = tan(pi confidence / 2); deviation / sqrt(2) = 1.
    assert interval([0, 2], confidence=0.5).high == close(1 + math.tan(math.pi / 4))


@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999])
def test_interval_agrees_with_scipy_for_1_to_200_degrees_of_freedom(confidence):
    for freedom in range(1, 201):
        values = np.arange(freedom + 1.0)
        scale = values.std(ddof=1) / math.sqrt(freedom + 1)
        half = stats.t.ppf((1 + confidence) / 2, freedom) * scale
        found = interval(values, confidence)
        assert (found.high - found.low) / 2 == close(half, rel=1e-9, abs=0)
        assert (found.high + found.low) / 2 == close(values.mean())


def test_interval_is_95_percent_unless_told_otherwise():
    assert interval([1, 2, 4]) == interval([1, 2, 4], confidence=0.95)
    assert paired_interval([1, 2], [1, 4]) == paired_interval([1, 2], [1, 4], confidence=0.95)


def test_one_seed_has_a_mean_but_no_interval():
    assert interval([80]) == pytest.approx((80, nan, nan, nan, 1), nan_ok=True)


def test_equal_seeds_have_an_interval_of_no_width():
    assert interval([0.1, 0.1, 0.1]) == (0.1, 0.1, 0.1, 0, 3)


@pytest.mark.parametrize("failed", [nan, math.inf, -math.inf])
def test_a_failed_seed_is_never_dropped(failed):
    assert interval([1, failed, 3]) == pytest.approx((nan, nan, nan, nan, 3), nan_ok=True)
    assert math.isnan(paired_interval([1, failed, 3], [1, failed, 4]).mean)


def test_paired_interval_is_of_the_differences_seed_by_seed():
    # a - b = 1, 2, 3 although a and b each spread by tens; t(.975, 2) / sqrt(3) = 2.4841377
    found = paired_interval([11, 52, 93], [10, 50, 90])
    assert found == close((2, -0.4841377, 4.4841377, 1, 3), abs=1e-6)


def test_paired_interval_passes_its_confidence_on():
    assert paired_interval([1, 4, 6], [0, 0, 0], 0.5) == interval([1, 4, 6], 0.5)


def test_paired_interval_refuses_unpaired_seeds():
    with pytest.raises(ValueError, match=r"a has 2 values but b has 1: .* same seeds"):
        paired_interval([1, 2], [1])


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, -0.5, nan])
def test_confidence_outside_0_to_1_is_refused(confidence):
    with pytest.raises(ValueError, match=f"confidence is {confidence}: .* such as 0.95"):
        interval([1, 2], confidence)


def test_interval_of_nothing_is_refused():
    with pytest.raises(ValueError, match="values is empty: give the number of at least one seed"):
        interval([])
