"""LEAF JSON: what comes in, that it goes out the same, and one sentence per mistake."""

import gzip
import json

import numpy as np
import pytest

import fairfl
from fairfl.clients.characters import ALPHABET
from fairfl.clients.leaf import is_leaf


def leaf(rows, **changes):
    """LEAF JSON of {user: (x, y)}."""
    data = {user: {"x": x, "y": y} for user, (x, y) in rows.items()}
    counts = [len(pair["y"]) for pair in data.values()]
    found = {"users": list(data), "num_samples": counts, "user_data": data} | changes
    return json.dumps({key: value for key, value in found.items() if value is not None})


SENSORS = {
    "f_1": ([[1.5, 0.0], [2.5, 1.0], [3.5, 0.0]], [[1], [-1], [1]]),
    "f_0": ([[0.5, 1.0]], [[-1]]),
}
HELD_OUT = {"f_1": ([[9.5, 9.0]], [[-1]]), "f_2": ([[7.5, 7.0]], [[1]])}


def mistake(path, **options):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        fairfl.from_leaf(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_file_keeps_its_clients_in_their_order(write):
    data = fairfl.from_leaf(write(leaf(SENSORS), "mytrain.json"))
    assert (data.ids, data.sizes.tolist()) == (("f_1", "f_0"), [3, 1])
    assert data.x.tolist() == [[1.5, 0], [2.5, 1], [3.5, 0], [0.5, 1]]
    assert (data.classes.tolist(), data.y.tolist()) == ([-1, 1], [1, 0, 1, 0])
    assert (data.name, data.fractions, data.roles) == ("mytrain", (0.8, 0.1, 0.1), None)


def test_a_packed_file_is_as_good(write):
    plain = fairfl.from_leaf(write(leaf(SENSORS), "a.json"))
    packed = fairfl.from_leaf(write(gzip.compress(leaf(SENSORS).encode()), "b.json.gz"))
    assert plain.fingerprint == packed.fingerprint


def test_train_and_test_folders_are_the_split(write, tmp_path):
    write(leaf(SENSORS), "train/a.json")
    write(leaf(HELD_OUT), "test/a.json")
    data = fairfl.from_leaf(tmp_path)
    assert data.ids == ("f_1", "f_0", "f_2")
    assert data.roles.tolist() == [0, 0, 0, 2, 0, 2]
    assert data.x[data.split(0).test.places].tolist() == [[9.5, 9], [7.5, 7]]


def test_fractions_put_train_and_test_together_as_the_papers_code_does(write, tmp_path):
    write(leaf(SENSORS), "train/a.json")
    write(leaf(HELD_OUT), "test/a.json")
    data = fairfl.from_leaf(tmp_path, split=(0.5, 0.25, 0.25))
    assert (data.sizes.tolist(), data.roles) == ([4, 1, 1], None)
    assert data.fractions == (0.5, 0.25, 0.25)


def test_a_folder_of_files_is_all_their_clients(write, tmp_path):
    write(leaf({"f_1": SENSORS["f_1"]}), "all_data_0.json")
    write(leaf({"f_0": SENSORS["f_0"]}), "all_data_1.json")
    assert fairfl.from_leaf(tmp_path).ids == ("f_1", "f_0")


def test_a_user_without_rows_is_left_out(write):
    path = write(leaf(SENSORS | {"nobody": ([], [])}), "a.json")
    assert fairfl.from_leaf(path).ids == ("f_1", "f_0")


def test_text_becomes_the_numbers_of_its_characters(write):
    rows = {"HAMLET": (["To be", "o be,"], [",", " "]), "GHOST": (["Mark "], ["m"])}
    data = fairfl.from_leaf(write(leaf(rows), "a.json"))
    assert (data.x.dtype, data.x.shape, len(data.classes)) == (np.uint8, (3, 5), 80)
    assert ["".join(ALPHABET[n] for n in row) for row in data.x] == ["To be", "o be,", "Mark "]
    assert data.classes[data.y].tolist() == [",", " ", "m"]


@pytest.mark.parametrize("labels", [[0, 1, 1], ["no", "yes", "yes"], [0.25, 1.5, 2.0]])
def test_what_goes_out_comes_in_again(tmp_path, labels):
    x = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    data = fairfl.from_arrays({"a": (x, labels), "b": (x + 1, labels)})
    fairfl.to_leaf(data, tmp_path)
    assert fairfl.from_leaf(tmp_path).fingerprint == data.fingerprint


def test_a_fixed_split_goes_out_and_comes_in_again(tmp_path):
    images = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
    pair = (images, [0, 1])
    data = fairfl.from_arrays(
        {"a": pair}, validation={"a": pair}, test={"a": pair, "b": pair}, support={"b": pair}
    )
    fairfl.to_leaf(data, tmp_path)
    again = fairfl.from_leaf(tmp_path)
    assert again.fingerprint == data.fingerprint
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "support",
        "test",
        "train",
        "validation",
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[1, 2]", "is no LEAF JSON: it has no 'user_data'; a table of rows is read with"),
        (leaf(SENSORS)[:60], "is no complete JSON file"),
        (leaf(SENSORS, users=["f_1", "f_1"]), "lists the client 'f_1' twice; list it once"),
        (leaf(SENSORS, users=["f_1"]), "lists 1 users, 2 numbers of samples and the data of 2"),
        (
            leaf(SENSORS, num_samples=[3, 2]),
            "client 'f_0' has 1 rows of x and 1 labels and num_samples says 2; export it again",
        ),
        (leaf({"a": ([[1], [2]], [0])}, num_samples=None), "2 rows of x and 1 labels; export"),
        (leaf({}, user_data={"a": {"x": []}}, users=["a"], num_samples=[0]), "has no 'x' or no"),
        (leaf({"a": ([[1], [2, 3]], [0, 1])}), "the rows of x have different lengths"),
        (leaf({"a": (["ab", "abc"], [0, 1])}), "texts of different lengths, which are not numbers"),
        (leaf({"a": ([[1], ["x"]], [0, 1])}), "x holds str"),
        (leaf({"a": ([[1], [None]], [0, 1])}), "x holds object values, which are not real"),
    ],
)
def test_a_mistake_is_one_sentence(write, content, expected):
    assert expected in mistake(write(content, "a.json"))


