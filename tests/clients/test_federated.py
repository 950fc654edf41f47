"""Data of clients: rows back to back, one split per seed, and one sentence for every mistake."""

import re
from dataclasses import replace

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import fairfl
from conftest import made_up
from fairfl.clients.federated import (
    SPLITS,
    FederatedData,
    as_mapping,
    check_fractions,
    labels_of,
    split_sizes,
)
from fairfl.simulation.plan import cohort_of


def rows(n, start=0, features=2):
    """n rows that no other call with another start repeats."""
    return np.arange(start, start + n * features, dtype=np.float64).reshape(n, features)


def labelled(y, **options):
    """One client with these labels."""
    return fairfl.from_arrays({"a": (rows(len(y)), y)}, **options)


def numbered(sizes, **options):
    """Clients whose x says which row it is: client k's row i holds (k, i)."""
    pairs = {
        k: (np.stack([np.full(n, k), np.arange(n)], axis=1), np.arange(n) % 2)
        for k, n in enumerate(sizes)
    }
    return fairfl.from_arrays(pairs, **options)


def places(data, seed=0):
    """Every split of a seed that is evaluated, as sets of row numbers, client by client."""
    split = data.split(seed)[: len(SPLITS)]
    return [[set(part.of(k).tolist()) for part in split] for k in range(data.clients)]


def refusal(function, *args, **kwargs):
    """What a call is refused with: one line, one sentence."""
    with pytest.raises(ValueError, match=r"\A[^\n]+[^.\n]\Z") as caught:
        function(*args, **kwargs)
    assert not re.search(r"[.;?] [A-Z]", str(caught.value)), caught.value
    return str(caught.value)


def mistake(*args, **kwargs):
    return refusal(fairfl.from_arrays, *args, **kwargs)


