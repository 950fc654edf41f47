"""A sweep that is killed goes on to the bytes of one that was left alone.

The processes are killed from outside with SIGKILL, which nothing in them hears.
"""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fairfl

SOURCE = os.path.dirname(os.path.dirname(fairfl.__file__))

SWEEP = '''
import os
import sys
import time
import fairfl
from fairfl.runs import keeping
from fairfl.simulation import engine

keeping.SECONDS, keeping.SHARE, engine.SECONDS = 0, 1e9, 0
folder, cut = sys.argv[1], sys.argv[2]
fsync, chunks = os.fsync, []


def half_written(descriptor):
    """Of the first file of the kind to be cut, half is written, and then nothing happens."""
    name = os.readlink(f"/proc/self/fd/{descriptor}")
    if len(chunks) > 4 and "/checkpoints/" in name:
        with open(name, "rb") as file:
            kind = "manifest" if file.read(1) == b"{" else "state"
        if kind == cut:
            os.truncate(name, os.path.getsize(name) // 2)
            print("cut", flush=True)
            time.sleep(600)
    fsync(descriptor)


def chunk(progress):
    chunks.append(progress)
    print("chunk", flush=True)


os.fsync = half_written
data = fairfl.datasets.load("synthetic", clients=20)
model = fairfl.models.softmax_regression(data)
family = fairfl.q_fedavg(q=[0, 1])
fairfl.train(
    data, model, family, rounds=12, cohort=5, seed=[0, 1], evaluate_every=4, out=folder,
    resume=True, on_chunk=chunk,
)
print("finished", flush=True)
'''


def killed(folder, lines, cut=""):
    """Started, and killed when it has printed so many lines; 0 lets it finish."""
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    process = subprocess.Popen(
        [sys.executable, "-c", SWEEP, folder, cut],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    assert process.stdout
    said = []
    with process:
        for line in process.stdout:
            said.append(line.strip())
            if len(said) == lines or said[-1] == "cut":
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == (0 if lines == 0 and not cut else -signal.SIGKILL), said
    return said


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    data = fairfl.datasets.load("synthetic", clients=20)
    model = fairfl.models.softmax_regression(data)
    family = fairfl.q_fedavg(q=[0, 1])
    options = {"rounds": 12, "cohort": 5, "seed": [0, 1], "evaluate_every": 4}
    fairfl.train(data, model, family, out=folder, **options)
    return folder


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc to see what is written")
def test_three_kills_change_no_bit(whole, tmp_path):
    """At a random moment, while a state is written, and while a manifest is."""
    folder = tmp_path / "run"
    moment = random.Random(0).randint(2, 8)
    assert len(killed(folder, lines=moment)) == moment
    for what in ("state", "manifest"):
        assert killed(folder, lines=0, cut=what)[-1] == "cut"
        assert list((folder / "checkpoints").glob(".fairfl-*"))
    assert killed(folder, lines=0)[-1] == "finished"
    found, expected = files(folder), files(whole)
    assert found.keys() == expected.keys()
    for name in found.keys() - {"timings.json"}:
        assert found[name] == expected[name], name
