"""The command line: what it prints, where it writes, and what every mistake hears."""

import json
import os
import select
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import fairfl
from fairfl.report import writing
from fairfl.runs import compiled, folder

# typer before 0.21 imports names that click 8.5 is about to drop.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from typer.testing import CliRunner

    from fairfl import cli
    from fairfl.cli import main

SMALL = ["synthetic", "--clients", "20", "--rounds", "3", "--cohort", "5"]
SOURCE = os.path.dirname(os.path.dirname(fairfl.__file__))


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


@pytest.fixture
def visits(tmp_path):
    draw = np.random.default_rng(0)
    rows = [
        f"{'ABCD'[k % 4]},{draw.integers(20, 80)},{'yes' if draw.random() < 0.5 else 'no'},{k % 2}"
        for k in range(80)
    ]
    file = tmp_path / "visits.csv"
    file.write_text("hospital,age,smoker,readmitted\n" + "\n".join(rows) + "\n")
    return file


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def unwrapped(text):
    return " ".join(text.split())


# What it prints -----------------------------------------------------------------------------------


def test_run_prints_one_experiment_on_every_split(fairfl_, tmp_path):
    code, out, err = fairfl_("run", *SMALL, "--q", "2")
    assert (code, err) == (0, "")
    assert "q-fedavg on synthetic: softmax regression, 20 clients, 2,539 rows" in out
    assert "sampler by-size, weights size, 3 rounds of 5 clients, seed 0" in out
    assert "q 2, learning rate 0.1" in out
    assert [line.split()[0] for line in out.splitlines() if line.startswith(" t")] == [
        "train",
        "test",
    ]
    assert out.endswith(
        "Written to runs/0001-synthetic-run\nOpen runs/0001-synthetic-run/report.html\n"
    )
    assert len(files(tmp_path / "runs" / "0001-synthetic-run")) == 10


def test_sweep_prints_the_family_and_names_the_q_to_use(fairfl_):
    code, out, err = fairfl_("sweep", *SMALL, "--q", "0,1", "--seeds", "2", "--seed", "3")
    assert (code, err) == (0, "")
    assert "seeds 3 to 4" in out
    assert "mean ± deviation of 2 seeds" in out
    assert "The plain model (q=0) has an average accuracy of" in out
    assert "Recommended: q=" in out
    assert "validation data, mean of 2 seeds" in unwrapped(out)
    assert max(map(len, out.splitlines())) <= 80


def test_sweep_trains_every_learning_rate(fairfl_):
    _, out, _ = fairfl_("sweep", *SMALL, "--q=0,1", "--learning-rate=.1,.01", "--seeds=1", "--json")
    found = [experiment["hyperparameters"] for experiment in json.loads(out)["experiments"]]
    assert [(e["q"], e["learning_rate"]) for e in found] == [
        (0, 0.1),
        (0, 0.01),
        (1, 0.1),
        (1, 0.01),
    ]


def test_a_sweep_that_says_nothing_has_the_papers_q_among_its_own(fairfl_):
    _, out, _ = fairfl_("sweep", *SMALL, "--seeds", "1", "--json")
    found = [experiment["hyperparameters"]["q"] for experiment in json.loads(out)["experiments"]]
    assert found == [0, 0.1, 1, 2, 5]


def test_a_sweep_without_q_0_says_why_it_recommends_none(fairfl_):
    code, out, _ = fairfl_("sweep", *SMALL, "--q", "1,2", "--seeds", "1")
    assert code == 0
    assert "No q is recommended: choosing q compares with q=0" in unwrapped(out)


def test_a_sweep_of_an_algorithm_without_q(fairfl_):
    code, out, _ = fairfl_(
        "sweep", *SMALL, "--algorithm=fedavg", "--learning-rate=.1,.01", "--seeds=1"
    )
    assert code == 0
    assert "No q is recommended: fedavg has no q to choose" in unwrapped(out)