@pytest.fixture
def unchecked(monkeypatch):
    """The package as its users run it, without the type checks that the tests switch on."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


# --- rows -----------------------------------------------------------------------------------------


def test_rows_lie_back_to_back_in_the_order_of_the_clients():
    given = {"b": (rows(3), [0, 1, 0]), "a": (rows(1, 50), [1]), 7: (rows(2, 90), [1, 0])}
    data = fairfl.from_arrays(given)
    assert data.ids == ("b", "a", 7)
    assert data.clients == 3
    assert data.offsets.tolist() == [0, 3, 4, 6]
    assert data.sizes.tolist() == [3, 1, 2]
    np.testing.assert_array_equal(data.x, np.concatenate([x for x, _ in given.values()]))
    assert data.y.tolist() == [0, 1, 0, 1, 1, 0]
    for id, (x, y) in as_mapping(data).items():
        np.testing.assert_array_equal(x, given[id][0])
        assert y.tolist() == list(given[id][1])


@pytest.mark.parametrize("ids", [(3, 1, 2), ("ü", " "), (("site", 1), ("site", 2)), (1, "1")])
def test_ids_are_kept_as_they_are(ids):
    data = fairfl.from_arrays({id: (rows(2), [0, 1]) for id in ids})
    assert data.ids == ids


def test_a_clients_parts_lie_together_and_keep_their_order():
    data = fairfl.from_arrays(
        train={"a": (rows(2), [0, 1]), "b": (rows(1, 10), [1])},
        validation={"b": (rows(1, 20), [0])},
        test={"b": (rows(2, 30), [1, 1]), "a": (rows(1, 40), [0])},
    )
    assert data.x[:, 0].tolist() == [0, 2, 40, 10, 20, 30, 32]
    assert data.roles.tolist() == [0, 0, 2, 0, 1, 2, 2]
    assert data.offsets.tolist() == [0, 3, 7]
    assert places(data) == [[{0, 1}, set(), {2}], [{3}, {4}, {5, 6}]]


def test_rows_may_have_any_shape():
    data = fairfl.from_arrays({"a": (np.zeros((4, 3, 2)), [0, 1, 0, 1])})
    assert data.x.shape == (4, 3, 2)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
def test_whole_numbers_stay_whole(kind):
    data = fairfl.from_arrays({"a": (np.arange(6, dtype=kind).reshape(3, 2), [0, 1, 1])})
    assert data.x.dtype == np.int32
    assert data.x.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_one_client_with_fractions_makes_all_rows_real():
    data = fairfl.from_arrays({"a": ([[1], [2]], [0, 1]), "b": ([[0.5]], [1])})
    assert data.x.dtype == np.float32
    assert data.x.tolist() == [[1], [2], [0.5]]


# --- labels ---------------------------------------------------------------------------------------

LABELS = {
    "numbers": ([5, 3, 5, 3], [3, 5], [1, 0, 1, 0], "binary"),
    "signs": ([-1, 1, 1, -1], [-1, 1], [0, 1, 1, 0], "binary"),
    "text": (["no", "yes", "maybe"], ["maybe", "no", "yes"], [1, 2, 0], "multiclass"),
    "truth": ([True, False], [False, True], [1, 0], "binary"),
    "whole floats": ([2.0, 0.0, 7.0], [0.0, 2.0, 7.0], [1, 0, 2], "multiclass"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_become_class_numbers_and_back(kind):
    given, classes, numbers, task = LABELS[kind]
    data = labelled(given)
    assert data.classes.tolist() == classes
    assert data.y.tolist() == numbers
    assert data.y.dtype == np.int32
    assert data.task == task
    assert labels_of(data, data.y).tolist() == given


def test_classes_are_those_of_all_clients_and_splits():
    data = fairfl.from_arrays(
        {"a": (rows(2), ["x", "z"]), "b": (rows(1), ["x"])}, test={"c": (rows(1), ["y"])}
    )
    assert data.classes.tolist() == ["x", "y", "z"]
    assert data.y.tolist() == [0, 2, 0, 1]


def test_fractions_as_labels_make_a_regression():
    data = fairfl.from_arrays({"a": (rows(2), [0, 1]), "b": (rows(2), [0.5, 2])})
    assert (data.task, data.classes) == ("regression", None)
    assert data.y.dtype == np.float32
    assert data.y.tolist() == [0, 1, 0.5, 2]
    assert "no classes" in refusal(labels_of, data, np.array([0], np.int32))


def test_the_task_can_be_said():
    regression = labelled([3, 4, 5], task="regression")
    assert (regression.task, regression.y.tolist()) == ("regression", [3, 4, 5])
    assert labelled([0, 1], task="multiclass").task == "multiclass"
    assert labelled([0.5, 1.5], task="binary").classes.tolist() == [0.5, 1.5]


# --- how many rows each split gets ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1, (1, 0, 0)),
        (2, (1, 0, 1)),
        (3, (2, 0, 1)),
        (5, (4, 0, 1)),
        (6, (4, 1, 1)),
        (10, (8, 1, 1)),
        (11, (8, 1, 2)),
        (1164, (931, 116, 117)),
    ],
)
def test_sizes_round_as_the_papers_code_does(n, expected):
    """80 % rounded down train, half of the others rounded down validate, the rest test."""
    assert split_sizes(n, (0.8, 0.1, 0.1)) == expected


def test_a_client_with_one_row_trains_on_it():
    """The paper's code gives such a client an empty training split (R9)."""
    for fractions in [(0.8, 0.1, 0.1), (0.01, 0.49, 0.5)]:
        assert split_sizes(1, fractions) == (1, 0, 0)


@pytest.mark.parametrize(
    ("n", "fractions", "expected"),
    [
        (100, (0.29, 0.71, 0.0), (29, 71, 0)),
        (100, (0.29, 0.0, 0.71), (29, 0, 71)),
        (50, (0.58, 0.42, 0.0), (29, 21, 0)),
        (7, (1.0, 0.0, 0.0), (7, 0, 0)),
    ],
)
def test_binary_fractions_lose_no_row_and_no_share_means_no_row(n, fractions, expected):
    """int(0.29 * 100) is 28."""
    assert split_sizes(n, fractions) == expected


@given(n=st.integers(1, 5000), parts=st.tuples(*[st.integers(0, 100)] * 3))
@settings(max_examples=300, deadline=None)
def test_sizes_add_up_and_stay_within_a_row_of_their_share(n, parts):
    parts = (parts[0] + 1, *parts[1:])
    fractions = tuple(part / sum(parts) for part in parts)
    train, validation, test = split_sizes(n, fractions)
    assert train + validation + test == n
    assert train >= 1
    assert min(validation, test) >= 0
    assert abs(train - fractions[0] * n) <= 1
    held_out = sum(parts[1:])
    if held_out:
        assert abs(validation - parts[1] / held_out * (n - train)) < 1


