"""Omniglot: characters in sorted order, tasks of five, drawings for support and for query."""

import struct
import zipfile
import zlib

import numpy as np
import pytest

from fairfl.datasets import omniglot

CHARACTERS, FEW = 1_220, 12


def png(pixels):
    """A one-bit PNG file, as Omniglot's are."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = np.packbits(pixels, axis=1)
    plain = np.concatenate([np.zeros((len(rows), 1), np.uint8), rows], axis=1).tobytes()
    head = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 1, 0, 0, 0, 0)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(plain)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def shrunk(character, number):
    """Paper, with the number of the character in binary as the ink of its first row of fields, and
    that of the drawing in the second."""
    fields = np.ones((28, 28), bool)
    fields[0, :12] = [not (character >> bit) & 1 for bit in range(12)]
    fields[1, :5] = [not (number >> bit) & 1 for bit in range(5)]
    return fields


def drawn(fields):
    """The drawing that shrinks to these fields: all its other pixels are ink."""
    nearest = ((np.arange(28) + 0.5) * 3.75).astype(int)
    pixels = np.zeros((105, 105), bool)
    pixels[np.ix_(nearest, nearest)] = fields
    return pixels


@pytest.fixture(scope="module")
def arrays():
    """What reading the zips makes of 1,220 characters."""
    images = [[shrunk(c, n).ravel() for n in range(20)] for c in range(CHARACTERS)]
    return {"images": np.packbits(images, axis=-1)}


@pytest.fixture
def zips(tmp_path):
    """Twelve characters dealt to the two zips in turn, so that only sorting brings their order."""
    halves = ("background", "evaluation")
    paths = {f"images_{half}.zip": tmp_path / f"images_{half}.zip" for half in halves}
    archives = [zipfile.ZipFile(path, "w") for path in paths.values()]
    for character in reversed(range(FEW)):
        half, archive = halves[character % 2], archives[character % 2]
        name = f"images_{half}/Alphabet_{character // 5}/character{character % 5 + 1:02d}"
        for number in reversed(range(20)):
            content = png(drawn(shrunk(character, number)))
            archive.writestr(f"{name}/{character:04d}_{number + 1:02d}.png", content)
    archives[0].writestr("__MACOSX/images_background/._Latin", b"other")
    archives[0].writestr("images_background/readme.txt", b"other")
    for archive in archives:
        archive.close()
    return paths


def decoded(x):
    """Which character and which drawing a row of x is."""
    ink = x.reshape(-1, 28, 28) < 0
    return ink[:, 0, :12] @ (1 << np.arange(12)), ink[:, 1, :5] @ (1 << np.arange(5))


@pytest.fixture(scope="module")
def data(arrays):
    return omniglot.build(arrays, seed=0)


def test_characters_of_both_zips_are_sorted_and_their_images_shrink_to_the_nearest_pixels(zips):
    found = omniglot.read(zips)
    assert found["characters"].tolist() == sorted(found["characters"].tolist())
    expected = [[shrunk(c, n).ravel() for n in range(20)] for c in range(FEW)]
    np.testing.assert_array_equal(np.unpackbits(found["images"], axis=-1), expected)


def test_tasks_are_clients_and_the_last_hundred_are_for_evaluation_only(data):
    assert (data.clients, data.ids[0], data.ids[-1]) == (400, "task-000", "held-out-099")
    split = data.split(0)
    assert split.train.sizes.tolist() == [50] * 300 + [0] * 100
    assert split.test.sizes.tolist() == [0] * 300 + [50] * 100
    assert split.support.sizes.tolist() == [50] * 400
    assert split.validation.sizes.sum() == 0


def test_a_task_has_five_characters_ten_drawings_of_each_in_support_and_ten_in_query(data):
    character, number = decoded(data.x)
    for client in (0, 299, 300, 399):
        rows = slice(*data.offsets[client : client + 2])
        of = [set(character[rows][data.y[rows] == way].tolist()) for way in range(5)]
        assert [len(found) for found in of] == [1] * 5
        assert len(set.union(*of)) == 5
        support = data.roles[rows] == 3
        assert np.bincount(number[rows][support], minlength=20).tolist() == [5] * 10 + [0] * 10
        assert np.bincount(number[rows][~support], minlength=20).tolist() == [0] * 10 + [5] * 10
        assert np.bincount(data.y[rows][support]).tolist() == [10] * 5


def test_held_out_characters_are_the_last_in_sorted_order(data):
    character, _ = decoded(data.x)
    trained = data.offsets[300]
    assert character[:trained].max() < 1_200 <= character[trained:].min()


def test_pixels_are_normalised_over_all_images(arrays, data):
    images = 255.0 * np.unpackbits(arrays["images"], axis=-1)
    flat = images.reshape(-1, 784)
    expected = (flat - flat.mean(axis=0)) / (flat.std(axis=0) + 0.001)
    place = 20 * int(decoded(data.x)[0][0]) + int(decoded(data.x)[1][0])
    assert data.x[0] == pytest.approx(expected[place], rel=1e-4, abs=1e-4)


def test_the_seed_draws_the_characters(arrays, data):
    again, other = omniglot.build(arrays, seed=0), omniglot.build(arrays, seed=1)
    assert again.fingerprint == data.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ({"readme.txt": b"other"}, r"holds no image such as images_background/Latin/character01/"),
        (
            {"images_background/Latin/character01/0001_01.png": b"GIF89a"},
            r"is damaged or no zip of Omniglot \(images_background/.* is no PNG file of 105 x 105",
        ),
        (
            {"images_background/Latin/character01/0001_01.png": png(np.ones((105, 105), bool))},
            r"the character Latin/character01 has 1 drawings and not 20",
        ),
    ],
)
def test_another_zip_hears_a_sentence(tmp_path, entries, sentence):
    place = tmp_path / "images_background.zip"
    with zipfile.ZipFile(place, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=sentence):
        omniglot.read({place.name: place})


def test_half_a_zip_hears_a_sentence(zips):
    place = zips["images_background.zip"]
    whole = place.read_bytes()
    place.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"is damaged or no zip of Omniglot \(File is not a zip"):
        omniglot.read(zips)


def test_too_few_characters_hear_a_sentence(arrays):
    few = {"images": arrays["images"][:1_000]}
    with pytest.raises(ValueError, match=r"hold 1000 characters, but more than 1205 are needed"):
        omniglot.build(few, seed=0)


def test_the_real_files(real):
    """1,623 characters of 20 drawings: 32,460 images."""
    paths = {file.name: real / file.place for file in omniglot.FILES}
    arrays = omniglot.read(paths)
    assert arrays["images"].shape == (1_623, 20, 98)
    assert arrays["characters"][0] == "Alphabet_of_the_Magi/character01"
