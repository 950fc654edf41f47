"""Data sets by name: what a wrong request hears, and what the catalogue says."""

import dataclasses
import inspect

import numpy as np
import pytest

from fairfl.clients.federated import from_arrays
from fairfl.datasets import (
    PAPER_Q,
    Defaults,
    defaults,
    describe,
    load,
    names,
    registry,
    synthetic,
)
from fairfl.datasets.files import File
from fairfl.datasets.statistics import statistics

GENERATED = ("synthetic", "synthetic-iid", "synthetic-hybrid")
FILED = (
    "vehicle",
    "vehicle-subset",
    "adult",
    "fashion-mnist-afl",
    "fashion-mnist",
    "mnist",
    "omniglot",
    "shakespeare",
    "sent140",
    "sent140-subset",
)


def test_the_names():
    assert names() == GENERATED + FILED


@pytest.mark.parametrize("name", GENERATED)
def test_loading_gives_the_data_its_name(name):
    data = load(name, clients=4)
    assert (data.name, data.clients) == (name, 4)


@pytest.mark.parametrize("name", GENERATED)
def test_loading_passes_the_seed_on(name):
    assert load(name, seed=3).fingerprint == load(name, seed=3).fingerprint
    assert load(name, seed=3).fingerprint != load(name).fingerprint
    assert load(name).fingerprint == load(name, seed=0).fingerprint


def test_loading_passes_the_options_on():
    data = load("synthetic", seed=1, alpha=2, beta=0.5, clients=7, sizes="heavy")
    expected = synthetic.synthetic(1, alpha=2, beta=0.5, clients=7, sizes="heavy")
    assert data.fingerprint == expected.fingerprint


def test_the_options_named_are_the_options_taken():
    generators = {
        "synthetic": synthetic.synthetic,
        "synthetic-iid": synthetic.synthetic_iid,
        "synthetic-hybrid": synthetic.synthetic_hybrid,
    }
    for dataset in registry._DATASETS[: len(generators)]:
        _, *taken = inspect.signature(generators[dataset.name]).parameters
        assert dataset.options == tuple(taken)


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (
            {"name": "sythetic-iid"},
            r"there is no data set 'sythetic-iid'; did you mean 'synthetic-iid' or .*\? "
            r"the known ones are synthetic, synthetic-iid, synthetic-hybrid, ",
        ),
        ({"name": "SYNTHETIC_HYBRID"}, r"did you mean 'synthetic-hybrid'"),
        (
            {"name": "weather"},
            r"there is no data set 'weather'; the known ones are synthetic, ",
        ),
        (
            {"name": "synthetic", "client": 5},
            r"'synthetic' has no option 'client'; the options it has are "
            r"alpha, beta, clients, sizes$",
        ),
        (
            {"name": "synthetic-iid", "alpha": 1.0},
            r"'synthetic-iid' has no option 'alpha'; the options it has are clients, sizes$",
        ),
        ({"name": "synthetic", "clients": 0}, r"clients=0 must be a whole number of at least 1"),
        ({"name": "synthetic-iid", "clients": -3}, r"clients=-3 must be"),
        ({"name": "synthetic-hybrid", "clients": 2.5}, r"clients=2.5 must be a whole number"),
        ({"name": "synthetic", "alpha": -1}, r"alpha=-1 must be a standard deviation"),
        ({"name": "synthetic", "beta": float("nan")}, r"beta=nan must be .* at least 0"),
        ({"name": "synthetic", "beta": float("inf")}, r"beta=inf must be a .* finite number"),
        ({"name": "synthetic", "sizes": "huge"}, r"sizes='huge' .* use 'paper' .* or 'heavy'"),
        ({"name": "synthetic", "seed": -1}, r"seed=-1 must be a whole number from 0"),
        ({"name": "synthetic", "seed": 2**64}, r"seed=18446744073709551616 must be"),
    ],
)
def test_a_wrong_request_hears_a_sentence(request_, sentence):
    with pytest.raises(ValueError, match=sentence):
        load(**request_)


def test_a_folder_in_the_place_of_a_file_hears_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRFL_OFFLINE", "1")
    (tmp_path / "adult" / "adult.data").mkdir(parents=True)
    with pytest.raises(
        ValueError, match=r"adult.data' is a folder, but the data set 'adult' needs"
    ):
        load("adult", data_dir=tmp_path)


def test_a_file_in_the_place_of_the_data_folder_hears_a_sentence(tmp_path):
    place = tmp_path / "adult.data"
    place.write_text("39, Private\n")
    with pytest.raises(
        ValueError, match=r"the data folder '.*adult.data' is a file; name the fold"
    ):
        load("adult", data_dir=place)


def test_the_catalogue_counts_what_is_loaded(tmp_path):
    found = describe(tmp_path)
    for description in found[: len(GENERATED)]:
        data = load(description.name)
        assert (description.clients, description.rows) == (data.clients, len(data.y))
        assert description.present
    for description in found[len(GENERATED) :]:
        assert (description.clients, description.present) == (None, False)
    assert tuple(description.name for description in found) == names()


