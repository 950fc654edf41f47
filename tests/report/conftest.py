"""Runs that the reports are tested on, and the browser that opens them."""

import os
import shutil

import numpy as np
import pytest

import fairfl
from fairfl.cli import main
from fairfl.report.writing import write
from fairfl.runs import folder

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

HOSTILE = ("<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "a & b", "$x_1$|")


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="pages are opened by playwright")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def swept(tmp_path_factory):
    """The folder of `fairfl sweep synthetic`, a small one."""
    place = tmp_path_factory.mktemp("sweeps") / "synthetic"
    words = ["--clients=40", "--rounds=12", "--cohort=5", "--q=0,1", "--seeds=2", "--json"]
    assert main(["sweep", "synthetic", *words, f"--out={place}"]) == 0
    return place


@pytest.fixture(scope="session")
def adult(tmp_path_factory):
    """The folder of a sweep on the Adult table by occupation."""
    source = os.path.join(os.environ.get("FAIRFL_DATA", ""), "adult", "adult.data")
    if not os.path.exists(source):
        pytest.skip(
            "the Adult table is not here: set FAIRFL_DATA to a folder with adult/adult.data"
        )
    names = "age,work,weight,education,years,marital,occupation,relation,race,sex,gain,loss,hours"
    with open(source, encoding="utf-8") as stream:
        rows = [line.strip().replace(", ", ",") for line in stream if line.strip()][:4000]
    place = tmp_path_factory.mktemp("adult")
    table = place / "adult.csv"
    table.write_text("\n".join([f"{names},country,income", *rows]) + "\n", "utf-8")
    words = ["--client=occupation", "--label=income", "--rounds=8", "--q=0,1", "--seeds=2"]
    assert main(["sweep", str(table), *words, "--json", f"--out={place / 'sweep'}"]) == 0
    return place / "sweep"


def rows_of(count, seed, classes=2):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, 3)).astype(np.float32)
    return x, (x[:, 0] + 0.7 * draw.normal(size=count) > 0).astype(int) % classes


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """A family trained on clients whose names are code, written from Python."""
    data = fairfl.from_arrays({name: rows_of(30, k) for k, name in enumerate(HOSTILE)})
    model = fairfl.models.softmax_regression(data)
    result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=3, cohort=2, seed=[0, 1])
    return write(folder.write(result, tmp_path_factory.mktemp("hostile") / "run")).parent


@pytest.fixture(scope="session")
def many(tmp_path_factory):
    """One model and 10,000 clients."""
    data = fairfl.from_arrays({f"device-{k:05d}": rows_of(10, k) for k in range(10_000)})
    model = fairfl.models.softmax_regression(data)
    result = fairfl.train(data, model, fairfl.q_fedavg(q=[0, 1]), rounds=2, cohort=5)
    return write(folder.write(result, tmp_path_factory.mktemp("many") / "run")).parent
