"""Sent140 (Go et al., 2009): is a tweet happy or sad? A client is an account.

The labels were the smileys, which were then removed. The q-FFL paper has 1,101 accounts and 58,170
tweets, drawn without a seed by LEAF (Caldas et al., 2018) from the accounts with more than 30; here
a seed draws 1,101 of them whose mean and deviation are those of the paper.

A tweet is its first 25 words, in the order of LEAF's pattern: letters, digits and apostrophes that
follow each other, or one of . , ! ? ; and what is missing is filled with the unknown word. Case
stays, as in the reference code, so that a capitalised word is unknown to GloVe's small letters.
Every word has its GloVe vector (Pennington et al., 2014), which is not trained; the unknown word's
is zero.
"""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int32

from fairfl.clients.federated import FederatedData
from fairfl.clients.leaf import users
from fairfl.datasets.files import File, Paths, opened
from fairfl.datasets.matched import Number, Published, at_least, chosen_clients
from fairfl.datasets.stored import Arrays

CSV = "training.1600000.processed.noemoticon.csv"
TWEETS = File(
    "sent140",
    CSV,
    "https://cs.stanford.edu/people/alecmgo/trainingandtestdata.zip",
    "sha256:004a3772c8a7ff9bbfeb875880f47f0679d93fc63e5cf9cff72d54a8a6162e57",
    member=CSV,
)
GLOVE = File(
    "glove",
    "glove.6B.300d.txt",
    "https://nlp.stanford.edu/data/glove.6B.zip",
    "sha256:617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb",
    member="glove.6B.300d.txt",
    others=(
        "glove.6B.200d.txt",
        "glove.6B.100d.txt",
        "glove.6B.50d.txt",
        "glove.6B.100d.subset.txt",
    ),
)
FILES = (TWEETS, GLOVE)
LEAF = (File("sent140", "mytrain.json"), File("sent140", "mytest.json"), GLOVE)
SUBSET = (File("sent140", "training.partial.processed.noemoticon.csv"), GLOVE)
LEAF_SUBSET = (File("sent140", "leaf_all_data_niid_05_keep_3_test_9.json"), GLOVE)

WORDS = 25
WORD = re.compile(r"[\w']+|[.,!?;]")
CLASSES = np.array(["negative", "positive"])
POSITIVE = ("4", "1")
"""Polarity as it is published, and as LEAF writes it."""

ACCOUNT, TEXT, CELLS = 4, 5, 6

PUBLISHED = Published(clients=1_101, samples=58_170, deviation=32)
LEAST = 31
"""Tweets of the smallest account: the paper's are those with more than 30."""

LEAST_OF_SUBSET = 6
"""The fewest of which one is left to validate on and one to test on."""


class Tweet(NamedTuple):
    account: str
    positive: bool
    text: str


def read(paths: Paths) -> Arrays:
    """Every account's tweets as numbers of words, accounts in sorted order; the vectors of those
    words that GloVe knows, in its order, and zeros for the unknown one, which comes last."""
    vectors = next(path for name, path in paths.items() if name.startswith("glove"))
    tweets = [tweet for path in paths.values() if path != vectors for tweet in _tweets(path)]
    tweets.sort(key=lambda tweet: tweet.account)
    numbers, words = _numbered(tweet.text for tweet in tweets)
    places, embeddings = _embedded(vectors, words)
    ids, sizes = np.unique([tweet.account for tweet in tweets], return_counts=True)
    return {
        "words": places[numbers],
        "positive": np.array([tweet.positive for tweet in tweets]),
        "sizes": sizes,
        "ids": ids,
        "embeddings": embeddings,
    }


def whole(arrays: Arrays) -> dict[str, int | float]:
    """What the file holds, of which `build` draws a part."""
    sizes = arrays["sizes"]
    return {
        "tweets": int(sizes.sum()),
        "accounts": len(sizes),
        "accounts with 10 or more tweets": int((sizes >= 10).sum()),
    }


def build(
    arrays: Arrays, seed: int, clients: Number | None = None, least: Number = LEAST
) -> FederatedData:
    """Accounts with at least `least` tweets: 1,101 of them as in the paper, or as many as
    `clients`; every seed of a run splits each account's tweets 80 / 10 / 10, as the paper does."""
    chosen = chosen_clients(arrays["sizes"], clients, least, PUBLISHED, seed, "accounts", "tweets")
    return _of_accounts(arrays, chosen)


