"""New rows are scored by the chosen model, read as training read its own."""

import csv
import json

import jax.numpy as jnp
import numpy as np
import pytest
from tables_made_up import refusal

import fairfl
from fairfl.runs import folder
from fairfl.runs.request import MODELS
from fairfl.runs.scored import check_file, write_scored

COLUMNS = {"client": "hospital", "label": "back"}
NEW = "code,hospital,age,smoker,city\n007,A,30,yes,Ulm\n,B,50,no,Bonn\n1.10,A,,no,Ulm\n"


def visits(label=("no", "yes")):
    draw = np.random.default_rng(1)
    rows = [
        f"{k:03},{'AB'[k % 2]},{draw.integers(20, 80)},{draw.choice(['yes', 'no'])},"
        f"{draw.choice(['Ulm', 'Bonn'])},{label[int(draw.integers(2))]}"
        for k in range(40)
    ]
    return "code,hospital,age,smoker,city,back\n" + "\n".join(rows) + "\n"


def trained(write, out, model="softmax", text=None, **options):
    columns = {**COLUMNS, "features": ["age", "smoker", "city"], **options}
    data = fairfl.from_table(write(text or visits()), **columns)
    family = fairfl.q_fedavg(q=[0, 1], learning_rate=0.1, batch_size=5)
    made = MODELS[model](data)
    return fairfl.train(data, made, family, rounds=2, cohort=2, seed=[3, 4], out=out)


def by_hand(params, x, name):
    """Scores per row and class, in NumPy."""
    if name == "mlp":
        for layer in params[:-1]:
            x = np.maximum(x @ layer["weights"] + layer["bias"], 0)
        params = params[-1]
    return x @ params["weights"] + params["bias"]


@pytest.mark.parametrize("name", ["softmax", "mlp", "svm", "svm-mean"])
def test_the_folder_alone_gives_the_models_predictions(write, tmp_path, name):
    result = trained(write, tmp_path / "run", name)
    data = fairfl.from_table(write(visits()), **COLUMNS, features=["age", "smoker", "city"])
    labels = ["back"]  # the table again, in its own order
    rows = list(csv.DictReader(visits().splitlines()))
    found = fairfl.predict(
        tmp_path / "run", write(visits(), "new.csv"), experiment={"q": 1, "seed": 4}
    )
    x = data.preprocessing.apply(write(visits(), "new.csv")).x
    score = by_hand(result.members[3].params, x, name)
    if name.startswith("svm"):
        expected, probability = (score > 0).astype(int), None
    else:
        power = np.exp(score - score.max(axis=1, keepdims=True))
        expected, probability = score.argmax(axis=1), power / power.sum(axis=1, keepdims=True)
    assert found.label.tolist() == [("no", "yes")[k] for k in expected]
    assert found.experiment == {"q": 1.0, "learning_rate": 0.1, "seed": 4}
    if probability is None:
        assert list(found.columns) == ["prediction"]
    else:
        np.testing.assert_allclose(found.probability, probability, rtol=1e-5)
        assert list(found.columns) == ["prediction", "probability_no", "probability_yes"]
    # The labels are there too: how right it is per client, counted by hand.
    right = {h: [r[labels[0]] == p for r, p in zip(rows, found.label, strict=True)
                 if r["hospital"] == h] for h in "AB"}  # fmt: skip
    assert found.fairness is not None
    assert found.fairness.worst10 == pytest.approx(100 * min(map(np.mean, right.values())))
    assert found.fairness.average == pytest.approx(100 * np.mean([*right["A"], *right["B"]]))


def test_a_regression_gives_values(write, tmp_path):
    text = visits(label=("1.5", "20.25"))
    result = trained(write, tmp_path / "run", "mlp", text)
    found = fairfl.predict(tmp_path / "run", write(text, "new.csv"), experiment={"q": 0, "seed": 3})
    data = fairfl.from_table(write(text), **COLUMNS, features=["age", "smoker", "city"])
    x = data.preprocessing.apply(write(text)).x
    np.testing.assert_allclose(
        found.label, by_hand(result.members[0].params, x, "mlp")[:, 0], rtol=1e-4, atol=1e-6
    )
    assert list(found.columns) == ["prediction"]
    assert found.fairness is None


def test_the_chosen_model_of_a_sweep_is_the_one_that_scores(write, tmp_path):
    result = trained(write, None)
    kept = json.loads('{"hyperparameters": {"q": 1.0, "learning_rate": 0.1}}')
    run = folder.write(result, tmp_path / "run", choice=kept, preprocessing=preprocessing_of(write))
    found = fairfl.predict(run, write(NEW, "new.csv"))
    assert found.experiment == {"q": 1.0, "learning_rate": 0.1, "seed": 3}


def preprocessing_of(write):
    data = fairfl.from_table(write(visits()), **COLUMNS, features=["age", "smoker", "city"])
    return data.preprocessing.to_json()


@pytest.fixture
def run(write, tmp_path):
    trained(write, tmp_path / "run")
    return tmp_path / "run"


PLAIN = {"q": 0, "seed": 3}


def test_columns_are_written_as_they_were(run, write, tmp_path):
    table = write(NEW, "new.csv")
    found = fairfl.predict(run, table, experiment=PLAIN)
    written = write_scored(table, found, tmp_path / "scored.csv")
    rows = list(csv.DictReader(written.read_text().splitlines()))
    assert [row["code"] for row in rows] == ["007", "", "1.10"]
    assert [row["age"] for row in rows] == ["30", "50", ""]
    assert [row["prediction"] for row in rows] == found.label.tolist()
    given = [float(row["probability_yes"]) for row in rows]
    np.testing.assert_allclose(given, found.probability[:, 1], rtol=1e-6)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_parquet_keeps_types(run, write, tmp_path, arrow):
    pytest.importorskip("pyarrow.parquet", reason="reading Parquet needs pyarrow")
    table = write(NEW, "new.csv")
    found = fairfl.predict(run, table, experiment=PLAIN)
    written = arrow.parquet.read_table(write_scored(table, found, tmp_path / "scored.parquet"))
    assert written["age"].to_pylist() == [30.0, 50.0, None]
    assert written["prediction"].to_pylist() == found.label.tolist()


