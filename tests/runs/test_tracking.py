"""Rounds are tracked once by every tool, also where a run is resumed."""

import builtins
import importlib
import sys
import warnings

import pytest
from tables_made_up import refusal

import fairfl
from fairfl.runs import keeping, tracking
from fairfl.simulation import engine

NAMES = ["q=0,learning_rate=0.1,seed=0", "q=1,learning_rate=0.1,seed=0"]
TAGS = ["effective_step", "loss"] + [
    f"{split}/{metric}"
    for split in ("test", "train", "validation")
    for metric in ("average", "variance", "worst10")
]


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    """Chunks of two rounds with a checkpoint after each."""
    monkeypatch.setattr(engine, "SECONDS", 0.0)
    monkeypatch.setattr(keeping, "SECONDS", 0.0)
    monkeypatch.setattr(keeping, "SHARE", 1.0)


@pytest.fixture
def tool_of(monkeypatch):
    """Loads a tool, whose own imports may warn about others'."""

    def load(name):
        pytest.importorskip(name, reason=f"tracking with {name} needs fairfl[{name}]")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(f"fairfl.runs.tracking.{name}")

    return load


class StoppedError(Exception):
    """What ends a run in the middle."""


def train(data, model, tool, place, rounds=6, stop=None, resume=False):
    family = fairfl.q_fedavg(q=[0, 1], learning_rate=0.1)
    with fairfl.tracker(tool, place, "made up") as track:

        def after(progress):
            track(progress)
            if stop and progress.done >= stop:
                raise StoppedError

        return fairfl.train(
            data, model, family, rounds=rounds, cohort=3, evaluate_every=2, on_chunk=after,
            out=place, resume=resume, width=2,
        )  # fmt: skip


def interrupted_and_resumed(data, model, tool, place):
    with pytest.raises(StoppedError):
        train(data, model, tool, place, stop=3)
    return train(data, model, tool, place, resume=True)


def assert_history(result, found):
    """Rounds and values of one metric of the second experiment are those of its history."""
    history = result[1].history
    rounds = [2, 4, 6]
    assert [step for step, _ in found] == rounds
    expected = [history["test_worst10"][round - 1] for round in rounds]
    assert [value for _, value in found] == pytest.approx(expected, rel=1e-6)


def test_tensorboard(data, model, tmp_path, tool_of):
    tool_of("tensorboard")
    result = interrupted_and_resumed(data, model, "tensorboard", tmp_path / "run")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = tmp_path / "run" / "tensorboard"
    assert sorted(path.name for path in folder.iterdir()) == NAMES
    events = EventAccumulator(str(folder / NAMES[1]))
    events.Reload()
    assert sorted(events.Tags()["scalars"]) == TAGS
    assert_history(result, [(one.step, one.value) for one in events.Scalars("test/worst10")])


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_mlflow(data, model, tmp_path, tool_of, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    tool_of("mlflow")
    result = interrupted_and_resumed(data, model, "mlflow", tmp_path / "run")
    from mlflow import MlflowClient

    client = MlflowClient()
    experiment = client.get_experiment_by_name("made up").experiment_id
    runs = {run.info.run_name: run for run in client.search_runs([experiment])}
    assert sorted(runs) == NAMES
    run = runs[NAMES[1]]
    assert run.data.params == {
        "algorithm": "q-fedavg", "q": "1.0", "learning_rate": "0.1", "seed": "0", "data": "made up"
    }  # fmt: skip
    assert sorted(run.data.metrics) == TAGS
    assert run.info.status == "FINISHED"
    found = client.get_metric_history(run.info.run_id, "test/worst10")
    assert_history(result, [(one.step, one.value) for one in found])


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_wandb(data, model, tmp_path, tool_of, monkeypatch):
    """Its own files have no public reader, so what its runs are given is listened to."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    module = tool_of("wandb")
    init, found, ids = module.wandb.init, [], {}

    def listening(**options):
        run = init(**options)
        ids.setdefault(run.name, set()).add(run.id)
        log = run.log
        run.log = lambda values, step: (found.append((run.name, step, values)), log(values, step))
        return run

    monkeypatch.setattr(module.wandb, "init", listening)
    result = interrupted_and_resumed(data, model, "wandb", tmp_path / "run")
    assert sorted(ids) == NAMES
    assert all(len(same) == 1 for same in ids.values())
    mine = [(step, values) for name, step, values in found if name == NAMES[1]]
    assert sorted(mine[0][1]) == TAGS
    assert_history(result, [(step, values["test/worst10"]) for step, values in mine])
    assert len(list((tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb"))) == 4


def test_what_is_not_installed_is_told_with_how_to_install_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "fairfl.runs.tracking.wandb", raising=False)
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "wandb":
            raise ModuleNotFoundError("No module named 'wandb'", name="wandb")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    told = refusal(tracking.check_tools, ["wandb"])
    assert told == (
        "tracking with wandb needs wandb, which is not installed; install it with pip install "
        "'fairfl[wandb]'"
    )


def test_a_server_that_cannot_be_used_is_told_before_training(tool_of, monkeypatch):
    tool_of("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nonsense://here")
    assert "set MLFLOW_TRACKING_URI" in refusal(tracking.check_tools, ["mlflow"])


def test_a_tool_that_fails_does_not_stop_the_training(data, model, tmp_path, tool_of, monkeypatch):
    module = tool_of("tensorboard")

    def broken(*_):
        raise OSError("no space")

    monkeypatch.setattr(module, "open_log", broken)
    with pytest.warns(UserWarning, match=r"tensorboard stopped \(OSError: no space\)") as told:
        result = train(data, model, "tensorboard", tmp_path / "run")
    assert result.rounds == 6
    assert len(told) == 1


def test_nothing_is_imported_unless_asked_for():
    import subprocess

    asked = (
        "import sys, fairfl, fairfl.cli; print({'wandb', 'mlflow', 'tensorboard'} & {*sys.modules})"
    )
    words = [sys.executable, "-c", asked]
    assert subprocess.run(words, check=False, capture_output=True, text=True).stdout == "set()\n"
