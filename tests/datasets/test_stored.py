"""What is kept of published files: read once, made again whenever it does not serve."""

import os

import numpy as np
import pytest

from fairfl.datasets.stored import key, stored


@pytest.fixture
def paths(tmp_path):
    place = tmp_path / "source.txt"
    place.write_text("1 2 3")
    return {"source.txt": place}


class Reader:
    """Reads numbers, and counts how often."""

    times = 0

    def __call__(self, paths):
        self.times += 1
        numbers = np.array(paths["source.txt"].read_text().split(), np.int64)
        return {"numbers": numbers, "names": np.array(["a", "ß"])}


def kept_files(cache):
    return sorted(path.name for path in (cache / "fairfl" / "arrays").glob("*"))


def test_a_file_is_read_once(paths, cache):
    reader = Reader()
    first, second = stored("some", paths, reader), stored("some", paths, reader)
    assert reader.times == 1
    assert second["numbers"].tolist() == first["numbers"].tolist() == [1, 2, 3]
    assert second["names"].tolist() == ["a", "ß"]
    assert len(kept_files(cache)) == 1


def test_a_file_that_changed_is_read_again_and_what_was_kept_goes(paths, cache):
    reader = Reader()
    stored("some", paths, reader)
    paths["source.txt"].write_text("4 5 6")
    assert stored("some", paths, reader)["numbers"].tolist() == [4, 5, 6]
    assert len(kept_files(cache)) == 1


def test_the_key_sees_a_change_that_keeps_size_and_time(paths):
    before, state = key(paths), paths["source.txt"].stat()
    paths["source.txt"].write_text("1 2 4")
    os.utime(paths["source.txt"], ns=(state.st_atime_ns, state.st_mtime_ns))
    assert key(paths) != before


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: b"not a zip",
        lambda content: content.replace(np.int64(2).tobytes(), np.int64(9).tobytes(), 1),
    ],
    ids=["half", "empty", "another file", "a flipped number"],
)
def test_a_damaged_file_is_made_again(paths, cache, damage):
    reader = Reader()
    stored("some", paths, reader)
    (place,) = (cache / "fairfl" / "arrays").glob("*")
    content = place.read_bytes()
    assert damage(content) != content
    place.write_bytes(damage(content))
    assert stored("some", paths, reader)["numbers"].tolist() == [1, 2, 3]
    assert reader.times == 2
    assert stored("some", paths, reader)["numbers"].tolist() == [1, 2, 3]
    assert reader.times == 2


def test_a_write_that_fails_half_way_leaves_nothing_behind(paths, cache, monkeypatch):
    def full(file, **arrays):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", full)
    assert stored("some", paths, Reader())["numbers"].tolist() == [1, 2, 3]
    assert kept_files(cache) == []


def test_a_cache_that_cannot_be_written_costs_time_only(paths, cache):
    (cache / "fairfl").write_text("a file where the folder would be")
    reader = Reader()
    assert stored("some", paths, reader)["numbers"].tolist() == [1, 2, 3]
    assert stored("some", paths, reader)["numbers"].tolist() == [1, 2, 3]
    assert reader.times == 2


def test_nothing_is_kept_where_that_was_not_wanted(paths, cache, monkeypatch):
    monkeypatch.setenv("FAIRFL_CACHE", "0")
    stored("some", paths, Reader())
    assert not (cache / "fairfl").exists()
