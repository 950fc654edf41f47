"""Small made-up federations that the tests share, and what they need to write tables."""

import numpy as np
import pytest

import fairfl


def made_up(sizes, features=5, classes=3, seed=0, **options):
    """Clients of the given sizes whose labels follow a noisy linear rule of their own."""
    draw = np.random.default_rng(seed)
    clients = {}
    for k, n in enumerate(sizes):
        x = draw.normal(size=(n, features)).astype(np.float32)
        rule = draw.normal(size=(features, classes))
        clients[f"client-{k}"] = (x, np.argmax(x @ rule, axis=1))
    return fairfl.from_arrays(clients, **options)


SIZES = [1, 3, 7, 12, 20, 33, 40, 58, 75, 110]


@pytest.fixture(scope="session")
def data():
    return made_up(SIZES)


@pytest.fixture(scope="session")
def two_classes():
    return made_up(SIZES, classes=2)


@pytest.fixture(scope="session")
def model(data):
    return fairfl.models.softmax_regression(data)


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No test fetches a file of a data set from anywhere but itself."""
    monkeypatch.setenv("FAIRFL_OFFLINE", "1")


@pytest.fixture
def write(tmp_path):
    """Writes a file and returns its path."""

    def write(text, name="visits.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow", reason="Arrow tables need pyarrow")


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas", reason="pandas frames need pandas")
