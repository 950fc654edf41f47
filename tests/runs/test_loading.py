"""load_run: the same result again, without the data, or a sentence about what is wrong."""

import json

import jax
import numpy as np
import pytest

import fairfl
from conftest import made_up
from fairfl.clients.federated import SPLITS
from fairfl.runs import folder
from fairfl.runs.loading import load_run


@pytest.fixture(scope="module")
def result(data):
    model = fairfl.models.mlp(data, hidden=(4,))
    family = fairfl.q_fedavg(q=[0, 1])
    return fairfl.train(data, model, family, rounds=5, cohort=3, seed=[0, 1], evaluate_every=2)


@pytest.fixture
def place(result, tmp_path):
    return folder.write(result, tmp_path / "run")


def same(one, two):
    """Equal bit for bit, NaN equal to NaN, types included."""
    jax.tree.map(np.testing.assert_array_equal, one, two)
    assert jax.tree.map(np.result_type, one) == jax.tree.map(np.result_type, two)


def test_everything_comes_back_bit_for_bit(result, place):
    again = load_run(place)
    same(again.params, result.params)
    same(again.history, result.history)
    same(again.quarantined, result.quarantined)
    for split in SPLITS:
        same(again.fairness(split), result.fairness(split))
        same(again.clients(split), result.clients(split))
        assert again.missing(split) == result.missing(split)
    for name in ("data", "algorithm", "sampler", "weights", "rounds", "seconds", "settings"):
        assert getattr(again, name) == getattr(result, name), name
    assert list(again.notes) == list(result.notes)
    assert again.experiments == result.experiments


def test_every_client_of_every_evaluation_comes_back(result, place):
    for before, after in zip(result.members, load_run(place).members, strict=True):
        assert list(after.evaluations) == list(before.evaluations) == [2, 4, 5]
        for done, found in before.evaluations.items():
            same(after.evaluations[done], found)


def test_a_loaded_run_is_written_as_the_same_bytes(place, tmp_path):
    again = folder.write(load_run(place), tmp_path / "again")
    for file in place.iterdir():
        assert file.read_bytes() == (again / file.name).read_bytes(), file.name


def test_a_regression_without_a_test_split_comes_back(tmp_path):
    draw = np.random.default_rng(0)
    clients = {(k, "x"): (draw.normal(size=(9, 2)), draw.normal(size=9)) for k in range(3)}
    data = fairfl.from_arrays(clients, split=None)
    result = fairfl.train(data, fairfl.models.mlp(data), fairfl.fedavg(), rounds=1, cohort=3)
    again = load_run(folder.write(result, tmp_path / "run"))
    same(again.fairness("train"), result.fairness("train"))
    assert again.data == result.data
    with pytest.raises(ValueError, match="no client has rows in the test split"):
        again.fairness("test")


def refused(place):
    with pytest.raises(ValueError, match=r"\A[^\n]+; [^\n]+\Z") as caught:
        load_run(place)
    return str(caught.value)


def test_a_folder_of_something_else(tmp_path):
    assert "is not a run's folder" in refused(tmp_path)
    assert "is not a run's folder" in refused(tmp_path / "nothing")


def test_a_folder_of_another_version(place):
    found = json.loads((place / "configuration.json").read_text())
    (place / "configuration.json").write_text(json.dumps(found | {"schema": 2}))
    assert "has schema 2 but this fairfl reads schema 1; use the version" in refused(place)


@pytest.mark.parametrize("name", ["result.json", "parameters.safetensors", "record.safetensors"])
@pytest.mark.parametrize("harm", ["gone", "cut"])
def test_a_damaged_file_is_named(place, name, harm):
    file = place / name
    content = file.read_bytes()
    file.unlink()
    if harm == "cut":
        file.write_bytes(content[:-10])
    assert f"{name}' cannot be read" in refused(place)


def test_ids_are_told_apart_by_type(tmp_path):
    row = (np.ones((3, 2)), [0, 1, 1])
    data = fairfl.from_arrays({"1": row, 1: row, ("a", 2): row})
    model = fairfl.models.softmax_regression(data)
    result = fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=2)
    again = load_run(folder.write(result, tmp_path / "run"))
    assert again.data.ids == ("1", 1, ("a", 2))


def test_shapes_of_rows_come_back(tmp_path):
    data = made_up([4, 4])
    model = fairfl.models.softmax_regression(data)
    result = fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=2)
    assert load_run(folder.write(result, tmp_path / "run")).data.shape == (5,)
