"""A reproduction from end to end, on a few rounds: what is printed, kept and gone on with."""

import json
import re
from contextlib import nullcontext

import pytest

import fairfl
from fairfl.cli import main
from fairfl.paper.asked import Asked, plan
from fairfl.paper.found import reproduce
from fairfl.paper.recipe import Size, Training, q_of
from fairfl.paper.reproduction import run
from fairfl.paper.trainings import TRAININGS

TINY = ("--rounds", "4", "--seeds", "2")


@pytest.fixture(autouse=True)
def no_files(monkeypatch, tmp_path):
    """None of the data sets that have files are here, unless a test puts them there."""
    monkeypatch.setenv("FAIRFL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def unseen(training, plan):
    return nullcontext()


def test_published_and_ours_stand_side_by_side_in_80_columns(capsys, tmp_path):
    assert main(["reproduce", "table-11", "table-5", *TINY, "--out", "here"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    rows = re.findall(r"724 ±72 +\S+ ±\S+ +\S+ to \S+ +(matches|differs)", shown)
    assert len(rows) == 2
    assert "synthetic, after 1,000 rounds: needs 1,000 rounds, and this budget has 4" in shown
    assert "synthetic-family: 4 of 20,000 rounds and 2 of 5 seeds; all of it would take" in shown
    page = (tmp_path / "here" / "reproduction.md").read_text()
    assert "Written by `fairfl reproduce table-11 table-5 --budget quick --seeds 2" in page
    assert "| q=0 | variance | 724 ±72 |" in page
    assert "## How it was trained" in page
    html = (tmp_path / "here" / "report.html").read_text()
    assert "724 ±72" in html
    assert "fairfl reproduce table-11 table-5 --budget quick --seeds 2" in html
    assert html.count('class="chart"') == 0


def test_curves_and_distributions_are_charts_of_the_page(tmp_path):
    assert main(["reproduce", "figure-8", "figure-2", *TINY, "--json", "--out", "here"]) == 0
    html = (tmp_path / "here" / "report.html").read_text()
    assert html.count('class="chart"') == 2
    assert "synthetic, test data: q=1 is" in html
    assert "vehicle: not run, the data set" in html


def test_a_data_set_that_is_not_here_is_a_sentence_and_the_others_go_on(capsys):
    assert main(["reproduce", "table-7", *TINY, "--json", "--out", "here"]) == 0
    panels = json.loads(capsys.readouterr().out)["reproduced"][0]["panels"]
    missing = {panel["dataset"]: panel["missing"] for panel in panels}
    assert missing["synthetic"] is None
    assert missing["vehicle"].startswith("the data set 'vehicle' is not here")


def test_our_numbers_are_those_of_the_run(tmp_path):
    asked = Asked(rounds=4, seeds=2)
    found = reproduce(["table-11"], asked, tmp_path / "here", resume=False, watch=unseen)
    result = fairfl.load_run(tmp_path / "here" / "synthetic-family").fairness("test")
    cells = found.reproduced[0].panels[0].cells
    ours = {(c.published.objective, c.published.metric): c.ours.mean for c in cells}
    for q in (0, 0.1, 1, 2, 5):
        for metric in ("average", "worst10", "kl"):
            mean = result[metric][result["q"] == q].mean()
            assert ours[f"q={q:g}", metric] == pytest.approx(mean)
    assert list(fairfl.load_run(tmp_path / "here" / "synthetic-family").settings["seeds"]) == [1, 2]


def test_a_finished_training_is_read_and_not_trained_again(monkeypatch, tmp_path):
    training, asked = TRAININGS["synthetic-uniform"], Asked(rounds=3, seeds=1)
    first = run(training, tmp_path, asked, resume=True, watch=unseen)

    def trained_again(*_, **__):
        raise AssertionError("it was finished")

    monkeypatch.setattr("fairfl.runs.training.simulate", trained_again)
    again = run(training, tmp_path, asked, resume=True, watch=unseen)
    assert (
        again.result.fairness()["average"].tolist() == first.result.fairness()["average"].tolist()
    )


def test_an_interrupted_reproduction_goes_on(monkeypatch, capsys, tmp_path):
    """The second training is interrupted; going on trains it, and reads the first."""
    words = ["reproduce", "table-9", *TINY, "--out", "here"]
    trained = []

    def interrupted(training, *rest, **named):
        if training.name == "synthetic-uniform":
            raise KeyboardInterrupt
        return run(training, *rest, **named)

    monkeypatch.setattr("fairfl.paper.found.run", interrupted)
    assert main(words) == 130
    assert "go on with: fairfl reproduce table-9" in capsys.readouterr().err

    def counted(training, *rest, **named):
        trained.append((training.name, (tmp_path / "here" / training.name).exists()))
        return run(training, *rest, **named)

    monkeypatch.setattr("fairfl.paper.found.run", counted)
    assert main([*words, "--resume"]) == 0
    assert trained[:2] == [("synthetic-family", True), ("synthetic-uniform", False)]


def test_a_folder_in_use_is_refused_without_resume(capsys, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine.txt").write_text("mine")
    assert main(["reproduce", "table-11", *TINY, "--out", "here"]) == 2
    assert "exists; add --resume" in capsys.readouterr().err


def test_an_unknown_budget_is_a_sentence(capsys):
    assert main(["reproduce", "table-11", "--budget", "all"]) == 2
    assert "neither quick nor paper" in capsys.readouterr().err


def test_the_reference_has_its_words_and_one_round_more():
    training = Training(
        "made-up", "synthetic:clients=20", "q-fedsgd:q=0,1:sampler=everyone", Size(7), Size(7),
        words={"weights": "size"}, reference={"weights": "equal"},
    )  # fmt: skip
    ours, theirs = (plan(training, training.data, Asked(as_reference=as_it)) for as_it in (0, 1))
    assert (ours.algorithm.weights, ours.rounds) == ("size", 7)
    assert (theirs.algorithm.weights, theirs.rounds) == ("equal", 8)


@pytest.mark.parametrize("name", sorted(TRAININGS))
def test_where_all_clients_take_part_in_a_published_split_the_first_model_is_drawn(name):
    training = TRAININGS[name]
    drawn = training.words.get("model") == "softmax-glorot"
    assert drawn == (training.data in ("adult", "fashion-mnist-afl"))


def test_a_stand_in_says_so_everywhere(capsys, tmp_path, monkeypatch):
    """The paper's data set is not here, and another one is."""
    made_up = Training(
        "vehicle-family", "vehicle", "q-fedavg:q=0,5", Size(20), Size(2), instead="synthetic"
    )
    monkeypatch.setitem(TRAININGS, "vehicle-family", made_up)
    for name in ("table-4", "table-7", "figure-2"):
        assert main(["reproduce", name, *TINY, "--out", name]) == 0
        said = "On synthetic, because the files of vehicle are not here."
        assert said in capsys.readouterr().out
        assert said in (tmp_path / name / "reproduction.md").read_text()


def test_the_first_row_of_a_panel_is_what_the_others_are_compared_with(tmp_path):
    found = reproduce(["table-11"], Asked(rounds=2, seeds=1), tmp_path, resume=False, watch=unseen)
    cells = found.reproduced[0].panels[0].cells
    assert all(c.verdict != "same direction" for c in cells if c.published.objective == "q=0")
    assert q_of("synthetic-family", 0) == found.reproduced[0].recipe.panels[0].rows["q=0"]