# --- the split of a seed --------------------------------------------------------------------------


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8), seed=st.integers(0, 2**64 - 1))
@settings(max_examples=60, deadline=None)
def test_every_row_is_in_one_split_of_its_own_client(sizes, seed):
    data = numbered([*sizes, 2])
    split = data.split(seed)
    for k, n in enumerate(data.sizes):
        parts = [part.of(k) for part in split]
        assert [len(part) for part in parts] == [*split_sizes(int(n), (0.8, 0.1, 0.1)), 0]
        everything = np.sort(np.concatenate(parts))
        assert everything.tolist() == list(range(data.offsets[k], data.offsets[k + 1]))
    for part in split:
        assert part.offsets[0] == 0
        assert part.sizes.sum() == len(part.places)


def test_a_seed_sets_the_split():
    """The paper's code and Flower's simulation have no seed that does (R6, F7)."""
    data = numbered([30, 30])
    assert places(data, 0) == places(numbered([30, 30]), 0)
    drawn = [str(places(data, seed)) for seed in range(20)]
    assert len(set(drawn)) == 20


def test_a_clients_split_does_not_depend_on_the_others():
    alone = numbered([25]).split(3)
    among = numbered([25, 400, 3, 90]).split(3)
    for a, b in zip(alone, among, strict=True):
        assert a.of(0).tolist() == b.of(0).tolist()
    before, after = numbered([9, 25]).split(3), numbered([30, 25, 8]).split(3)
    for a, b in zip(before, after, strict=True):
        assert (a.of(1) - 9).tolist() == (b.of(1) - 30).tolist()


def test_clients_of_one_size_are_split_apart():
    data = numbered([30] * 10)
    drawn = {tuple((data.split(0).test.of(k) - data.offsets[k]).tolist()) for k in range(10)}
    assert len(drawn) == 10


def test_every_row_is_held_out_equally_often():
    data = numbered([10])
    counts = np.zeros(10, int)
    for seed in range(3000):
        counts[data.split(seed).test.places] += 1
    assert stats.chisquare(counts).pvalue > 0.001


def test_a_split_is_row_numbers_over_the_one_copy_of_the_rows():
    data = numbered([20, 30])
    for part in data.split(0):
        assert part.places.dtype == np.int32
        assert data.x[part.of(1)][:, 0].tolist() == [1] * len(part.of(1))


def test_given_splits_hold_for_every_seed():
    pairs = {"a": (rows(6), [0, 1] * 3)}
    data = fairfl.from_arrays(pairs, validation={"a": (rows(2, 50), [0, 1])})
    assert data.fractions is None
    assert places(data, 0) == places(data, 1) == [[set(range(6)), {6, 7}, set()]]
    assert places(fairfl.from_arrays(pairs, test={})) == [[set(range(6)), set(), set()]]


def test_split_none_keeps_all_rows_for_training():
    assert places(numbered([5, 9], split=None)) == [
        [set(range(5)), set(), set()],
        [set(range(5, 14)), set(), set()],
    ]


# --- clients for evaluation only ------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_guests():
    """Four clients that train, and two that only validate or test."""
    known = as_mapping(made_up([10, 20, 30, 40]))
    draw = np.random.default_rng(1)
    guest = draw.normal(size=(7, 5)).astype(np.float32), draw.integers(3, size=7)
    return fairfl.from_arrays(known, validation={"early": guest}, test={**known, "late": guest})


@pytest.mark.parametrize("sampler", ["by-size", "uniform", "by-size-with-replacement"])
def test_an_evaluation_only_client_is_never_drawn(with_guests, sampler):
    assert with_guests.ids[4:] == ("early", "late")
    algorithm = fairfl.fedavg(sampler=sampler)
    drawn = {int(k) for t in range(100) for k in cohort_of(with_guests, algorithm, 2, 0, t)[0]}
    assert drawn == {0, 1, 2, 3}


def test_an_evaluation_only_client_is_evaluated(with_guests):
    model = fairfl.models.softmax_regression(with_guests)
    result = fairfl.train(with_guests, model, fairfl.fedavg(), rounds=2, cohort=4)
    assert result.clients("train")["client"].tolist() == list(with_guests.ids[:4])
    assert result.clients("validation")["client"].tolist() == ["early"]
    assert result.clients("test")["client"].tolist() == [*with_guests.ids[:4], "late"]
    assert result.missing("train") == ("early", "late")
    assert result.sampler == "everyone"


