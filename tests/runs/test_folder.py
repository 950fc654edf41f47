"""A run's folder: complete or absent, the same bytes for the same run, refused in a sentence."""

import csv
import io
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from safetensors.numpy import load

import fairfl
from fairfl.runs import folder
from fairfl.runs.folder import check, check_parent, reserved, write
from fairfl.runs.tensors import unpacked

FILES = {
    "result.json",
    "fairness.csv",
    "clients.csv",
    "history.csv",
    "data.json",
    "parameters.safetensors",
    "record.safetensors",
    "configuration.json",
    "timings.json",
}


def trained(data, model):
    family = fairfl.q_fedavg(q=[0, 1])
    return fairfl.train(data, model, family, rounds=3, cohort=3, seed=[0, 1], evaluate_every=2)


@pytest.fixture(scope="module")
def result(data, model):
    return trained(data, model)


def read_csv(path):
    rows = csv.DictReader(io.StringIO(path.read_bytes().decode()))
    columns = {}
    for row in rows:
        for name, cell in row.items():
            columns.setdefault(name, []).append(cell)
    return columns


def numbers(cells):
    return np.array([float(cell or "nan") for cell in cells])


def everything(parent):
    return sorted(path.name for path in parent.iterdir())


def test_the_files(result, tmp_path):
    written = write(result, tmp_path / "deep" / "run", preprocessing='{"version": 1}\n')
    assert {path.name for path in written.iterdir()} == FILES | {"preprocessing.json"}
    assert (written / "preprocessing.json").read_bytes() == b'{"version": 1}\n'
    assert everything(tmp_path / "deep") == ["run"]


@pytest.mark.parametrize("what", ["fairness", "clients"])
def test_the_columns_of_every_split(result, tmp_path, what):
    found = read_csv(write(result, tmp_path / "run") / f"{what}.csv")
    for split in ("train", "validation", "test"):
        here = np.array(found["split"]) == split
        for name, column in getattr(result, what)(split).items():
            cells = np.array(found[name])[here]
            same = cells if column.dtype.kind == "U" else numbers(cells)
            np.testing.assert_array_equal(same, column)


def test_the_history_has_empty_cells_where_nothing_was_evaluated(result, tmp_path):
    found = read_csv(write(result, tmp_path / "run") / "history.csv")
    for name, column in result.history.items():
        np.testing.assert_array_equal(numbers(found[name]).astype(column.dtype), column)
    assert found["test_average"][0] == ""


def test_the_parameters(result, tmp_path):
    content = (write(result, tmp_path / "run") / "parameters.safetensors").read_bytes()
    found = load(content)
    assert set(found) == {f"{place}/{name}" for place in range(4) for name in ("bias", "weights")}
    for place in range(4):
        np.testing.assert_array_equal(found[f"{place}/weights"], result.params["weights"][place])
    assert unpacked(content)[1]["schema"] == 1


def test_the_parameters_of_one_model_alone(data, model, tmp_path):
    result = fairfl.train(data, model, fairfl.fedavg(), rounds=2, cohort=2)
    found = load((write(result, tmp_path / "run") / "parameters.safetensors").read_bytes())
    np.testing.assert_array_equal(found["0/weights"], result.params["weights"][0])


def test_nested_parameters_keep_their_path(data, tmp_path):
    model = fairfl.models.mlp(data, hidden=(4,))
    result = fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=2)
    found = load((write(result, tmp_path / "run") / "parameters.safetensors").read_bytes())
    np.testing.assert_array_equal(found["0/1/weights"], result.params[1]["weights"][0])


def test_the_configuration(result, data, tmp_path):
    choice = {"hyperparameters": {"q": 1.0}, "qualified": True, "reason": "r"}
    written = write(result, tmp_path / "run", choice=choice, command="fairfl run x")
    found = json.loads((written / "configuration.json").read_text())
    assert (found["schema"], found["command"]) == (1, "fairfl run x")
    assert found["versions"]["fairfl"] == fairfl.__version__
    assert found["data"]["fingerprint"] == data.fingerprint
    assert found["experiments"] == result.experiments
    assert found["settings"] == result.settings
    assert json.loads((written / "result.json").read_text())["chosen"] == choice
    assert json.loads((written / "timings.json").read_text()) == {
        "schema": 1,
        "seconds": result.seconds,
    }