def build_subset(arrays: Arrays, seed: int, least: Number = LEAST_OF_SUBSET) -> FederatedData:  # noqa: ARG001
    """All accounts with at least `least` tweets: nothing is drawn, and nothing is like the paper's
    accounts, which a part of the tweets does not have whole."""
    return _of_accounts(arrays, at_least(arrays["sizes"], least, "accounts", "tweets"))


def words_of(text: str) -> list[str]:
    """The words of a tweet as LEAF and the reference code tell them apart, the first 25.

    >>> from fairfl.datasets.sent140 import words_of
    >>> words_of("@switchfoot Awww, that's a bummer.  ;D")
    ['switchfoot', 'Awww', ',', "that's", 'a', 'bummer', '.', ';', 'D']
    """
    return WORD.findall(text)[:WORDS]


def _of_accounts(arrays: Arrays, chosen: np.ndarray) -> FederatedData:
    """The tweets of these accounts, and the vectors of the words in them."""
    rows = np.flatnonzero(
        np.isin(np.repeat(np.arange(len(arrays["sizes"])), arrays["sizes"]), chosen)
    )
    used, words = np.unique(arrays["words"][rows], return_inverse=True)
    return FederatedData(
        x=words.reshape(-1, WORDS).astype(np.int32),
        y=arrays["positive"][rows].astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(arrays["sizes"][chosen])]),
        ids=tuple(arrays["ids"][chosen].tolist()),
        task="binary",
        classes=CLASSES,
        fractions=(0.8, 0.1, 0.1),
        embeddings=arrays["embeddings"][used],
    )


# ---- tweets ----


def _tweets(path: Path) -> Iterable[Tweet]:
    return _of_leaf(path) if ".json" in path.suffixes else _of_csv(path)


def _of_csv(path: Path) -> Iterator[Tweet]:
    """The original file: polarity, number, date, query, account and text, all in quotes."""
    with opened(path) as stream, io.TextIOWrapper(stream, "iso-8859-1", newline="") as lines:
        for number, cells in enumerate(csv.reader(lines), 1):
            if len(cells) != CELLS:
                raise ValueError(
                    f"{str(path)!r} has {len(cells)} cells in row {number:,} and not {CELLS}; copy "
                    "or download it again"
                )
            yield Tweet(cells[ACCOUNT], cells[0] in POSITIVE, cells[TEXT])


def _of_leaf(path: Path) -> Iterator[Tweet]:
    """What LEAF makes of that file: x has the cells from the second on, y the polarity."""
    for account, (rows, labels) in users([path]).items():
        for cells, label in zip(rows, labels, strict=True):
            yield Tweet(str(account), str(label) in POSITIVE, str(cells[TEXT - 1]))


def _numbered(texts: Iterable[str]) -> tuple[Int32[np.ndarray, "tweets words"], list[str]]:
    """The words of each text as numbers, in the order in which they are met; number 0 fills up."""
    numbers: dict[str, int] = defaultdict(lambda: len(numbers) + 1)
    rows = []
    for text in texts:
        found = [numbers[word] for word in words_of(text)]
        rows.append(found + [0] * (WORDS - len(found)))
    return np.array(rows, np.int32).reshape(-1, WORDS), list(numbers)


# ---- vectors of words ----


def _embedded(
    path: Path, words: list[str]
) -> tuple[Int32[np.ndarray, " words"], Float32[np.ndarray, "known dimensions"]]:
    """Which vector each word has, after that of the filling, and the vectors of a GloVe file."""
    wanted = {word: number for number, word in enumerate(words, 1)}
    found: dict[int, list[float]] = {}
    with opened(path) as stream:
        for number, line in enumerate(stream, 1):
            word, _, rest = line.decode(errors="replace").partition(" ")
            if word in wanted:
                found[wanted[word]] = _vector(path, number, rest)
    places = np.full(len(words) + 1, len(found), np.int32)
    places[list(found)] = np.arange(len(found))
    return places, np.array([*found.values(), [0.0] * _dimensions(path, found)], np.float32)


def _vector(path: Path, number: int, words: str) -> list[float]:
    try:
        return [float(word) for word in words.split()]
    except ValueError:
        raise ValueError(
            f"{str(path)!r} has no word and its numbers in line {number:,}; put a file of GloVe "
            "vectors there"
        ) from None


def _dimensions(path: Path, vectors: Mapping[int, list[float]]) -> int:
    found = {len(vector) for vector in vectors.values()}
    if len(found) != 1 or 0 in found:
        raise ValueError(
            f"{str(path)!r} is no file of GloVe vectors: it has {sorted(found) or 'no'} numbers "
            "for the words of the tweets; every line is a word and as many numbers as all others"
        )
    return found.pop()
