"""Vehicle: sensors as clients, from the MAT file, from LEAF JSON, and the real subset."""

import json

import numpy as np
import pytest

import fairfl

SIZES = (30, 1, 12)


def sensors(seed=0):
    draw = np.random.default_rng(seed)
    x = [draw.normal(3.0, 2.0, size=(n, 100)) for n in SIZES]
    x[0][:, 7] = 4.0
    return x, [np.where(np.arange(n) % 2, 1, -1)[:, None] for n in SIZES]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vehicle").mkdir()
    return tmp_path


def put_mat(folder):
    io = pytest.importorskip("scipy.io", reason="MAT files are written with scipy")
    cells = []
    for part in sensors():
        cell = np.empty((len(SIZES), 1), object)
        cell[:, 0] = part
        cells.append(cell)
    io.savemat(folder / "vehicle" / "vehicle.mat", dict(zip("XY", cells, strict=True)))


def put_leaf(folder, name, x, y):
    pairs = enumerate(zip(x, y, strict=True))
    data = {f"f_{k:05d}": {"x": a.tolist(), "y": b.tolist()} for k, (a, b) in pairs}
    counts = [len(pair["y"]) for pair in data.values()]
    leaf = {"users": list(data), "num_samples": counts, "user_data": data}
    (folder / "vehicle" / name).write_text(json.dumps(leaf))


def test_the_mat_file_is_standardised_within_each_sensor(folder):
    put_mat(folder)
    data = fairfl.datasets.load("vehicle", data_dir=folder)
    x, y = sensors()
    assert (data.ids, data.sizes.tolist()) == (("f_00000", "f_00001", "f_00002"), list(SIZES))
    assert (data.task, data.classes.tolist(), data.fractions) == (
        "binary",
        [-1, 1],
        (0.8, 0.1, 0.1),
    )
    assert data.classes[data.y].tolist() == np.concatenate(y).ravel().tolist()
    expected = (x[2] - x[2].mean(axis=0)) / x[2].std(axis=0)
    assert data.x[31:] == pytest.approx(expected, abs=1e-5)
    assert (data.x[:30, 7] == 0).all()
    assert (data.x[30] == 0).all()


def test_leaf_json_of_the_papers_code_is_put_together(folder):
    x, y = sensors()
    put_leaf(folder, "mytrain.json", [a[:1] for a in x], [b[:1] for b in y])
    put_leaf(folder, "mytest.json", [a[1:] for a in x], [b[1:] for b in y])
    data = fairfl.datasets.load("vehicle", data_dir=folder)
    assert data.sizes.tolist() == list(SIZES)
    assert data.x == pytest.approx(np.concatenate(x), abs=1e-6)
    assert data.classes[data.y].tolist() == np.concatenate(y).ravel().tolist()


def test_the_mat_file_goes_before_leaf_json(folder):
    x, y = sensors()
    put_leaf(folder, "mytrain.json", x, y)
    put_leaf(folder, "mytest.json", x, y)
    put_mat(folder)
    assert fairfl.datasets.load("vehicle", data_dir=folder).sizes.tolist() == list(SIZES)


def test_another_file_of_that_name_hears_a_sentence(folder):
    x, y = sensors()
    put_leaf(folder, "mytrain.ditto_subsampled.json", [part[:, :9] for part in x], y)
    with pytest.raises(ValueError, match=r"is not Vehicle: its rows have the shape \(9,\) and"):
        fairfl.datasets.load("vehicle-subset", data_dir=folder)


def test_the_real_subset(real):
    """1,860 samples on 23 sensors, 1,023 of them 1; a linear model of all rows fits them."""
    data = fairfl.datasets.load("vehicle-subset", data_dir=real)
    assert (data.clients, len(data.y), int((data.y == 1).sum())) == (23, 1_860, 1_023)
    assert (data.sizes.min(), data.sizes.max()) == (7, 534)
    x = np.column_stack([data.x, np.ones(len(data.x))])
    weights, *_ = np.linalg.lstsq(x, data.classes[data.y], rcond=None)
    assert ((x @ weights > 0) == (data.y == 1)).mean() > 0.86
