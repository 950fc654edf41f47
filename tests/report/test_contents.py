"""What a report says, checked against numbers made by hand."""

import csv
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

import fairfl
from fairfl.choice import choose_q
from fairfl.metrics import interval
from fairfl.report import charts, points
from fairfl.report.contents import page, together
from fairfl.report.entries import Entry, entries
from fairfl.report.folders import kept
from fairfl.report.page import Page, Section, figures, html, sheets
from fairfl.report.sheets import Column, Rounded, Sheet, as_csv, as_latex, as_markdown
from fairfl.report.writing import write, write_all
from fairfl.runs import folder, load_run


def text_of(found):
    """The words of a page, without scripts and tags."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", html(found), flags=re.DOTALL)
    plain = unescape(re.sub(r"<[^>]+>", " ", body)).replace("\u00a0", " ")
    return " ".join(plain.split())


@pytest.fixture(scope="module")
def run(swept):
    return kept(swept)


# What it says -------------------------------------------------------------------------------------


def test_a_sweep_is_answered_in_order(run):
    assert [section.title for section in page(run).sections] == [
        "How unfair is the plain model?",
        "Which q is recommended, and what does it cost?",
        "Who gains and who loses?",
        "How are the accuracies spread?",
        "What does evenness cost?",
        "How did training go?",
        "Fairness metrics",
        "How to reproduce it",
    ]


def test_the_headline_has_the_plain_models_numbers(run):
    found = run.result.fairness("test")
    plain = found["q"] == 0
    worst, best = (found[name][plain].mean() for name in ("worst10", "best10"))
    begin = f"The plain model serves the worst tenth of its clients at {worst:.1f} % and the best"
    assert page(run).headline.startswith(f"{begin} at {best:.1f} %.")


def test_the_recommendation_is_the_choice_that_was_made(run):
    assert f"Recommended: {choose_q(run.result).reason}" in text_of(page(run))


def test_it_says_how_to_get_it_again(run, swept):
    said = text_of(page(run))
    assert run.configuration["command"] in said
    assert run.configuration["command"].startswith("fairfl sweep synthetic --q 0,1")
    for fact in (run.result.data.fingerprint, "by-size, 5 clients a round", "seeds 0, 1"):
        assert fact in said
    assert f"jax {run.configuration['versions']['jax']}" in said


def test_the_page_is_the_same_bytes_again(run, swept):
    first = (swept / "report.html").read_bytes()
    assert write(swept).read_bytes() == first


def test_how_a_table_was_read_is_told(adult):
    found = page(kept(adult))
    assert "client column 'occupation'" in text_of(found)
    clients = next(sheet for sheet in sheets(found) if sheet.name == "clients")
    assert "Exec-managerial" in [row[0] for row in clients.rows]


def test_names_that_are_code_stay_text(hostile):
    text = (hostile / "report.html").read_text("utf-8")
    assert "<script>alert(1)" not in text
    assert "<img src=x" not in text
    assert "&lt;img src=x" in text or "\\u003cimg src=x" in text


def one_kind(tmp_path, data, algorithm, model=None, **options):
    model = model or fairfl.models.softmax_regression(data)
    result = fairfl.train(data, model, algorithm, **{"rounds": 2, "cohort": 1, **options})
    return kept(folder.write(result, tmp_path / "run"))


def made(clients, rows=30):
    draw = np.random.default_rng(0)
    return {
        f"c{k}": (draw.normal(size=(rows, 3)), draw.integers(0, 2, rows)) for k in range(clients)
    }


def test_a_single_run_has_a_report(tmp_path):
    found = one_kind(tmp_path, fairfl.from_arrays(made(4)), fairfl.fedavg())
    assert [section.title for section in page(found).sections] == [
        "How evenly are clients served?",
        "Client by client",
        "How are the accuracies spread?",
        "How did training go?",
        "Fairness metrics",
        "How to reproduce it",
    ]
    assert page(found).headline.startswith("fedavg serves its worst client at")
    assert "Trained from Python" in text_of(page(found))


def test_one_client_has_nobody_to_be_unfair_to(tmp_path):
    found = one_kind(tmp_path, fairfl.from_arrays(made(1)), fairfl.q_fedavg(q=[0, 1]))
    assert page(found).headline.startswith("The plain model serves its one client at")
    assert "There is one client" in text_of(page(found))


def test_a_regression_speaks_of_losses_and_what_stopped_is_told(tmp_path):
    draw = np.random.default_rng(0)
    rows = {f"c{k}": (draw.normal(size=(20, 2)), draw.normal(size=20)) for k in range(4)}
    data = fairfl.from_arrays(rows)
    family = fairfl.q_fedavg(q=[0, 1], learning_rate=[0.01, 1e30])
    model = fairfl.models.mlp(data, hidden=(2,))
    found = page(one_kind(tmp_path, data, family, model))
    said = text_of(found)
    assert "at a loss of" in found.headline
    assert "How are the losses spread?" in said
    assert "stopped after" in said
    assert "nan" not in said.lower().split()
    for figure in figures(found):
        assert figure.chart.to_dict()["height"] > 0


def test_data_without_a_test_split_are_shown_on_what_there_is(tmp_path):
    found = one_kind(tmp_path, fairfl.from_arrays(made(3), split=None), fairfl.fedavg())
    assert "On train data" in text_of(page(found))


def test_runs_stand_side_by_side(run, hostile):
    other = kept(hostile)
    found = together([run, other, run._replace(name="again")])
    said = text_of(found)
    assert "synthetic: Fairness metrics" in said
    assert "How to reproduce again" in said
    metrics = next(sheet for sheet in sheets(found) if sheet.name == "metrics")
    assert [row[0] for row in metrics.rows] == [
        "synthetic: q = 0",
        "synthetic: q = 1",
        "again: q = 0",
        "again: q = 1",
    ]


# The numbers behind the charts --------------------------------------------------------------------


def known(result, accuracies):
    """Entries whose test accuracies are these: one list per place."""
    members = []
    for member, accuracy in zip(result.members, accuracies, strict=True):
        test = member.final["test"]._replace(
            accuracy=np.array(accuracy, float), size=np.array([10] * len(accuracy))
        )
        last = max(member.evaluations)
        evaluations = {**member.evaluations, last: {**member.final, "test": test}}
        members.append(replace(member, evaluations=evaluations))
    return entries(replace(result, members=members))


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    data = fairfl.from_arrays(made(4))
    model = fairfl.models.softmax_regression(data)
    result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=1, cohort=2)
    return known(result, [[40, 80, 100, 60], [50, 80, 90, 60.01]])


def test_clients_are_paired_and_called_by_what_happens_to_them(two):
    rows = points.pairs(*two, "test")
    assert [row["gain"] for row in rows] == pytest.approx([10, 0, -10, 0.01])
    assert [row["change"] for row in rows] == ["gains", "same", "loses", "same"]
    assert [row["client"] for row in points.worst(rows, True, 2)] == ["c0", "c3"]


def test_the_curve_goes_from_the_worst_served_to_the_best(two):
    rows = points.quantiles(two[0], "test")
    assert [row["value"] for row in rows] == [40, 60, 80, 100]
    assert [row["group"] for row in rows] == ["worst tenth", "others", "others", "others"]


def test_the_distribution_counts_clients_in_fives(two):
    rows = [row for row in points.histogram(two, "test") if row["model"] == "q = 0"]
    counted = {row["value"]: row["clients"] for row in rows if row["clients"]}
    assert counted == {40.0: 1, 60.0: 1, 80.0: 1, 95.0: 1}


def test_the_effective_step_leaves_out_rounds_after_the_end(two):
    entry = two[0]
    trace = {"alive": np.array([True, False]), "effective_step": np.array([0.5, 99.0])}
    member = replace(entry.members[0], trace=trace)
    result = replace(entry.result, members=[member])
    rows = points.steps([Entry("q = 0", result, [0], entry.hyper)])
    assert rows == [{"model": "q = 0", "round": 1, "value": 0.5}]


def test_names_of_near_points_do_not_cover_each_other():
    point = {"average_low": 0.0, "average_high": 10.0, "variance_low": 0.0, "variance_high": 10.0}
    near = [
        {**point, "model": name, "average": 5.0, "variance": v}
        for name, v in zip("ab", (5, 5.1), strict=True)
    ]
    sides = [row["side"] for row in points._sided(near)]
    assert len(set(sides)) == 2


# Files --------------------------------------------------------------------------------------------


def test_every_chart_is_a_picture_and_every_table_a_text(swept, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="pictures are opened by pillow")
    report, *pieces = write_all([swept], tmp_path / "out")
    assert report.read_bytes() == (swept / "report.html").read_bytes()
    assert {piece.suffix for piece in pieces} == {".png", ".svg", ".csv", ".md", ".tex"}
    pictures = [piece for piece in pieces if piece.suffix == ".png"]
    assert len(pictures) == len(figures(page(kept(swept))))
    for picture in pictures:
        with image.open(picture) as drawn:
            assert drawn.width > 1200
            assert len(drawn.convert("RGB").resize((160, 80)).getcolors(1 << 16)) > 3
        assert picture.with_suffix(".svg").read_text("utf-8").startswith("<svg")


def test_a_tables_csv_has_every_digit_and_the_interval(swept, tmp_path):
    write_all([swept], tmp_path)
    with open(tmp_path / "tables" / "metrics.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    found = load_run(swept).fairness("test")["worst10"][[0, 2]]
    expected = interval(found)
    assert float(rows[0]["worst 10 %"]) == expected.mean
    assert float(rows[0]["worst 10 % high"]) == expected.high


def test_signs_that_mean_something_are_escaped_in_every_form():
    sheet = Sheet(
        "t", "T", [Column("a|b"), Column("5 %", ".1f")], [["$x_1$|", Rounded(-0.5, ".1f")]]
    )
    assert as_markdown(sheet).splitlines()[2] == "| $x_1$\\| | −0.5 |"
    assert r"\$x\_1\$| & $-$0.5 \\" in as_latex(sheet)
    assert as_csv(sheet) == "a|b,5 %\n$x_1$|,-0.5\n"


def test_a_page_without_charts_carries_no_library():
    text = html(Page("t", "h", [], [Section("s", ["p"])]))
    assert len(text) < 30_000


def test_many_clients_are_counted_in_cells(many):
    several = entries(load_run(many))
    drawn = charts.before_after(*several, "test").to_dict()
    assert [layer["mark"]["type"] for layer in drawn["layer"]] == ["line", "rect"]
    rows = points.pairs(*several, "test")
    assert sum(cell["clients"] for cell in points.counted_pairs(rows)) == len(rows) > charts.MANY