def test_defaults_are_the_papers(fairfl_, monkeypatch):
    asked = []
    monkeypatch.setattr(cli.training, "_trained", lambda plan, *_: asked.append(plan) or 1 / 0)
    fairfl_("run", "synthetic")
    assert asked[0].algorithm.experiments == [{"q": 1.0, "learning_rate": 0.1}]
    assert (asked[0].rounds, asked[0].cohort, asked[0].seeds) == (10_000, 10, [0])
    assert (asked[0].algorithm.work.epochs, asked[0].algorithm.work.batch_size) == (1, 10)


def test_a_default_cohort_is_no_larger_than_the_population(fairfl_):
    code, out, _ = fairfl_("run", "synthetic", "--clients", "5", "--rounds", "1")
    assert code == 0
    assert "sampler everyone" in out


def test_options_reach_the_training(fairfl_):
    words = ["--sampler=uniform", "--weights=equal", "--epochs=2", "--batch-size=7", "--L=20"]
    out = fairfl_("run", *SMALL, *words, "--model=mlp", "--split-seed=4", "--out=one")[1]
    assert "sampler uniform, weights equal" in out
    with open("one/configuration.json") as file:
        found = json.load(file)
    assert found["settings"] == {
        "model": "MLP 60-128-10",
        "built_in": "mlp",
        "work": "local SGD",
        "epochs": 2,
        "batch_size": 7,
        "rule": "q-FFL",
        "server": "plain",
        "cohort": 5,
        "seeds": [0],
        "split_seed": 4,
        "evaluate_every": 1,
        "width": 1,
        "lanes": found["settings"]["lanes"],
        "x64": False,
    }
    assert found["experiments"] == [{"q": 1.0, "learning_rate": 0.1, "L": 20.0, "seed": 0}]


def test_the_algorithm_can_be_written_in_one_word(fairfl_):
    word = "q-fedavg:q=5:sampler=uniform:weights=equal:batch-size=7"
    out = fairfl_("run", *SMALL, "--algorithm", word, "--json")[1]
    found = json.loads(out)["experiments"][0]
    assert (found["algorithm"], found["hyperparameters"]["q"]) == ("q-fedavg", 5)
    assert (found["sampler"], found["weights"]) == ("uniform", "equal")


def test_the_data_seed_makes_other_data(fairfl_, tmp_path):
    for seed in (0, 1):
        fairfl_("run", *SMALL, "--data-seed", seed, "--out", f"run-{seed}")
    data = [
        json.loads((tmp_path / f"run-{seed}" / "configuration.json").read_text())["data"]
        for seed in (0, 1)
    ]
    assert data[0]["fingerprint"] != data[1]["fingerprint"]


def test_notes_are_printed(fairfl_):
    out = fairfl_("run", "synthetic", "--clients=5", "--rounds=1")[1]
    assert "Note: The cohort holds every client" in out


def test_the_same_command_writes_the_same_bytes(fairfl_, tmp_path):
    for name in ("one", "two"):
        fairfl_("sweep", *SMALL, "--q=0,1", "--seeds=2", "--out", name)
    for path in (tmp_path / "one").iterdir():
        same = path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
        assert same == (path.name != "timings.json"), path.name
    command = json.loads((tmp_path / "one" / "configuration.json").read_text())["command"]
    assert command == (
        "fairfl sweep synthetic --q 0,1 --rounds 3 --cohort 5 --clients 20 --seeds 2"
    )