def test_all_but_the_timings_are_the_same_bytes_again(result, data, model, tmp_path):
    one, two = write(result, tmp_path / "one"), write(trained(data, model), tmp_path / "two")
    for name in FILES - {"timings.json"}:
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
    assert (one / "timings.json").read_bytes() != (two / "timings.json").read_bytes()


def test_text_files_end_lines_as_everywhere(result, tmp_path):
    for path in write(result, tmp_path / "run").iterdir():
        if path.suffix in (".csv", ".json"):
            content = path.read_bytes()
            assert b"\r" not in content
            assert content.endswith(b"\n")


def test_others_may_read_it(result, tmp_path):
    mask = os.umask(0o022)
    os.umask(mask)
    assert write(result, tmp_path / "run").stat().st_mode & 0o777 == 0o777 & ~mask


def test_overwriting_replaces_the_whole_folder(result, tmp_path):
    write(result, tmp_path / "run", preprocessing="{}")
    write(result, tmp_path / "run", overwrite=True)
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES
    assert everything(tmp_path) == ["run"]


def test_an_empty_folder_can_be_overwritten(result, tmp_path):
    (tmp_path / "run").mkdir()
    assert write(result, tmp_path / "run", overwrite=True) == tmp_path / "run"


def test_a_link_to_a_run_stays_a_link(result, tmp_path):
    write(result, tmp_path / "run")
    (tmp_path / "link").symlink_to("run")
    write(result, tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert everything(tmp_path) == ["link", "run"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failure_leaves_nothing_half_written(result, tmp_path, monkeypatch, overwrite):
    if overwrite:
        write(result, tmp_path / "run", command="the first")
    monkeypatch.setattr(folder, "_parameters", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write(result, tmp_path / "run", overwrite=overwrite)
    assert everything(tmp_path) == (["run"] if overwrite else [])
    if overwrite:
        assert "the first" in (tmp_path / "run" / "configuration.json").read_text()


def test_a_full_disk_is_one_sentence(result, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "_save_columns", full)
    with pytest.raises(ValueError, match=r"cannot write in .* \(No space left on device\)"):
        write(result, tmp_path / "run")
    assert everything(tmp_path) == []


def test_numbered_folders_count_on(tmp_path):
    (tmp_path / "0041-other").mkdir()
    (tmp_path / "notes.txt").touch()
    written = [reserved(tmp_path, "arrays-run").name for _ in range(2)]
    assert written == ["0042-arrays-run", "0043-arrays-run"]


def test_runs_that_begin_together_get_folders_of_their_own(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        written = list(pool.map(lambda _: reserved(tmp_path, "x"), range(8)))
    assert len({path.name for path in written}) == len(everything(tmp_path)) == 8


def refused(*arguments, **options):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        check(*arguments, **options)
    return str(caught.value)


def test_an_existing_folder_is_not_overwritten_unasked(tmp_path):
    assert refused(tmp_path).endswith(
        "exists; add --overwrite to replace it, or name another with --out"
    )


def test_a_run_that_is_there_can_go_on(tmp_path):
    (tmp_path / "configuration.json").touch()
    assert refused(tmp_path).endswith(
        "exists; add --resume to go on with it, or --overwrite to replace it, or name another "
        "with --out"
    )


@pytest.mark.parametrize("option", ["overwrite", "resume"])
def test_what_is_no_run_is_never_overwritten(tmp_path, option):
    (tmp_path / "thesis.tex").touch()
    said = refused(tmp_path, **{option: True})
    assert f"holds something other than a run, so --{option} leaves it alone" in said
    assert everything(tmp_path) == ["thesis.tex"]


def test_the_current_folder_is_never_overwritten(tmp_path, monkeypatch):
    (tmp_path / "configuration.json").touch()
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    for place in (tmp_path, ".", ".."):
        assert "is in use" in refused(place, overwrite=True)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    assert refused(tmp_path / "file").endswith("is a file; name a folder with --out")
    below = refused(tmp_path / "file" / "deep" / "run")
    assert re.search(r"cannot write in '.*file' \(Not a directory\); name a folder else", below)


def test_a_parent_that_cannot_be_written_is_refused():
    if not os.path.isdir("/proc"):
        pytest.skip("there is no /proc here")
    assert "cannot write in '/proc'" in refused("/proc/run")
    with pytest.raises(ValueError, match="cannot write in '/proc'"):
        check_parent("/proc/runs")


def test_checking_leaves_nothing_behind(tmp_path):
    check(tmp_path / "deep" / "run")
    check_parent(tmp_path / "other")
    assert everything(tmp_path) == []
