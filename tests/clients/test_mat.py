"""MAT files with a cell per client, as scipy writes them and as multi-task benchmarks have them."""

import struct
from pathlib import Path

import numpy as np
import pytest

import fairfl
from fairfl.clients.mat import cells, standardised

io_ = pytest.importorskip("scipy.io", reason="MAT files are written with scipy")


def cell(values):
    found = np.empty((len(values), 1), object)
    for place, value in enumerate(values):
        found[place, 0] = value
    return found


def clients(sizes=(5, 1, 8), seed=0):
    draw = np.random.default_rng(seed)
    x = [draw.normal(size=(n, 3)) for n in sizes]
    return x, [draw.choice([-1.0, 1.0], size=(n, 1)) for n in sizes]


@pytest.fixture
def save(tmp_path):
    def save(compressed=False, **variables):
        path = tmp_path / "vehicle.mat"
        io_.savemat(path, variables, do_compression=compressed)
        return path

    return save


def mistake(path, **options):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        fairfl.from_mat(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("compressed", [False, True])
def test_every_cell_is_a_client(save, compressed):
    x, y = clients()
    data = fairfl.from_mat(save(compressed, X=cell(x), Y=cell(y)))
    assert data.ids == ("f_00000", "f_00001", "f_00002")
    assert data.sizes.tolist() == [5, 1, 8]
    np.testing.assert_array_equal(data.x, np.concatenate(x).astype(np.float32))
    assert data.classes[data.y].tolist() == np.concatenate(y).ravel().tolist()


def test_cells_have_the_names_that_are_given_and_others_may_be_beside_them(save):
    x, y = clients()
    other = {"note": "hello", "rate": 2.0 + 1j, "empty": np.empty((0, 0)), "n": np.int8([1, 2])}
    path = save(features=cell(x), labels=cell(y), **other)
    assert fairfl.from_mat(path, x="features", y="labels").clients == 3
    assert "has no cell array 'X'; it has features, labels, note, rate, empty, n" in mistake(path)


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.uint8, np.int16, np.int32, np.int64])
def test_numbers_of_any_kind_are_read(save, kind):
    x = np.arange(6).reshape(2, 3).astype(kind)
    data = fairfl.from_mat(save(X=cell([x]), Y=cell([np.array([[1], [2]], kind)])))
    assert data.x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_file_of_the_other_byte_order_is_read(save):
    """As a big-endian machine writes it, made by hand: one variable, a double of 1 x 2."""

    def element(type_, data):
        return struct.pack(">II", type_, len(data)) + data + bytes(-len(data) % 8)

    def matrix(kind, name, shape, *parts):
        head = element(6, struct.pack(">II", kind, 0)) + element(5, struct.pack(">ii", *shape))
        return element(14, head + element(1, name) + b"".join(parts))

    def double(name, *values):
        numbers = element(9, struct.pack(f">{len(values)}d", *values))
        return matrix(6, name, (len(values), 1), numbers)

    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    x = matrix(1, b"X", (1, 1), double(b"", 2.5, -3.0))
    y = matrix(1, b"Y", (1, 1), double(b"", 1.0, -1.0))
    found = cells(Path("by-hand.mat"), header + x + y, "X", "Y")["f_00000"]
    assert (found[0].tolist(), found[1].tolist()) == ([[2.5], [-3.0]], [1.0, -1.0])


def test_standardising_is_within_a_client_and_zero_where_nothing_varies(save):
    x, y = clients(sizes=(50, 1))
    x[0][:, 1] = 0.1
    data = fairfl.from_mat(save(X=cell(x), Y=cell(y)), standardise=True)
    assert data.x[:50].mean(axis=0) == pytest.approx(0, abs=1e-6)
    assert data.x[:50].std(axis=0) == pytest.approx([1, 0, 1], abs=1e-6)
    assert data.x[50].tolist() == [0, 0, 0]


def test_whole_numbers_are_standardised_too():
    assert standardised(np.array([[1], [3]])).tolist() == [[-1], [1]]


def test_mistakes_are_one_sentence(save, tmp_path):
    x, y = clients()
    path = save(X=cell(x), Y=cell(y[:2]))
    assert "has 3 cells in 'X' but 2 in 'Y'" in mistake(path)
    whole = save(X=cell(x), Y=cell(y)).read_bytes()
    path.write_bytes(whole[:-40])
    assert "is damaged (it ends within an element); copy or save it again" in mistake(path)
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(600))
    assert "is of version 7.3, which is another format; save it with -v7" in mistake(path)
    path.write_text("hello")
    assert "is no MAT file of version 5 to 7; save it with -v7" in mistake(path)
    assert "there is no file" in mistake(tmp_path / "nowhere.mat")


def test_a_bitten_compressed_file_is_a_mistake(save):
    path = save(True, X=cell([np.ones((400, 9))]), Y=cell([np.arange(400)]))
    content = bytearray(path.read_bytes())
    content[150] ^= 255
    path.write_bytes(bytes(content))
    assert "is damaged (" in mistake(path)
