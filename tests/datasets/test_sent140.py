"""Sent140: accounts as clients, the reference's words, fixed vectors, from CSV and LEAF JSON."""

import gzip
import json

import numpy as np
import pytest

import fairfl
from fairfl.datasets.sent140 import CSV, words_of

VECTORS = {"good": [1.0, 2.0], "bad": [-1.0, 0.5], ",": [0.25, 0.0], "café": [4.0, 4.0]}
ROW = '"{}","{}","Mon Apr 06 22:19:45 PDT 2009","NO_QUERY","{}","{}"\r\n'
TWEETS = [
    (4, "zoe", "good, good"),
    (0, "Bob", "bad day"),
    (4, "zoe", "Good " + "bad " * 30),
    (0, "zoe", 'a ""quoted"" café'),
    (4, "Bob", "good"),
]


def put(folder, name, tweets=TWEETS):
    rows = [ROW.format(polarity, n, user, text) for n, (polarity, user, text) in enumerate(tweets)]
    content = gzip.compress("".join(rows).encode("iso-8859-1"))
    (folder / "sent140" / f"{name}.gz").write_bytes(content)


def put_vectors(folder, name="glove.6B.100d.subset.txt", vectors=VECTORS):
    lines = [f"{word} {' '.join(map(str, numbers))}\n" for word, numbers in vectors.items()]
    (folder / "glove" / name).write_text("".join(lines), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sent140").mkdir()
    (tmp_path / "glove").mkdir()
    put(tmp_path, CSV)
    put_vectors(tmp_path)
    return tmp_path


def load(folder, name="sent140", least=1, **options):
    return fairfl.datasets.load(name, data_dir=folder, least=least, **options)


def known(data, row):
    """The vectors of a row's words, as far as GloVe has them."""
    vectors = data.embeddings[data.x[row]]
    return vectors[vectors.any(axis=1)].tolist()


def test_accounts_are_clients_in_sorted_order_with_their_tweets_in_that_of_the_file(folder):
    data = load(folder)
    assert (data.ids, data.sizes.tolist()) == (("Bob", "zoe"), [2, 3])
    assert data.classes[data.y].tolist() == ["negative", "positive", *["positive"] * 2, "negative"]
    assert (data.task, data.fractions) == ("binary", (0.8, 0.1, 0.1))


def test_a_tweet_is_25_words_and_each_has_its_vector(folder):
    data = load(folder)
    assert data.x.shape == (5, 25)
    assert known(data, 0) == [VECTORS["bad"]]
    assert known(data, 2) == [VECTORS["good"], VECTORS[","], VECTORS["good"]]
    assert known(data, 4) == [VECTORS["café"]]


def test_a_capital_makes_a_word_unknown_and_what_follows_25_words_is_cut(folder):
    assert known(load(folder), 3) == [VECTORS["bad"]] * 24


def test_words_are_those_of_the_reference():
    assert words_of("I'm @home... 4ever!") == ["I'm", "home", ".", ".", ".", "4ever", "!"]


def test_only_words_of_the_accounts_that_are_there_have_vectors(folder):
    assert sorted(load(folder, least=3).embeddings.tolist()) == sorted(
        [*VECTORS.values(), [0.0, 0.0]]
    )
    two = load(folder, clients=1, least=1)
    assert len(two.embeddings) == len(np.unique(two.x))


@pytest.mark.parametrize(("polarities", "as_"), [((0, 4), str), ((0, 1), int)])
def test_leaf_json_is_as_good(folder, polarities, as_):
    expected = load(folder)
    for row in ("mytrain", "mytest"):
        users = {}
        for polarity, user, text in TWEETS[:3] if row == "mytrain" else TWEETS[3:]:
            pair = users.setdefault(user, {"x": [], "y": []})
            pair["x"].append(["1", "Mon", "NO_QUERY", user, text.replace('""', '"'), "training"])
            pair["y"].append(as_(polarities[polarity == 4]))
        counts = [len(pair["y"]) for pair in users.values()]
        leaf = {"users": list(users), "num_samples": counts, "user_data": users}
        (folder / "sent140" / f"{row}.json").write_text(json.dumps(leaf))
    (folder / "sent140" / f"{CSV}.gz").unlink()
    assert load(folder).fingerprint == expected.fingerprint


def test_vectors_of_300_dimensions_go_before_others(folder):
    put_vectors(folder, "glove.6B.300d.txt", {"good": [7.0] * 300})
    put_vectors(folder, "glove.6B.50d.txt", {"good": [3.0] * 50})
    assert load(folder).embeddings.shape[1] == 300
    assert load(folder).embeddings.max() == 7


def test_the_subset_says_so_and_has_a_minimum_of_its_own(folder):
    tweets = [(4, "six", "good")] * 6 + [(0, "five", "bad")] * 5 + [(0, "seven", "bad")] * 7
    put(folder, "training.partial.processed.noemoticon.csv", tweets)
    data = fairfl.datasets.load("sent140-subset", data_dir=folder)
    assert (data.name, data.ids) == ("sent140-subset", ("seven", "six"))
    split = data.split(0)
    assert min(split.validation.sizes.min(), split.test.sizes.min()) == 1
    with pytest.raises(ValueError, match=r"least=31, but the largest of 2 accounts has 3 tweets"):
        fairfl.datasets.load("sent140", data_dir=folder)


@pytest.mark.parametrize(
    ("vectors", "sentence"),
    [
        (
            {"good": ["one", "two"]},
            r"subset.txt' has no word and its numbers in line 1; put a file",
        ),
        ({"good": [1.0], "bad": [1.0, 2.0]}, r"no file of GloVe vectors: it has \[1, 2\] numbers"),
        ({"nobody": [1.0]}, r"no file of GloVe vectors: it has no numbers for the words of the tw"),
    ],
)
def test_another_file_of_vectors_hears_a_sentence(folder, vectors, sentence):
    put_vectors(folder, vectors=vectors)
    with pytest.raises(ValueError, match=sentence):
        load(folder)


def test_a_row_with_other_cells_hears_a_sentence(folder):
    (folder / "sent140" / CSV).write_text('"0","1","date","NO_QUERY","zoe"\n')
    (folder / "sent140" / f"{CSV}.gz").unlink()
    with pytest.raises(ValueError, match=r"has 5 cells in row 1 and not 6; copy or download it ag"):
        load(folder)


def test_the_real_part(real):
    data = fairfl.datasets.load("sent140-subset", data_dir=real)
    assert (data.clients, len(data.y), data.sizes.min()) == (85, 738, 6)
    assert data.embeddings.shape[1] == 100
    assert fairfl.datasets.load("sent140-subset", data_dir=real, least=1).clients == 33_212
    assert fairfl.datasets.load("sent140-subset", data_dir=real, least=10).clients == 22