def test_a_finished_run_is_shown_again(fairfl_, tmp_path):
    words = ["sweep", *SMALL, "--q=0,1", "--seeds=2", "--out=run"]
    first = fairfl_(*words)[1]
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    code, out, _ = fairfl_(*words, "--resume")
    assert code == 0
    assert out == first.replace("Written to", "Nothing was left to train in")
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_a_run_of_something_else_is_not_gone_on_with(fairfl_, tmp_path):
    fairfl_("run", *SMALL, "--out=run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    code, out, err = fairfl_("run", *SMALL, "--out=run", "--resume", "--q=3")
    assert (code, out) == (2, "")
    assert "holds another run: it has experiments.0.q 1.0, but this one 3.0; ask for" in err
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


# For programs -------------------------------------------------------------------------------------


def test_json_is_all_there_is_on_standard_output(fairfl_):
    code, out, err = fairfl_("sweep", *SMALL, "--q=0,1", "--seeds=2", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["schema"], found["dataset"], found["rounds"]) == (1, "synthetic", 3)
    assert found["seconds"] > 0
    assert len(found["experiments"]) == 4
    assert set(found["chosen"]) == {"hyperparameters", "qualified", "reason"}
    assert found["experiments"][0]["splits"]["test"]["clients"]["f_00000"]["size"] > 0
    assert err.startswith("Written to runs/0001-synthetic-sweep\n")


def test_json_of_a_run_chooses_nothing(fairfl_):
    assert json.loads(fairfl_("run", *SMALL, "--json")[1])["chosen"] is None


def test_json_of_a_table_keeps_how_it_was_read_aside(fairfl_, visits):
    words = ["--client=hospital", "--label=readmitted", "--rounds=2"]
    code, out, err = fairfl_("run", visits, *words, "--json", "--out=run")
    assert code == 0
    assert json.loads(out)["dataset"] == "visits"
    assert "client column 'hospital'" in err


def test_datasets_for_people(fairfl_):
    code, out, err = fairfl_("datasets", "--data-dir=.")
    assert (code, err) == (0, "")
    assert "synthetic-hybrid" in out
    assert "licence: none needed (generated)" in unwrapped(out)
    assert max(map(len, out.splitlines())) <= 80


def test_datasets_for_programs(fairfl_):
    found = json.loads(fairfl_("datasets", "--json", "--data-dir=.")[1])["datasets"]
    assert found[0]["name"] == "synthetic"
    assert (found[0]["clients"], found[0]["rows"], found[0]["present"]) == (100, 12697, True)
    assert {"source", "licence", "title"} <= set(found[0])
    assert [entry["rows"] for entry in found if not entry["present"]] == [None] * (len(found) - 3)


# Tables -------------------------------------------------------------------------------------------


def test_a_table_of_ones_own(fairfl_, visits, tmp_path):
    words = ["--client=hospital", "--label=readmitted", "--rounds=3", "--seeds=2"]
    code, out, _ = fairfl_("sweep", visits, *words, "--features=age,smoker", "--out=run")
    assert code == 0
    assert "'smoker' boolean, 0 or 1" in unwrapped(out)
    assert "q-fedavg on visits: softmax regression, 4 clients, 80 rows" in out
    stored = json.loads((tmp_path / "run" / "preprocessing.json").read_text())
    assert stored["client"] == "hospital"


def test_numbers_to_predict_are_a_regression(fairfl_, visits):
    words = ["--client=hospital", "--label=age", "--rounds=2", "--seeds=1", "--learning-rate=1e-4"]
    visits.write_text(visits.read_text().replace(",yes", ".5,yes"))
    code, out, _ = fairfl_("sweep", visits, *words)
    assert code == 0
    assert "MLP" in out
    assert "Test loss over clients" in out


# Mistakes -----------------------------------------------------------------------------------------

MISTAKES = {
    "wrong client column": ("run TABLE --client hospitl --label age", "did you mean 'hospital'?"),
    "wrong label column": ("run TABLE --client hospital --label nothing", "is no column of"),
    "wrong feature": (
        "run TABLE --client hospital --label readmitted --features agee",
        "did you mean 'age'?",
    ),
    "table without columns": ("run TABLE", "with --client COLUMN --label COLUMN"),
    "no such table": ("run visit.csv --client a --label b", "did you mean 'visits.csv'?"),
    "column of no table": ("run synthetic --client a", "leave --client out"),
    "synthetic option of a table": (
        "run TABLE --client hospital --label readmitted --alpha 1",
        "--alpha is for the data sets",
    ),
    "unknown data set": ("run syntetic", "did you mean 'synthetic'"),
    "unknown option of a data set": ("run synthetic-iid --alpha 1", "has no option 'alpha'"),
    "no clients": ("run synthetic --clients 0", "clients=0 must be a whole number"),
    "negative q": ("run synthetic --q -1", "q=-1.0 must be a finite number 0 or greater"),
    "q in words": ("sweep synthetic --q 0,one", "write for example q=0.1"),
    "empty q": ("sweep synthetic --q 0,,1", "write for example q=0.1"),
    "a q twice": ("sweep synthetic --q 0,1,1", "names a value twice"),
    "several q in a run": ("run synthetic --q 0,1", "use fairfl sweep"),
    "learning rate 0": ("run synthetic --learning-rate 0", "greater than 0"),
    "cohort too large": ("run synthetic --cohort 101", "larger than the 100 clients"),
    "cohort of nobody": ("run synthetic --cohort 0", "cohort=0 must be one whole number"),
    "zero rounds": ("run synthetic --rounds 0", "rounds=0 must be one whole number"),
    "zero epochs": ("run synthetic --epochs 0", "epochs=0 must be one whole number"),
    "never evaluated": ("run synthetic --evaluate-every 0", "evaluate_every=0 must be"),
    "negative seed": ("run synthetic --seed -1", "seed=-1 must be"),
    "negative split seed": ("run synthetic --split-seed -1", "split_seed=-1 must be"),
    "no seeds": ("sweep synthetic --seeds 0", "seeds=0 must be"),
    "unknown algorithm": ("run synthetic --algorithm fedav", "did you mean 'fedavg'"),
    "unknown sampler": ("run synthetic --sampler x", "choose one of by-size"),
    "unknown weights": ("run synthetic --weights x", "neither 'size' nor 'equal'"),
    "unknown model": ("run synthetic --model forest", "the known ones are softmax"),
    "model that does not fit": ("run synthetic --model svm", "but the data has 10"),
    "hyper-parameter of another": ("run synthetic --algorithm fedavg --q 1", "fedavg has no q"),
    "hyper-parameter twice": ("run synthetic --algorithm q-fedavg:q=1 --q 1", "q is given twice"),
    "no value": ("run synthetic --algorithm q-fedavg:q", "'q' in the algorithm"),
    "half an epoch": ("run synthetic --algorithm q-fedavg:epochs=.5", "epochs=.5 must be one"),
    "a folder that is a file": ("run synthetic --out TABLE", "is a file; name a folder"),
    "a folder below a file": ("run synthetic --out TABLE/run", "cannot write in"),
    "a folder that exists": ("run synthetic --out there", "add --overwrite to replace it"),
    "a folder of something else": ("run synthetic --out there --overwrite", "other than a run"),
    "resume and overwrite": ("run synthetic --out a --resume --overwrite", "choose one of them"),
    "resume of nothing named": ("run synthetic --resume", "say with --out in which folder"),
    "resume of something else": ("run synthetic --out there --resume", "--resume leaves it"),
    "rounds in words": ("run synthetic --rounds ten", "'ten' is not a valid integer; see fairfl"),
    "no data": ("run", "Missing argument 'DATA'; see fairfl run --help"),
    "unknown command": ("swep synthetic", "No such command 'swep'"),
    "unknown option": ("run synthetic --round 3", "No such option '--round'"),
    "a word too many": ("run synthetic more", "unexpected extra argument (more); see fairfl"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_sentence_and_leaves_nothing(fairfl_, visits, tmp_path, case):
    words, sentence = MISTAKES[case]
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "thesis.tex").touch()
    before = files(tmp_path)
    code, out, err = fairfl_(*words.replace("TABLE", "visits.csv").split())
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text.replace("A,", "A,inf,no,1\nA,", 1), "column 'age' holds inf in row"),
        (lambda text: text + "A,30,no,\n", "the label column 'readmitted' is blank in 1 of 81"),
        (lambda text: text + ",30,no,1\n", "the client column 'hospital' is blank in 1 of 81"),
        (lambda text: text.replace(",0\n", ",1\n"), "every row of the label column 'readmitted'"),
        (lambda text: text.splitlines()[0] + "\n", "but no rows"),
        (lambda text: text + "A,30,no,1,9\n", "a row with more or fewer cells than the others"),
        (lambda text: text + "A,30\n", "a row with more or fewer cells than the others"),
    ],
    ids=["infinity", "no label", "no client", "one class", "no rows", "long row", "short row"],
)
def test_bad_cells_are_one_sentence(fairfl_, visits, tmp_path, change, sentence):
    visits.write_text(change(visits.read_text()))
    code, out, err = fairfl_("run", visits, "--client=hospital", "--label=readmitted", "--rounds=2")
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert files(tmp_path) == ["visits.csv"]


