"""A comparison's folder: a run per method, refused where it must be, gone on with where it can."""

import json
from contextlib import nullcontext

import pytest

import fairfl
from fairfl.comparison.folder import COMPARISON, Shelf
from fairfl.comparison.json import as_object
from fairfl.runs.lock import taken

HOW = {"rounds": 4, "cohort": 3, "evaluate_every": 2, "seeds": 2}
BOTH = {"fedavg": fairfl.fedavg(), "q:1": fairfl.q_fedavg(q=[0, 1])}


@pytest.fixture
def place(tmp_path):
    return tmp_path / "both"


def timeless(found):
    return {name: value for name, value in as_object(found).items() if name != "seconds"}


def contents(place):
    return {
        str(file.relative_to(place)): file.read_bytes()
        for file in sorted(place.rglob("*"))
        if file.is_file() and file.name != "timings.json"
    }


def test_a_folder_holds_a_run_per_method_and_what_puts_them_side_by_side(data, model, place):
    found = fairfl.compare(data, model, BOTH, **HOW, out=place)
    assert sorted(child.name for child in place.iterdir()) == [COMPARISON, "fedavg", "q-1"]
    assert fairfl.load_run(place / "q-1").experiments == found.results["q:1"].experiments
    told = json.loads((place / COMPARISON).read_text())
    assert (told["finished"], told["baseline"]) == (True, "fedavg")
    assert [one["folder"] for one in told["methods"]] == ["fedavg", "q-1"]
    assert timeless(fairfl.load_comparison(place)) == timeless(found)


def test_the_same_comparison_gives_the_same_bytes(data, model, tmp_path):
    for name in ("a", "b"):
        fairfl.compare(data, model, BOTH, **HOW, out=tmp_path / name)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_an_interrupted_comparison_goes_on_to_the_same_bytes(data, model, tmp_path):
    fairfl.compare(data, model, BOTH, **HOW, out=tmp_path / "whole")
    torn = tmp_path / "torn"

    def stop(progress):
        if progress.group.task.algorithm.name == "q-fedavg":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fairfl.compare(data, model, BOTH, **HOW, out=torn, watch=lambda *_: nullcontext(stop))
    assert (torn / "fedavg" / "result.json").is_file()
    with pytest.raises(ValueError, match="unfinished, 1 of 2 methods are still to be trained"):
        fairfl.load_comparison(torn)
    fairfl.compare(data, model, BOTH, **HOW, out=torn, resume=True)
    assert contents(torn) == contents(tmp_path / "whole")


def test_resume_adds_a_method_and_trains_the_others_no_more(data, model, place):
    fairfl.compare(data, model, {"fedavg": BOTH["fedavg"]}, **HOW, out=place)
    trained = []

    def watch(name, method):
        return nullcontext(lambda progress: trained.append(name))

    found = fairfl.compare(data, model, BOTH, **HOW, out=place, resume=True, watch=watch)
    assert (set(trained), found.methods) == ({"q:1"}, ("fedavg", "q:1"))


def test_resume_refuses_another_run_of_a_method(data, model, place):
    fairfl.compare(data, model, BOTH, **HOW, out=place)
    other = {**HOW, "rounds": 2}
    with pytest.raises(ValueError, match=r"fedavg: the folder .* holds another run: it has rounds"):
        fairfl.compare(data, model, BOTH, **other, out=place, resume=True)


def test_overwrite_replaces_a_comparison_with_all_its_methods(data, model, place):
    fairfl.compare(data, model, BOTH, **HOW, out=place)
    fairfl.compare(data, model, {"fedavg": BOTH["fedavg"]}, **HOW, out=place, overwrite=True)
    assert sorted(child.name for child in place.iterdir()) == [COMPARISON, "fedavg"]


def test_a_folder_that_is_there_is_refused(data, model, place):
    fairfl.compare(data, model, {"fedavg": BOTH["fedavg"]}, **HOW, out=place)
    with pytest.raises(ValueError, match="exists; add --resume to go on with it, or --overwrite"):
        fairfl.compare(data, model, BOTH, **HOW, out=place)


@pytest.mark.parametrize("option", ["resume", "overwrite"])
def test_what_is_no_comparison_is_left_alone(data, model, place, option):
    place.mkdir()
    (place / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match="something other than a comparison"):
        fairfl.compare(data, model, BOTH, **HOW, out=place, **{option: True})
    assert (place / "thesis.tex").read_text() == "mine"


def test_what_another_process_trains_in_is_not_replaced(place):
    (place / "fedavg" / "checkpoints").mkdir(parents=True)
    (place / COMPARISON).write_text("{}")
    lock = taken(place / "fedavg" / "checkpoints" / "lock")
    with lock, pytest.raises(ValueError, match="another process trains in the folder"):
        Shelf(place, overwrite=True).begin(["fedavg"], "fedavg", [])


def test_a_comparison_that_fails_at_its_first_method_leaves_no_folder(data, model, place):
    def fail(progress):
        raise ValueError("no")

    with pytest.raises(ValueError, match="fedavg: no"):
        fairfl.compare(data, model, BOTH, **HOW, out=place, watch=lambda *_: nullcontext(fail))
    assert not place.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"resume": True, "overwrite": True}, "choose one of them"),
        ({"folder": None, "resume": True}, "say with --out in which folder it is"),
    ],
)
def test_contradictions_are_refused(place, words, message):
    with pytest.raises(ValueError, match=message):
        Shelf(**{"folder": place, **words}).check()


def test_what_is_not_a_comparison_is_not_loaded(place):
    with pytest.raises(ValueError, match="is not a comparison's folder, which holds a comparison"):
        fairfl.load_comparison(place)
