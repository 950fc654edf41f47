"""The JSON object: its names, its numbers, and that any parser reads it."""

import json

import numpy as np
import pytest

import fairfl
from fairfl.runs.json import as_object, plain, text


@pytest.fixture(scope="module")
def result(data, model):
    family = fairfl.q_fedavg(q=[0, 1])
    return fairfl.train(data, model, family, rounds=2, cohort=3, seed=[0, 3])


def refuse(word):
    raise AssertionError(f"{word} is not JSON")


def test_the_names_are_those_that_programs_depend_on(result):
    found = as_object(result, {"hyperparameters": {"q": 1.0}, "qualified": True, "reason": "r"})
    assert list(found) == [
        "schema",
        "dataset",
        "rounds",
        "seconds",
        "experiments",
        "chosen",
        "notes",
    ]
    assert (found["schema"], found["dataset"], found["rounds"]) == (1, "arrays", 2)
    assert found["chosen"] == {"hyperparameters": {"q": 1.0}, "qualified": True, "reason": "r"}
    experiment = found["experiments"][3]
    assert experiment["algorithm"] == "q-fedavg"
    assert experiment["hyperparameters"] == {"q": 1.0, "learning_rate": 0.1}
    assert (experiment["seed"], experiment["sampler"]) == (3, "by-size")
    assert (experiment["weights"], experiment["stopped"]) == ("size", False)
    assert list(experiment["splits"]) == ["train", "validation", "test"]


def test_the_numbers_are_the_results_own(result):
    found = json.loads(text(as_object(result)))
    for split in ("train", "validation", "test"):
        fairness, clients = result.fairness(split), result[2].clients(split)
        ours = found["experiments"][2]["splits"][split]
        for name in fairfl.Fairness._fields:
            assert ours[name] == fairness[name][2]
        assert list(ours["clients"]) == clients["client"].tolist()
        for k, client in enumerate(ours["clients"].values()):
            assert client == {
                name: clients[name][k].item() for name in ("accuracy", "loss", "size")
            }


def test_a_client_without_rows_is_left_out_and_so_is_a_split(model):
    x, y = np.ones((4, 5)), np.arange(4) % 3
    data = fairfl.from_arrays({"a": (x, y), "b": (x, y)}, test={"b": (x, y)})
    result = fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=1)
    splits = as_object(result)["experiments"][0]["splits"]
    assert list(splits["test"]["clients"]) == ["b"]
    assert splits["validation"] is None


def test_clients_1_and_text_1_stay_two(model):
    x, y = np.ones((4, 5)), np.arange(4) % 3
    data = fairfl.from_arrays({1: (x, y), "1": (x, y)}, split=None)
    result = fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=1)
    clients = as_object(result)["experiments"][0]["splits"]["train"]["clients"]
    assert list(clients) == ["1", "'1'"]


def test_what_is_not_finite_is_null():
    assert plain([np.nan, np.float32(np.inf), 1.5, np.int64(3), True, None, "NaN"]) == [
        None,
        None,
        1.5,
        3,
        True,
        None,
        "NaN",
    ]
    assert json.loads(text({"a": {"b": -np.inf}}), parse_constant=refuse) == {"a": {"b": None}}


def test_the_text_ends_with_one_newline():
    assert text({"client": "Köln"}) == '{\n  "client": "K\\u00f6ln"\n}\n'