def test_an_unwritable_folder_is_refused_before_training(fairfl_, monkeypatch):
    if not os.path.isdir("/proc"):
        pytest.skip("there is no /proc here")
    monkeypatch.setattr(cli.training, "_trained", None)
    code, _, err = fairfl_("run", "synthetic", "--out", "/proc/run")
    assert code == 2
    assert "cannot write in '/proc'" in err


def test_runs_being_a_file_is_refused_before_training(fairfl_, tmp_path, monkeypatch):
    monkeypatch.setattr(cli.training, "_trained", None)
    (tmp_path / "runs").touch()
    code, _, err = fairfl_("run", "synthetic")
    assert code == 2
    assert "(Not a directory); name a folder elsewhere with --out" in err


def test_results_are_shown_even_if_they_cannot_be_kept(fairfl_, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "_save", full)
    code, out, err = fairfl_("run", *SMALL, "--json", "--out=run")
    assert code == 2
    assert json.loads(out)["schema"] == 1
    assert "(No space left on device); the newest checkpoint holds 3 rounds" in err
    assert "result.json" not in files(tmp_path / "run")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert fairfl_("run", *SMALL, "--out=run", "--resume")[0] == 0
    assert len(files(tmp_path / "run")) == 10


def test_a_report_that_cannot_be_drawn_costs_no_run(fairfl_, tmp_path, monkeypatch):
    def broken(_):
        raise RuntimeError("no pen")

    monkeypatch.setattr(writing, "write", broken)
    code, out, err = fairfl_("run", *SMALL, "--out=run")
    assert code == 0
    assert out.endswith("Written to run\n")
    assert err == (
        "Note: the run is kept, but not its report (no pen); draw it with: fairfl report run\n"
    )
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    code, out, _ = fairfl_("report", "run", "--json")
    assert code == 0
    assert json.loads(out)["report"] == "run/report.html"
    assert "run/tables/clients.csv" in json.loads(out)["files"]


