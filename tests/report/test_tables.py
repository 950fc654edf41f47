"""Tables as a reader sees them: every figure, whole, on 80 columns."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

import fairfl
from fairfl.datasets import describe, names
from fairfl.report import tables
from fairfl.report.progress import Meter, shown
from fairfl.simulation.engine import Progress


@pytest.fixture(scope="module")
def result(data, model):
    family = fairfl.q_fedavg(q=[0, 1])
    return fairfl.train(data, model, family, rounds=2, cohort=3, seed=[0, 1])


def rendered(table, width=80):
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(table)
    return console.file.getvalue()


def row_of(text, first):
    return next(line.split() for line in text.splitlines() if line.split()[:1] == [first])


def test_the_family_shows_means_and_deviations_over_seeds(result):
    found = result.fairness("test")
    row = row_of(rendered(tables.family(result)), "1")
    average, variance = (found[name][[1, 3]] for name in ("average", "variance"))
    assert row[1:3] == [f"{average.mean():.1f}", f"±{average.std(ddof=1):.1f}"]
    assert row[7:9] == [f"{variance.mean():.0f}", f"±{variance.std(ddof=1):.0f}"]
    assert len(row) == 1 + 2 * len(tables.METRICS)


def test_the_family_of_one_seed_has_no_deviation(data, model):
    result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=1, cohort=3)
    text = rendered(tables.family(result))
    assert "±" not in text
    assert row_of(text, "1")[1] == f"{result.fairness('test')['average'][1]:.1f}"


def test_hyper_parameters_that_do_not_vary_are_not_columns(result):
    assert "rate" not in rendered(tables.family(result))


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize("rates", [[0.1], [0.1, 0.25]])
def test_the_family_fits_80_columns(data, model, seeds, rates):
    family = fairfl.q_fedavg(q=[0, 0.001], learning_rate=rates)
    seed = list(range(seeds))
    text = rendered(tables.family(fairfl.train(data, model, family, rounds=1, cohort=3, seed=seed)))
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    for heading in ("average", "variance", "KL nats"):
        assert heading in text


def test_one_experiment_fits_80_columns_with_every_split(result):
    text = rendered(tables.single(result[0]))
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    for split in ("train", "validation", "test"):
        found = result[0].fairness(split)
        row = row_of(text, split)
        assert row[1] == str(len(result[0].clients(split)["client"]))
        assert row[2:5] == [f"{found[m][0]:.1f}" for m in ("average", "worst10", "best10")]


def test_a_split_without_rows_has_no_row(data, model):
    x, y = np.ones((6, 5)), np.arange(6) % 3
    data = fairfl.from_arrays({"a": (x, y), "b": (x, y)}, split=None)
    result = fairfl.train(data, model, fairfl.fedavg(), rounds=1, cohort=1)
    text = rendered(tables.single(result))
    assert "train" in text
    assert "validation" not in text


def test_regression_speaks_of_losses(data):
    draw = np.random.default_rng(0)
    data = fairfl.from_arrays(
        {k: (draw.normal(size=(20, 3)), draw.normal(size=20)) for k in range(4)}
    )
    model = fairfl.models.mlp(data, hidden=(4,))
    result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=2, cohort=2, seed=[0, 1])
    text = rendered(tables.family(result))
    assert text.startswith("Test loss over clients")
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    plain = tables.plain_model(result, {"q": 1.0, "learning_rate": 0.1})
    assert "average loss of" in plain
    assert "%" not in plain


def test_the_heading_names_sampler_and_weights(result, data):
    text = "\n".join(tables.heading(result, "softmax regression", cohort=3))
    assert f"q-fedavg on arrays: softmax regression, 10 clients, {len(data.y)} rows" in text
    assert "sampler by-size, weights size, 2 rounds of 3 clients, seeds 0 to 1" in text
    assert "learning rate 0.1, trained in" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_full_cohort_is_called_all_clients(data, model):
    result = fairfl.train(data, model, fairfl.fedavg(weights="equal"), rounds=1, cohort=10)
    text = "\n".join(tables.heading(result, model.name, cohort=10))
    assert "sampler everyone, weights equal, 1 rounds of all clients, seed 0" in text


def test_the_plain_model_is_the_one_beside_the_chosen(data, model):
    family = fairfl.q_fedavg(q=[0, 1], learning_rate=[1e-9, 0.3])
    result = fairfl.train(data, model, family, rounds=20, cohort=3)
    found = result.fairness("test")
    text = tables.plain_model(result, {"q": 1.0, "learning_rate": 0.3})
    assert f"{found['average'][0]:.1f}" != f"{found['average'][1]:.1f}"
    assert f"average accuracy of {found['average'][1]:.1f} %" in text
    assert f"{found['worst10'][1]:.1f} % for the worst tenth" in text


def test_the_catalogue_names_every_data_set_its_source_and_licence():
    found = describe("an empty folder")
    text = rendered(tables.catalogue(found)) + "\n".join(tables.sources(found))
    for description in found:
        assert description.name in text
        assert description.source in text
        assert description.licence in text
    assert max(map(len, rendered(tables.catalogue(found)).splitlines())) <= 80


def test_what_is_not_here_says_which_file_to_put_where(tmp_path):
    told = {line.split()[0]: line for line in tables.absent(describe(tmp_path), tmp_path)}
    assert set(told) == set(names()) - {"synthetic", "synthetic-iid", "synthetic-hybrid"}
    assert "it is downloaded when it is first loaded; or put adult/adult.data" in told["adult"]
    assert "adult/adult.test into " + repr(str(tmp_path)) in told["adult"]
    assert "downloaded" not in told["sent140-subset"]
    assert "or else vehicle/mytrain.json and vehicle/mytest.json, into" in told["vehicle"]


class Group:
    """What the meter sees of a group of experiments; `evaluated` holds accuracies per split."""

    def __init__(self, done, members, **evaluated):
        self.done, self.places = done, tuple(range(members))
        splits = [evaluated.get(split) for split in ("train", "validation", "test")]
        found = tuple(one and [fairfl.fairness(one)] * members for one in splits)
        self.fairness = {done: found} if evaluated else {}


def test_progress_counts_the_rounds_of_every_experiment():
    meter, one, two = Meter(total=300), Group(10, 2), Group(10, 1)
    meter(Progress(10, 200, 1.0, one))
    meter(Progress(20, 200, 2.0, two))
    one.done = 60
    meter(Progress(70, 200, 3.0, one))
    assert meter.done == 130
    assert meter.rate == (130 - 20) / 2.0


def test_progress_shows_rounds_per_second_on_a_terminal():
    screen = io.StringIO()
    console = Console(file=screen, width=80, force_terminal=True, legacy_windows=False)
    with shown(200, console) as meter:
        trained = Group(10, 2)
        meter(Progress(10, 100, 1.0, trained))
        trained.done = 60
        meter(Progress(60, 100, 2.0, trained))
        meter.bar.refresh()
    assert "100 rounds/s" in screen.getvalue()
    assert "60%" in screen.getvalue()


def test_progress_shows_how_the_models_serve_so_far():
    screen = io.StringIO()
    console = Console(file=screen, width=80, force_terminal=True, legacy_windows=False)
    with shown(200, console) as meter:
        one = Group(10, 2, train=[10, 10], test=[40, 80])
        two = Group(10, 2, train=[10, 10], test=[60, 100])
        meter(Progress(10, 100, 1.0, one))
        meter(Progress(20, 100, 2.0, two))
        meter.bar.refresh()
    assert "average 70.0, worst 10% 50.0" in screen.getvalue()


def test_progress_fits_80_columns():
    screen = io.StringIO()
    console = Console(file=screen, width=80, force_terminal=True, legacy_windows=False)
    with shown(10**6, console) as meter:
        one, two = Group(10, 2), Group(40_000, 20, test=[100, 100])
        meter(Progress(10, 100, 1.0, one))
        meter(Progress(20, 100, 2.0, two))
        meter.bar.refresh()
        drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    last = [line for line in re.split(r"[\r\n]", drawn) if "rounds/s" in line][-1]
    assert "800,000 rounds/s" in last
    assert last.rstrip().endswith("average 100., worst 10% 100.")
    assert len(last) <= 80


def test_progress_is_silent_elsewhere():
    screen = io.StringIO()
    with shown(200, Console(file=screen)) as meter:
        meter(Progress(10, 100, 1.0, Group(10, 2)))
    assert screen.getvalue() == ""
