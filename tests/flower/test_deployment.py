"""Real processes over loopback: what no Grid of this process can show."""

import os
from pathlib import Path

import numpy as np
import pytest

import fairfl
import federations
from fairfl.flower.loopback import Loopback

APP = Path(__file__).parent / "app"
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(
        [
            *map(str, (Path(fairfl.__file__).parents[1], APP.parents[1])),
            os.environ.get("PYTHONPATH", ""),
        ]
    )
}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deployment")
    with Loopback(folder, environment=ENVIRONMENT) as found:
        for k in range(3):
            found.start_node(k)
        yield found


def test_a_server_that_was_killed_ends_as_if_it_had_not_been(deployment, tmp_path):
    """Killed after two of three rounds and resumed: the bytes of a run that was left alone, and
    the simulator's model."""
    runs = {out: {"q": 5.0, "out": str(tmp_path / out)} for out in ("killed", "whole")}
    died = deployment.run(APP, dies=2, **runs["killed"])
    assert deployment.finished(died, 300) == "finished:failed"
    assert [*(tmp_path / "killed" / "checkpoints").glob("00000001-*.safetensors")]
    again = deployment.run(APP, resume=True, **runs["killed"])
    whole = deployment.run(APP, **runs["whole"])
    for run in (again, whole):
        assert deployment.finished(run, 300) == "finished:completed", deployment.log(run)
    for file in ("result.json", "parameters.safetensors", "record.safetensors"):
        one, other = (tmp_path / out / file for out in runs)
        assert one.read_bytes() == other.read_bytes(), file
    algorithm = fairfl.q_fedavg(q=5, sampler="everyone", **federations.FULL)
    data, model = federations.data(3), federations.model()
    simulated = fairfl.train(data, model, algorithm, rounds=3, cohort=3)
    found = fairfl.load_run(tmp_path / "killed")
    for name, leaf in simulated.params.items():
        np.testing.assert_allclose(found.params[name], leaf, atol=1e-5)