def test_a_report_on_no_run_says_so(fairfl_, tmp_path):
    (tmp_path / "empty").mkdir()
    assert fairfl_("report", "empty")[2].startswith("Error: there is no run in 'empty'")
    assert fairfl_("report", "nowhere")[2].startswith("Error: 'nowhere' is not a folder")
    assert files(tmp_path / "empty") == []


def test_when_everything_stops_the_last_good_models_are_kept(fairfl_, tmp_path):
    code, out, err = fairfl_("run", *SMALL, "--learning-rate", "1e30", "--out", "run")
    assert code == 2
    assert "stopped after" in unwrapped(out)
    assert err.startswith("Error: every experiment stopped early")
    assert err.count("\n") == 1
    assert len(files(tmp_path / "run")) == 10


def test_a_mistake_of_ours_is_called_one(fairfl_, tmp_path, monkeypatch):
    monkeypatch.setattr(cli.training, "_trained", lambda *_: 1 / 0)
    code, out, err = fairfl_("run", *SMALL)
    assert (code, out) == (1, "")
    assert err == (
        "Error: ZeroDivisionError (division by zero); this is a bug in fairfl, so please report "
        "it with what FAIRFL_DEBUG=1 prints\n"
    )
    assert files(tmp_path) == []


def test_the_traceback_is_there_for_who_asks(fairfl_, monkeypatch):
    monkeypatch.setattr(cli.training, "_trained", lambda *_: 1 / 0)
    monkeypatch.setenv("FAIRFL_DEBUG", "1")
    assert "Traceback" in fairfl_("run", *SMALL)[2]


