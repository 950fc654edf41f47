"""Fashion-MNIST and MNIST: idx files, the three classes of AFL, images dealt to clients."""

import gzip

import numpy as np
import pytest

import fairfl
from fairfl.datasets.idx import idx

SIDE = 28


def packed(values):
    """An idx file of bytes, compressed."""
    sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
    return gzip.compress(bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes())


def put(folder, name, trained=400, tested=100):
    """Four made-up idx files: images whose brightness goes with their class."""
    draw = np.random.default_rng(0)
    (folder / name).mkdir(exist_ok=True)
    for part, rows in (("train", trained), ("t10k", tested)):
        labels = (np.arange(rows) % 10).astype(np.uint8)
        images = draw.integers(0, 25, (rows, SIDE, SIDE)) + 20 * labels[:, None, None]
        images[:, 0, 0] = 7
        for kind, values in (("images-idx3", images.astype(np.uint8)), ("labels-idx1", labels)):
            (folder / name / f"{part}-{kind}-ubyte.gz").write_bytes(packed(values))
    return folder


@pytest.fixture
def folder(tmp_path):
    return put(tmp_path, "fashion_mnist")


def pixels(folder, part):
    return idx(folder / "fashion_mnist" / f"{part}-images-idx3-ubyte.gz", 3).reshape(-1, SIDE**2)


# ---- three classes, as AFL has them ----


def test_three_classes_are_three_clients_with_the_published_split(folder):
    data = fairfl.datasets.load("fashion-mnist-afl", data_dir=folder)
    assert data.ids == ("T-shirt", "Pullover", "Shirt")
    assert data.classes.tolist() == ["T-shirt", "Pullover", "Shirt"]
    assert data.y.tolist() == [0] * 50 + [1] * 50 + [2] * 50
    assert data.roles.tolist() == ([0] * 40 + [2] * 10) * 3


def test_they_are_normalised_with_all_training_images(folder):
    trained = pixels(folder, "train").astype(np.float64)
    tested = pixels(folder, "t10k")
    data = fairfl.datasets.load("fashion-mnist-afl", data_dir=folder)
    mean, deviation = trained.mean(axis=0), trained.std(axis=0)
    expected = (tested[2::10] - mean) / (deviation + 0.001)
    assert data.x[90:100] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert (data.x[:, 0] == 0).all()


# ---- ten classes, dealt to clients ----


def test_all_images_are_dealt_with_the_mean_and_deviation_of_training_pixels(folder):
    data = fairfl.datasets.load("fashion-mnist", data_dir=folder, clients=5)
    trained = pixels(folder, "train") / 255
    everything = np.concatenate([trained, pixels(folder, "t10k") / 255])
    expected = (everything - trained.mean()) / trained.std()
    assert np.sort(data.x, axis=None) == pytest.approx(np.sort(expected, axis=None), abs=1e-4)
    assert data.sizes.sum() == 500
    assert data.fractions == (0.8, 0.1, 0.1)
    assert data.sizes.min() >= 10


def test_a_label_stays_with_its_image(folder):
    data = fairfl.datasets.load("fashion-mnist", data_dir=folder, partition="iid", clients=10)
    brightness = [data.x[data.y == name].mean() for name in range(10)]
    assert brightness == sorted(brightness)
    assert max(data.x[data.y == 3].mean(axis=1)) < min(data.x[data.y == 4].mean(axis=1))


@pytest.mark.parametrize("partition", ["dirichlet", "iid", "power-law", "shards"])
def test_a_partition_by_name_is_drawn_from_the_seed(folder, partition):
    first, again, other = (
        fairfl.datasets.load(
            "fashion-mnist", seed=seed, data_dir=folder, partition=partition, clients=7
        )
        for seed in (1, 1, 2)
    )
    assert first.clients == 7
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != other.fingerprint


def test_a_smaller_alpha_skews_more(folder):
    def classes_of_a_client(alpha):
        data = fairfl.datasets.load("fashion-mnist", data_dir=folder, clients=5, alpha=alpha)
        bounds = zip(data.offsets, data.offsets[1:], strict=False)
        return np.mean([len(set(data.y[a:b].tolist())) for a, b in bounds])

    assert classes_of_a_client(0.05) < classes_of_a_client(100)


def test_mnist_has_files_and_classes_of_its_own(tmp_path):
    data = fairfl.datasets.load("mnist", data_dir=put(tmp_path, "mnist"), clients=5)
    assert data.classes.tolist() == list(range(10))


def test_an_unpacked_file_is_as_good(folder):
    before = fairfl.datasets.load("fashion-mnist", data_dir=folder, clients=5)
    place = folder / "fashion_mnist" / "train-images-idx3-ubyte.gz"
    place.with_suffix("").write_bytes(gzip.decompress(place.read_bytes()))
    place.unlink()
    after = fairfl.datasets.load("fashion-mnist", data_dir=folder, clients=5)
    assert before.fingerprint == after.fingerprint


# ---- damage ----


def shortened(content):
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (shortened, r"train-images-idx3-ubyte.gz' is damaged \(Compressed file ended"),
        (lambda content: content[:-8] + bytes(8), r"is damaged \(CRC check failed"),
        (lambda content: b"<html>no</html>", r"is damaged \(Not a gzipped file"),
        (lambda content: gzip.compress(b"PNG"), r"is no idx file of bytes in 3 dimensions"),
        (
            lambda content: gzip.compress(gzip.decompress(content)[:-1]),
            r"holds 313,599 bytes of values but says that it has 313,600",
        ),
        (lambda content: packed(np.zeros((3, 2, 2), np.uint8)), r"hold 3 images but 400 labels"),
    ],
)
def test_a_damaged_file_hears_a_sentence(folder, damage, sentence):
    place = folder / "fashion_mnist" / "train-images-idx3-ubyte.gz"
    place.write_bytes(damage(place.read_bytes()))
    with pytest.raises(ValueError, match=sentence):
        fairfl.datasets.load("fashion-mnist", data_dir=folder)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"partition": "fair"}, r"partition='fair' is none of dirichlet, iid, power-law, shards"),
        ({"clients": 51}, r"51 clients with at least 10 rows each need 510 rows"),
        ({"alpha": -1, "clients": 5}, r"alpha=-1 must be"),
    ],
)
def test_a_wrong_request_hears_a_sentence(folder, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        fairfl.datasets.load("fashion-mnist", data_dir=folder, **options)


# ---- the real files ----


def test_the_real_fashion_mnist(real):
    data = fairfl.datasets.load("fashion-mnist", data_dir=real)
    assert data.x.shape == (70_000, 784)
    assert np.bincount(data.y).tolist() == [7_000] * 10
    afl = fairfl.datasets.load("fashion-mnist-afl", data_dir=real)
    assert afl.x.shape == (21_000, 784)
    assert [rows.sizes.tolist() for rows in afl.split(0)][::2] == [[6_000] * 3, [1_000] * 3]


def test_the_real_mnist(real):
    data = fairfl.datasets.load("mnist", data_dir=real)
    assert data.x.shape == (70_000, 784)
    # Black is (0 - .1307) / .3081, as these files are known by.
    assert data.x.min() == pytest.approx(-0.1307 / 0.3081, abs=2e-4)
