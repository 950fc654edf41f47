"""The published numbers agree with each other and with the metrics' own laws."""

import math

import pytest

from fairfl.paper import published

UNIFORMITY = [f"table-{n}" for n in (5, 6, 8, 9, 11, 12)]


def cells(table):
    return {
        (row.dataset, row.objective, row.metric): (row.value, row.deviation)
        for row in published(table)
    }


def test_tables_1_and_7_repeat_numbers_of_table_5():
    full = cells("table-5")
    for table, shared in (("table-1", 32), ("table-7", 8)):
        same = [key for key in cells(table) if key in full]
        assert len(same) == shared
        assert all(cells(table)[key] == full[key] for key in same)


def test_the_q_rows_of_table_9_are_those_of_table_5():
    full, uniform = cells("table-5"), cells("table-9")
    same = [key for key in uniform if key in full]
    assert len(same) == 24
    assert [key for key in same if uniform[key] != full[key]] == []


@pytest.mark.parametrize("table", UNIFORMITY)
def test_worst_is_below_average_and_average_below_best(table):
    found = cells(table)
    for dataset, objective in {key[:2] for key in found}:
        worst, average, best = (
            found[dataset, objective, metric][0] for metric in ("worst10", "average", "best10")
        )
        assert worst < average < best


@pytest.mark.parametrize("table", UNIFORMITY)
def test_the_variance_follows_from_the_angle_about(table):
    """variance = mean^2 tan(angle)^2 over clients; the printed average is over data points."""
    found = cells(table)
    for dataset, objective in {key[:2] for key in found}:
        average, variance, angle = (
            found[dataset, objective, metric][0] for metric in ("average", "variance", "angle")
        )
        assert variance == pytest.approx(average**2 * math.tan(math.radians(angle)) ** 2, rel=0.45)


def test_an_unknown_table_is_a_sentence():
    with pytest.raises(ValueError, match="no 'table-99' with numbers; it has table-1"):
        published("table-99")