# --- support rows ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tasks():
    """Two tasks to train on, and two held out: rows to adapt on, then rows to be tested on."""
    return fairfl.from_arrays(
        train={"a": (rows(3), [0, 1, 0]), "b": (rows(2, 10), [1, 0])},
        test={"c": (rows(2, 20), [1, 1]), "d": (rows(1, 30), [0])},
        support={
            "a": (rows(1, 40), [1]),
            "c": (rows(2, 50), [0, 1]),
            "d": (rows(1, 60), [0]),
        },
    )


def test_support_rows_are_a_role_of_their_own(tasks):
    assert tasks.roles.tolist() == [0, 0, 0, 3, 0, 0, 2, 2, 3, 3, 2, 3]
    assert [tasks.split(0).support.of(k).tolist() for k in range(4)] == [[3], [], [8, 9], [11]]
    assert places(tasks) == [
        [{0, 1, 2}, set(), set()],
        [{4, 5}, set(), set()],
        [set(), set(), {6, 7}],
        [set(), set(), {10}],
    ]


def test_support_rows_are_neither_trained_on_nor_evaluated(tasks):
    model = fairfl.models.softmax_regression(tasks)
    result = fairfl.train(tasks, model, fairfl.fedavg(), rounds=1, cohort=2)
    assert result.clients("train")["size"].tolist() == [3, 2]
    assert result.clients("test")["client"].tolist() == ["c", "d"]
    assert result.clients("test")["size"].tolist() == [2, 1]


def test_without_support_rows_the_support_is_empty():
    assert numbered([9, 3]).split(0).support.sizes.tolist() == [0, 0]


def test_a_client_with_support_rows_alone():
    said = mistake({"a": GOOD}, support={"b": GOOD})
    assert said.startswith("client 'b' has support rows only, so it would neither train nor be ")


# --- the fingerprint ------------------------------------------------------------------------------