def test_warnings_lose_our_line_numbers(fairfl_, monkeypatch):
    def warn(*_):
        warnings.showwarning(UserWarning("mind this"), UserWarning, "file.py", 3)
        return 1 / 0

    monkeypatch.setattr(cli.training, "_trained", warn)
    assert fairfl_("run", *SMALL)[2].startswith("Note: mind this\n")


# The shape of the command -------------------------------------------------------------------------


@pytest.mark.parametrize("words", [[], ["--help"], ["run", "--help"], ["sweep", "-h"]])
def test_help_fits_80_columns(words):
    found = CliRunner().invoke(cli.app, words)
    assert found.exit_code == 0
    assert "Usage: fairfl" in found.stdout or "Usage: " in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 80


def test_the_version(fairfl_):
    assert fairfl_("--version") == (0, f"fairfl {fairfl.__version__}\n", "")


def test_compiled_programs_are_kept_where_that_can_be(tmp_path, monkeypatch):
    kept = {}
    monkeypatch.setattr(compiled.jax.config, "update", kept.__setitem__)
    assert compiled.keep(tmp_path) is None
    assert kept == {}
    monkeypatch.setenv("FAIRFL_CACHE", "1")
    place = compiled.keep(tmp_path)
    assert place.parent == tmp_path / "xla"
    assert kept["jax_compilation_cache_dir"] == str(place)


def test_an_old_jaxlib_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRFL_CACHE", "1")
    monkeypatch.setattr(compiled, "version", lambda _: "0.10.1")
    assert compiled.keep(tmp_path) is None
    assert files(tmp_path) == []


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRFL_CACHE", "1")
    (tmp_path / "file").touch()
    assert compiled.keep(tmp_path / "file") is None


# Processes ----------------------------------------------------------------------------------------


def environment():
    return {**os.environ, "PYTHONPATH": SOURCE, "FAIRFL_CACHE": "0"}


def test_a_process_exits_with_the_code_and_one_sentence(tmp_path):
    words = [sys.executable, "-m", "fairfl", "run", "synthetic", "--q", "-1", "--json"]
    found = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "Error: q=-1.0 must be a finite number 0 or greater\n"


def test_a_process_prints_json_and_nothing_else(tmp_path):
    words = [sys.executable, "-m", "fairfl", "run", *SMALL, "--json"]
    found = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert found.returncode == 0
    assert json.loads(found.stdout)["schema"] == 1
    assert found.stderr.startswith("Written to runs/0001-synthetic-run\n")