def test_every_entry_says_where_it_comes_from_in_one_line(tmp_path):
    for description in describe(tmp_path):
        for text in (description.title, description.source, description.licence):
            assert text
            assert "\n" not in text


def entry(present, loaded):
    def read(seed, data_dir):
        loaded.append((seed, data_dir))
        return from_arrays({"a": ([[1.0], [2.0]], [0, 1])})

    def counted(folder):
        return statistics(read(0, folder)), {}

    words = ("filed", "a title", "a source", "a licence")
    return registry.DataSet(*words, read, (), present, counted)


def with_entry(monkeypatch, dataset):
    monkeypatch.setattr(registry, "_DATASETS", (dataset,))
    monkeypatch.setattr(registry, "_BY_NAME", {dataset.name: dataset})


def test_a_set_of_files_is_one_more_value(monkeypatch, tmp_path):
    loaded = []
    with_entry(monkeypatch, entry(lambda folder: folder == tmp_path, loaded))
    (description,) = describe(str(tmp_path))
    assert (description.title, description.source, description.licence) == (
        "a title",
        "a source",
        "a licence",
    )
    assert (description.clients, description.rows, description.present) == (1, 2, True)
    assert load("filed", seed=4, data_dir=tmp_path).name == "filed"
    assert loaded == [(0, tmp_path), (4, tmp_path)]
    with pytest.raises(ValueError, match="has no option 'clients'; the options it has are none"):
        load("filed", clients=3)


def test_what_is_not_present_is_described_without_being_loaded(monkeypatch, tmp_path):
    loaded = []
    with_entry(monkeypatch, entry(lambda folder: False, loaded))
    (description,) = describe(tmp_path)
    assert (description.clients, description.rows, description.present) == (None, None, False)
    assert loaded == []


def test_the_papers_settings():
    assert PAPER_Q == (0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 15)
    for name in ("synthetic", "synthetic-iid", "synthetic-hybrid"):
        assert dataclasses.asdict(defaults(name)) == {
            "algorithm": "q-fedavg",
            "model": "softmax",
            "learning_rate": 0.1,
            "inner_learning_rate": 0.1,
            "batch_size": 10,
            "cohort": 10,
            "epochs": 1,
            "rounds": 10_000,
            "q": 1.0,
        }


def test_the_comparison_with_afl_takes_full_gradients_of_everyone():
    for name, clients in {"adult": 2, "fashion-mnist-afl": 3}.items():
        found = defaults(name)
        assert (found.algorithm, found.model, found.cohort) == ("q-fedsgd", "softmax", clients)
    assert (defaults("adult").learning_rate, defaults("adult").rounds) == (0.1, 600)
    assert defaults("fashion-mnist-afl").learning_rate == 0.001


def test_own_data_has_settings_to_begin_with():
    assert defaults("visits.parquet") == Defaults()
    assert Defaults().rounds < defaults("synthetic").rounds


def test_the_catalogue_has_the_numbers_that_the_real_files_are_known_by(real):
    """The checks of the files' provenance and the paper's table, counted from what is loaded."""
    found = {description.name: description for description in describe(real)}
    synthetic_, adult_ = found["synthetic"], found["adult"]
    assert (round(synthetic_.mean), round(synthetic_.deviation)) == (127, 73)
    assert adult_.splits == {"train": 32_561, "validation": 0, "test": 16_281, "support": 0}
    assert found["vehicle-subset"].labels == {"-1": 837, "1": 1_023}
    assert set(found["fashion-mnist"].labels.values()) == {7_000}
    pixels = found["fashion-mnist"].holds
    assert round(pixels["mean of pixels"], 4) == 0.2860
    assert round(pixels["deviation of pixels"], 4) == 0.3530
    assert found["omniglot"].holds == {"characters": 1_623, "images": 32_460}
    plays = found["shakespeare"].holds
    assert (plays["plays"], plays["roles"], plays["samples"]) == (36, 1_129, 4_226_159)
    assert found["sent140-subset"].holds == {
        "tweets": 37_582,
        "accounts": 33_212,
        "accounts with 10 or more tweets": 22,
    }


def test_what_was_counted_is_kept(tmp_path, monkeypatch):
    def build(arrays, seed):
        return from_arrays({"a": (arrays["x"], [0, 1, 1])})

    path = tmp_path / "some" / "x.txt"
    path.parent.mkdir()
    path.write_text("3")
    made_up = registry.published(
        "made-up",
        "",
        "",
        "",
        (File("some", "x.txt"),),
        lambda paths: {"x": np.ones((int(paths["x.txt"].read_text()), 2))},
        build,
        whole=lambda arrays: {"lines": len(arrays["x"])},
    )
    first = made_up.counted(tmp_path)
    assert (first[0].rows, first[0].labels, first[1]) == (3, {"0": 1, "1": 2}, {"lines": 3})
    monkeypatch.setattr(registry, "statistics", lambda data: pytest.fail("counted again"))
    assert made_up.counted(tmp_path) == first