FIXED = {
    "x": np.array([[1.0, 2], [3, 4], [5, 6], [7, 8]], np.float32),
    "y": np.array([0, 1, 1, 0], np.int32),
    "offsets": np.array([0, 2, 4]),
    "ids": ("a", "b"),
    "task": "binary",
    "classes": np.array([0, 1]),
    "roles": np.array([0, 2, 0, 2], np.int8),
    "fractions": None,
}
CHANGES = {
    "a feature": {"x": FIXED["x"] + np.eye(4, 2, dtype=np.float32)},
    "the shape of x": {"x": FIXED["x"].reshape(4, 2, 1)},
    "the kind of x": {"x": FIXED["x"].view(np.int32)},
    "a label": {"y": np.array([0, 1, 0, 0], np.int32)},
    "whose rows": {"offsets": np.array([0, 1, 4])},
    "a name": {"ids": ("a", "c")},
    "the task": {"task": "multiclass"},
    "the classes": {"classes": np.array([-1, 1])},
    "a role": {"roles": np.array([0, 2, 2, 0], np.int8)},
    "no roles": {"roles": None},
    "the fractions": {"fractions": (0.5, 0.25, 0.25)},
    "embeddings": {"embeddings": np.eye(9, 3, dtype=np.float32)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_fingerprint_changes_with(change):
    data = FederatedData(**FIXED)
    assert replace(data, **CHANGES[change]).fingerprint != data.fingerprint


def test_the_fingerprint_is_that_of_the_content():
    data = FederatedData(**FIXED)
    again = FederatedData(**{name: np.copy(value) if isinstance(value, np.ndarray) else value
                             for name, value in FIXED.items()})  # fmt: skip
    assert again.fingerprint == data.fingerprint
    assert data.renamed("other").fingerprint == data.fingerprint
    assert data.renamed("other").name == "other"
    strided = replace(data, x=np.repeat(data.x, 2, axis=1)[:, ::2])
    assert strided.fingerprint == data.fingerprint


# --- mistakes -------------------------------------------------------------------------------------

GOOD = (rows(2), [0, 1])


def test_no_clients():
    assert mistake({}) == "there are no clients: `train` is empty; give at least one client"


def test_no_client_to_train():
    assert "`train` is empty" in mistake({}, test={"a": GOOD})


def test_a_client_without_rows():
    said = mistake({"a": GOOD, "b": (np.zeros((0, 2)), [])})
    assert said == "client 'b' has no rows; leave it out or give it at least one"


@pytest.mark.parametrize("x", [[1.0, 2.0], np.zeros(2), np.array(3.0)])
def test_x_without_a_row_per_example(x):
    said = mistake({"a": GOOD, "b": (x, [0, 1])})
    assert said.startswith(f"client 'b': x has shape {np.shape(x)}; ")
    assert "(rows, features)" in said


@pytest.mark.parametrize("y", [[0], [0, 1, 1], [[0], [1]], np.array(1)])
def test_labels_that_do_not_match_the_rows(y):
    said = mistake({"a": GOOD, "b": (rows(2), y)})
    assert said.startswith(f"client 'b': x has 2 rows but y has shape {np.shape(y)}; ")


@pytest.mark.parametrize("shape", [(2, 3), (2, 1), (2, 2, 1)])
def test_clients_with_different_features(shape):
    said = mistake({"a": GOOD, "b": (np.zeros(shape), [0, 1])})
    assert f"client 'b': a row of x has shape {shape[1:]} but client 'a' has (2,)" in said


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", ["train", "test"])
def test_a_feature_that_is_not_finite_is_named(bad, part):
    x = rows(3)
    x[2, 1] = bad
    pairs = {"train": {"a": GOOD, "b": GOOD}, "test": {}}
    pairs[part] = {**pairs[part], "c": (x, [0, 1, 1])}
    said = mistake(**pairs)
    assert said.startswith(f"client 'c': x[2, 1] is {bad}; fill in or drop missing")


def test_a_feature_inside_an_image_that_is_not_finite_is_named():
    x = np.zeros((2, 3, 3))
    x[1, 0, 2] = np.nan
    assert mistake({"a": (x, [0, 1])}).startswith("client 'a': x[1, 0, 2] is nan; ")


@pytest.mark.parametrize("large", [2**31, -(2**31) - 1])
def test_a_whole_number_that_int32_cannot_hold(large):
    """It must not come back as another number."""
    said = mistake({"a": GOOD, "b": (np.array([[0, 1], [large, 0]]), [0, 1])})
    assert "client 'b'" in said


@pytest.mark.parametrize("x", [[["1", "2"]] * 2, np.array([[1, None]] * 2), [[1j, 2]] * 2])
def test_features_that_are_not_real_numbers(x):
    assert "client 'b'" in mistake({"a": GOOD, "b": (x, [0, 1])})


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_label_that_is_not_finite(bad):
    said = mistake({"a": GOOD, "b": (rows(2), [0.0, bad])})
    assert said == "a label is NaN or infinite; drop rows without a label"


def test_a_label_that_is_missing():
    labels = np.array(["yes", None], object)
    assert "label" in mistake({"a": (rows(2), labels)})


@pytest.mark.parametrize("label", [1, "yes", True, 2.0])
def test_one_class_only(label):
    said = mistake({"a": (rows(2), [label] * 2), "b": (rows(1), [label])})
    assert said.startswith(f"every label is {label!r}; ")


def test_a_binary_task_with_three_classes():
    said = mistake({"a": (rows(3), [0, 1, 2])}, task="binary")
    assert said == "task='binary' but there are 3 different labels; use task='multiclass'"


def test_a_task_that_does_not_exist(unchecked):
    assert "task='ranking'" in mistake({"a": GOOD}, task="ranking")


@pytest.mark.parametrize(
    "split",
    [(0.8, 0.1, 0.2), (0.8, 0.1, 0.0), (0.0, 0.5, 0.5), (1.1, -0.1, 0.0), (np.nan, 0.5, 0.5)],
)
def test_fractions_that_do_not_make_a_split(split):
    said = mistake({"a": GOOD}, split=split)
    assert f"split={split} must be three fractions" in said
    assert "(0.8, 0.1, 0.1)" in said


def test_two_fractions(unchecked):
    assert "split=(0.8, 0.2) must be three fractions" in mistake({"a": GOOD}, split=(0.8, 0.2))


@pytest.mark.parametrize("split", [None, (1.0, 0.0, 0.0), (1 / 3, 1 / 3, 1 / 3), (0.7, 0.2, 0.1)])
def test_fractions_that_do(split):
    check_fractions(split)
    assert SPLITS == ("train", "validation", "test")
