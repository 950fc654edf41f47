"""Folders of the tests' own: no test reads or writes the user's data or cache by accident."""

import os
from pathlib import Path

import pytest

REAL = os.environ.get("FAIRFL_DATA")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """An empty cache for each test."""
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    return place


@pytest.fixture
def real():
    """The folder of the real files."""
    if not REAL:
        pytest.skip("FAIRFL_DATA does not say where the real files are")
    return Path(REAL)
