"""`fairfl compare`: what it prints, where it writes, and what every mistake hears."""

import json
import warnings

import pytest

from fairfl.comparison import side_by_side

# typer before 0.21 imports names that click 8.5 is about to drop.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from fairfl.cli import main

SMALL = ["compare", "synthetic", "--clients", "20", "--rounds", "3", "--cohort", "5"]
PAIR = ["--algorithms", "fedavg,q-fedavg:q=1,2", "--learning-rate", ".1", "--seeds", "2"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """In a folder of its own, as a terminal of 80 columns, and without the user's cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FAIRFL_CACHE", "0")
    monkeypatch.delenv("FAIRFL_DEBUG", raising=False)


@pytest.fixture
def fairfl_(capsys):
    """Runs a command in this process: exit code, standard output, standard error."""

    def command(*words):
        code = main([str(word) for word in words])
        return (code, *capsys.readouterr())

    return command


def unwrapped(text):
    return " ".join(text.split())


def test_it_prints_methods_differences_and_settings(fairfl_, tmp_path):
    code, out, err = fairfl_(*SMALL, *PAIR)
    assert (code, err) == (0, "")
    assert "2 methods on synthetic: softmax regression, 20 clients, 2,539 rows" in out
    assert "3 rounds of 5 clients, seeds 0 to 1, the same splits" in out
    assert "mean ± deviation of 2 seeds" in out
    assert "Difference to fedavg ± half the 95 % interval" in out
    assert "Note: Budgets differ" in unwrapped(out)
    written = "Written to runs/0001-synthetic-compare\n"
    assert out.endswith(f"{written}Open runs/0001-synthetic-compare/report.html\n")
    assert max(map(len, out.splitlines())) <= 80
    place = tmp_path / "runs" / "0001-synthetic-compare"
    assert sorted(child.name for child in place.iterdir()) == [
        "comparison.json",
        "fedavg",
        "q-fedavg-q-1-2",
        "report.html",
    ]


def test_json_is_one_object_and_nothing_else(fairfl_):
    code, out, err = fairfl_(*SMALL, *PAIR, "--json")
    found = json.loads(out)
    assert code == 0
    assert err.startswith("Written to runs/0001-synthetic-compare\n")
    assert {one["method"] for one in found["experiments"]} == {"fedavg", "q-fedavg:q=1,2"}
    assert found["comparison"]["baseline"] == "fedavg"


def test_resume_prints_the_same_again(fairfl_):
    first = fairfl_(*SMALL, *PAIR, "--out", "both")
    assert fairfl_(*SMALL, *PAIR, "--out", "both", "--resume") == first


def test_ctrl_c_says_how_to_go_on(fairfl_, monkeypatch):
    def interrupted(*_, shelf, **__):
        shelf.begin(["fedavg"], "fedavg", [])
        raise KeyboardInterrupt

    monkeypatch.setattr(side_by_side, "compared", interrupted)
    code, _, err = fairfl_(*SMALL, *PAIR, "--out", "both")
    assert code == 130
    assert "go on with: fairfl compare synthetic" in err
    assert err.endswith("--out both --resume\n")


def test_a_comparison_in_which_everything_diverges_fails(fairfl_):
    words = ["--algorithms", "fedavg,term:t=1", "--learning-rate", "1e30", "--seeds", "1"]
    code, out, err = fairfl_(*SMALL, *words)
    assert code == 2
    assert "fedavg†" in out
    assert "every method stopped early" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--algorithms", "fedvag"], "there is no algorithm 'fedvag'; did you mean 'fedavg'"),
        (["--algorithms", "afl,afl"], "two methods are called 'afl'; name each method once"),
        (["--algorithms", "fedavg:q=1"], "fedavg has no q"),
        (["--algorithms", "fedavg", "--baseline", "afl"], "'afl' is not among the methods"),
        (["--algorithms", "fedavg", "--cohort", "30"], "fedavg: cohort=30 is larger than"),
        (["--seeds", "0"], "seeds=0 must be one whole number of at least 1"),
        (["--resume"], "say with --out in which folder it is"),
        (["--q", "1"], "No such option '--q'"),
    ],
)
def test_a_mistake_is_one_sentence(fairfl_, tmp_path, words, message):
    code, out, err = fairfl_(*SMALL, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "runs").exists()
