"""The page of a comparison: what it shows of which method."""

import pytest

import fairfl
from fairfl.metrics import Interval
from fairfl.report import beside, writing
from fairfl.report.page import Notes, html
from fairfl.report.sheets import Sheet

HOW = {"rounds": 4, "cohort": 3, "evaluate_every": 2, "seeds": 2}


@pytest.fixture(scope="module")
def found(data, model):
    methods = {"fedavg": fairfl.fedavg(), "wild": fairfl.fedavg(learning_rate=1e30)}
    return fairfl.compare(data, model, methods, **HOW)


def sheets(page):
    return {b.name: b for s in page.sections for b in s.blocks if isinstance(b, Sheet)}


def test_every_method_has_its_metrics_and_one_that_diverged_is_marked(found):
    rows = sheets(beside.page(found))["metrics"].rows
    assert [row[0] for row in rows] == ["fedavg", "wild†"]


def test_differences_are_those_of_the_comparison(found):
    row = sheets(beside.page(found))["differences"].rows[0]
    average = row[1]
    assert isinstance(average, Interval)
    assert (row[0], average.count) == ("wild", 2)
    assert average.mean == found.differences()["difference"][0]


def test_settings_say_of_how_many(found):
    rows = sheets(beside.page(found))["settings"].rows
    assert rows[0][:3] == ["fedavg", "learning rate = 0.1", 1]


def test_notes_come_first(found):
    page = beside.page(found)
    assert isinstance(page.blocks[0], Notes)
    assert any("wild diverged" in said for said in page.blocks[0].sentences)


def test_one_method_alone_has_a_page_without_differences(data, model):
    page = beside.page(fairfl.compare(data, model, {"fedavg": fairfl.fedavg()}, **HOW))
    assert "differences" not in sheets(page)
    assert "<h1>" in html(page)


def test_the_page_of_a_folder_says_its_command(data, model, tmp_path):
    place = tmp_path / "both"
    fairfl.compare(data, model, {"fedavg": fairfl.fedavg()}, **HOW, out=place)
    assert writing.write(place) == place / "report.html"
    assert "How was each method tuned?" in (place / "report.html").read_text("utf-8")
