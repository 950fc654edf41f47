"""The page as a reader opens it: drawn, offline, searched and sorted, on a phone and at night."""

import contextlib

import pytest

from fairfl.report.colours import DARK, LIGHT

PHONE, DESK = 390, 1280
DRAWN = """() => {
  const charts = [...document.querySelectorAll('.chart')];
  return charts.every((chart) => chart.dataset.drawn);
}"""
INK = """() => [...document.querySelectorAll('.chart svg')].map((svg) => {
  const marks = svg.querySelectorAll('.mark-rect path, .mark-symbol path, .mark-line path, ' +
    '.mark-area path, .mark-group .mark-rule line');
  const box = svg.getBoundingClientRect();
  return marks.length > 0 && box.width > 200 && box.height > 40;
})"""


@contextlib.contextmanager
def opened(browser, folder, width=DESK, scheme="light"):
    """The report in a window; anything on the console or any request fails the test."""
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    address = (folder / "report.html").as_uri()
    page.goto(address)
    page.wait_for_function(DRAWN)
    yield page
    context.close()
    assert said == []
    assert [url for url in asked if url != address and not url.startswith("data:")] == []


@pytest.fixture(params=["swept", "adult", "hostile"])
def report(request):
    return request.getfixturevalue(request.param)


def column(page, nth):
    return page.locator(f".listing tbody tr td:nth-child({nth})").all_inner_texts()


def has_ink(page, colour):
    drawn = "[...document.querySelectorAll('.chart svg')].map((svg) => svg.outerHTML).join('')"
    return colour in page.evaluate(drawn)


@pytest.mark.parametrize(("width", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_every_chart_is_drawn_and_nothing_leaves_the_page(browser, report, width, scheme):
    with opened(browser, report, width, scheme) as page:
        charts = page.locator(".chart").count()
        assert charts >= 6
        assert page.evaluate(INK) == [True] * charts
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_charts_and_page_follow_day_and_night(browser, swept):
    with opened(browser, swept) as page:
        paper = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(paper) == "rgb(255, 255, 255)"
        assert has_ink(page, LIGHT.muted)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function("document.querySelectorAll('[data-drawn=light]').length === 0")
        assert page.evaluate(paper) == "rgb(20, 23, 27)"
        assert has_ink(page, DARK.muted)
        assert not has_ink(page, LIGHT.muted)


def test_the_table_searches(browser, swept):
    with opened(browser, swept) as page:
        assert len(column(page, 1)) == 10
        page.get_by_role("searchbox").fill("F_00007")
        assert column(page, 1) == ["f_00007"]
        assert page.get_by_role("status").inner_text() == "1 of 40"


def test_the_table_opens_with_the_worst_served_and_sorts_by_number(browser, swept):
    with opened(browser, swept) as page:
        before = [float(text) for text in column(page, 3)]
        assert before == sorted(before)
        page.get_by_role("button", name="rows").click()
        rows = [int(text.replace(",", "")) for text in column(page, 2)]
        assert rows == sorted(rows, reverse=True)
        assert max(rows) > min(rows)
        page.get_by_role("button", name="rows").click()
        head = page.locator(".listing th").nth(1)
        assert head.get_attribute("aria-sort") == "ascending"


def test_the_table_turns_its_pages(browser, swept):
    with opened(browser, swept) as page:
        first = column(page, 1)
        page.get_by_role("button", name="Next").click()
        assert not set(column(page, 1)) & set(first)
        page.get_by_role("button", name="Previous").click()
        assert column(page, 1) == first


def test_names_that_are_code_are_shown_as_they_are(browser, hostile):
    with opened(browser, hostile) as page:
        assert "<script>alert(1)</script>" in column(page, 1)
        assert page.locator("img").count() == 0


def test_ten_thousand_clients_are_found_at_once(browser, many):
    with opened(browser, many, PHONE) as page:
        assert page.locator(".listing tbody tr").count() == 10
        page.get_by_role("searchbox").fill("device-09876")
        assert column(page, 1) == ["device-09876"]
        assert page.locator("*").count() < 5000
    assert (many / "report.html").stat().st_size < 3e6