def test_a_terminal_that_shows_only_ascii(tmp_path):
    words = [sys.executable, "-m", "fairfl", "sweep", *SMALL, "--q=0,1", "--seeds=2"]
    ascii_only = {**environment(), "PYTHONIOENCODING": "ascii"}
    found = subprocess.run(words, env=ascii_only, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    assert "mean ? deviation of 2 seeds" in found.stdout


def test_a_reader_that_leaves_early_does_not_cost_the_run(tmp_path):
    words = [sys.executable, "-m", "fairfl", "run", *SMALL, "--out=run"]
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "wb") as pipe:
        found = subprocess.run(
            words, env=environment(), stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert found.returncode == 1
    assert "Traceback" not in found.stderr
    assert len(files(tmp_path / "run")) == 10


# A shell may start the tests with Ctrl-C ignored, and children inherit that.
LISTENING = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from fairfl.cli import main; sys.exit(main())"
)


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    words = ["sweep", "synthetic", "--clients=20", "--rounds=100000000", "--seeds=2", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING, *words],
        env={**environment(), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        progress = read_until(ours, b"rounds/s", 60)
        process.send_signal(signal.SIGINT)
        end = read_until(ours, b"--resume", 30)
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
        os.close(ours)
    assert b"training" in progress
    sentence = end[end.index(b"Error: ") :].decode().strip()
    assert sentence.startswith("Error: interrupted, with ")
    assert "of 1,000,000,000 rounds of all experiments kept; go on with: " in sentence
    assert sentence.endswith(
        "fairfl sweep synthetic --rounds 100000000 --clients 20 --json --seeds 2 "
        "--out runs/0001-synthetic-sweep --resume"
    )
    assert (process.returncode, out) == (130, b"")
    assert "checkpoints/00000001.json" in files(tmp_path / "runs" / "0001-synthetic-sweep")


def read_until(descriptor, words, seconds):
    seen, end = b"", time.monotonic() + seconds
    while words not in seen:
        assert select.select([descriptor], [], [], max(0, end - time.monotonic()))[0], seen
        seen += os.read(descriptor, 4096)
    return seen


# Predicting ---------------------------------------------------------------------------------------


def test_a_sweep_on_a_table_scores_new_rows(fairfl_, visits, tmp_path):
    words = ["--client=hospital", "--label=readmitted", "--split=.6,.2,.2", "--q=0,1"]
    code, out, _ = fairfl_("sweep", visits, *words, "--rounds=2", "--seeds=2", "--out=run")
    assert code == 0
    assert "'age' number, mean" in unwrapped(out)
    (tmp_path / "new.csv").write_text("age,smoker\n30,yes\n50,no\n")
    code, out, err = fairfl_("predict", "run", "new.csv")
    assert (code, err) == (0, "")
    assert "Scored with q-fedavg: q " in out
    assert "Predictions for 2 rows" in out
    assert out.endswith("Written to new-predicted.csv\n")
    assert max(map(len, out.splitlines())) <= 80
    header, *rows = (tmp_path / "new-predicted.csv").read_text().splitlines()
    assert header == "age,smoker,prediction,probability_0,probability_1"
    assert [row.split(",")[0] for row in rows] == ["30", "50"]
    code, _, err = fairfl_("predict", "run", "new.csv")
    assert (code, "exists; add --overwrite" in err) == (2, True)
    code, out, err = fairfl_("predict", "run", "new.csv", "--json", "--experiment=q=1:seed=1")
    found = json.loads(out)
    assert (code, err, found["rows"]) == (0, "", 2)
    assert found["experiment"] == {"q": 1, "learning_rate": 0.1, "seed": 1}
    assert np.add(found["columns"]["probability_0"], found["columns"]["probability_1"]) == (
        pytest.approx([1, 1])
    )


def test_a_table_without_a_header_line(fairfl_, visits, tmp_path):
    bare = tmp_path / "bare.csv"
    bare.write_text(visits.read_text().split("\n", 1)[1])
    words = ["--client=hospital", "--label=readmitted", "--rounds=1"]
    code, _, err = fairfl_("run", bare, *words)
    assert (code, "no header line, give all its names with columns" in err) == (2, True)
    code, out, _ = fairfl_("run", bare, *words, "--columns=hospital,age,smoker,readmitted")
    assert (code, "80 rows" in out) == (0, True)


def test_a_task_and_a_split_that_are_none(fairfl_, visits):
    words = ["--client=hospital", "--label=readmitted"]
    assert "task='guess' is none of" in fairfl_("run", visits, *words, "--task=guess")[2]
    assert "must be the shares" in fairfl_("run", visits, *words, "--split=.8,.2")[2]