def test_a_frame_is_scored_too(run, pandas):
    frame = pandas.DataFrame({"age": [30, 50], "smoker": ["yes", "no"], "city": ["Ulm", "Ulm"]})
    assert len(fairfl.predict(run, frame, experiment=PLAIN).label) == 2


def test_what_training_never_saw_is_told(run, write):
    text = NEW.replace("Bonn", "Paris").replace(",B,", ",C,")
    found = fairfl.predict(run, write(text, "new.csv"), experiment=PLAIN)
    assert found.notes == [
        "Column 'city' holds what training never saw in 1 of 3 rows; they are scored by their "
        "other columns.",
        "1 clients in column 'hospital' took no part in training ('C'); the model was fitted to "
        "other clients.",
    ]


def test_client_and_label_may_be_absent(run, write):
    table = write("age,smoker,city\n30,yes,Ulm\n", "new.csv")
    found = fairfl.predict(run, table, experiment=PLAIN)
    assert (len(found.label), found.fairness, list(found.notes)) == (1, None, [])


def test_labels_that_training_did_not_know_cost_only_the_accuracy(run, write):
    table = write(NEW.replace("city\n", "city,back\n").replace("Ulm\n", "Ulm,perhaps\n"), "n.csv")
    table.write_text(table.read_text().replace("Bonn\n", "Bonn,no\n"))
    found = fairfl.predict(run, table, experiment=PLAIN)
    assert found.fairness is None
    assert "No accuracy is given: the label column 'back' holds 'perhaps'" in found.notes[0]


def test_a_file_without_a_header_line(write, tmp_path):
    names = ["code", "hospital", "age", "smoker", "city", "back"]
    bare = visits().split("\n", 1)[1]
    trained(write, tmp_path / "run", text=bare, columns=names)
    new = write("0,A,30,yes,Ulm,no\n1,B,50,no,Bonn,no\n", "new.csv")
    found = fairfl.predict(tmp_path / "run", new, experiment=PLAIN)
    rows = list(csv.reader(write_scored(new, found, tmp_path / "s.csv").read_text().splitlines()))
    assert rows[0][:6] == names
    assert [row[2] for row in rows[1:]] == ["30", "50"]
    other = write("age,city,smoker\n30,Ulm,yes\n50,Bonn,no\n", "other.csv")
    again = fairfl.predict(tmp_path / "run", other, experiment=PLAIN)
    np.testing.assert_array_equal(again.probability, found.probability)


def test_a_model_of_ones_own_is_given_in_python(write, tmp_path):
    data = fairfl.from_table(write(visits()), **COLUMNS, features=["age"])
    model = fairfl.models.from_functions(
        lambda key: {"w": jnp.zeros((1, 2))}, lambda params, x: x @ params["w"]
    )
    fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=2, out=tmp_path / "own")
    new = write(NEW, "new.csv")
    told = refusal(fairfl.predict, tmp_path / "own", new)
    assert "a model of your own, 'functions', which a folder does not keep" in told
    assert len(fairfl.predict(tmp_path / "own", new, model=model).label) == 3
    other = fairfl.models.softmax_regression(data)
    told = refusal(fairfl.predict, tmp_path / "own", new, model=other)
    assert "the model has a parameter 'bias' that the folder does not keep" in told


MISTAKES = {
    "a missing column": (NEW.replace("age", "years"), PLAIN, "new.csv lacks 'age', which training"),
    "another type": (NEW.replace(",30,", ",old,"), PLAIN, "column 'age'"),
    "no rows": (NEW.split("\n", maxsplit=1)[0] + "\n", PLAIN, "but no rows"),
    "no such q": (NEW, {"q": 7}, "no model in"),
    "no such name": (NEW, {"p": 7}, "have no p; they differ in q, learning_rate, seed"),
    "none is chosen": (NEW, None, "recommends none of its models; name one of 'q=0:learning_rate"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_one_sentence(run, write, mistake):
    text, experiment, expected = MISTAKES[mistake]
    assert expected in refusal(fairfl.predict, run, write(text, "new.csv"), experiment=experiment)


def test_a_run_on_a_data_set_by_name_reads_no_table(write, tmp_path, data, model):
    fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=2, out=tmp_path / "named")
    told = refusal(fairfl.predict, tmp_path / "named", write(NEW, "new.csv"))
    assert "was trained on arrays, which was no table" in told


def test_files_that_cannot_be_written_are_refused_before_scoring(run, write, tmp_path):
    there = write("x", "there.csv")
    assert "exists; add --overwrite" in refusal(check_file, there, overwrite=False)
    check_file(there, overwrite=True)
    assert "unknown format" in refusal(check_file, tmp_path / "a.xlsx", overwrite=False)
    table = write(NEW, "new.csv")
    found = fairfl.predict(run, table, experiment=PLAIN)
    gone = tmp_path / "nowhere" / "s.csv"
    assert "cannot write in" in refusal(write_scored, table, found, gone)


def test_a_column_called_prediction_is_not_written_over(run, write, tmp_path):
    table = write(NEW.replace("code", "prediction"), "new.csv")
    found = fairfl.predict(run, table, experiment=PLAIN)
    told = refusal(write_scored, table, found, tmp_path / "s.csv")
    assert "has a column 'prediction' already" in told