def test_a_client_in_two_files_is_a_mistake(write, tmp_path):
    write(leaf(SENSORS), "a.json")
    write(leaf(SENSORS), "b.json")
    assert "the client 'f_1' is in" in mistake(tmp_path)


def test_a_path_without_leaf_is_a_mistake(write, tmp_path):
    write("hello", "folder/notes.txt")
    assert "holds no LEAF JSON; put files that end in .json into it" in mistake(tmp_path / "folder")
    assert "there is no file or folder" in mistake(tmp_path / "nowhere")
    (tmp_path / "alone").mkdir()
    write(leaf(SENSORS), "alone/test/a.json")
    assert "has no folder 'train'" in mistake(tmp_path / "alone")


def test_half_a_packed_file_is_a_mistake(write):
    packed = gzip.compress(leaf(SENSORS).encode())
    assert "is no complete JSON file (Compressed file ended" in mistake(
        write(packed[: len(packed) // 2], "a.json.gz")
    )


def test_leaf_is_told_from_a_table(write, tmp_path):
    assert is_leaf(write(leaf(SENSORS), "leaf/a.json"))
    assert is_leaf(tmp_path / "leaf")
    assert not is_leaf(write('{"client": 1, "users": 2}\n', "rows/a.jsonl"))
    assert not is_leaf(write('[{"client": 1}]', "rows/b.json"))
    assert not is_leaf(tmp_path / "rows")
    assert not is_leaf(write("broken", "c.json.gz"))
