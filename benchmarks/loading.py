"""How long the public data sets take to load: the first time, and from the cache.

    python benchmarks/loading.py [REPEATS [NAME ...]]      3 unless given, and everything

Needs FAIRFL_DATA, the folder with the published files. Every first time is a fresh process with an
empty cache, and so is every other one, but with the cache that the first has left. The seconds are
those of `fairfl.datasets.load`, or of `fairfl datasets --json` from start to end, and do not count
the imports of a script before it loads anything. Prints a table of medians.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

LIMITS = {"adult": 3, "fashion-mnist": 5, "shakespeare": 10}
"""Seconds that the first time may take; the cache may take one."""

NAMES = (
    "adult",
    "fashion-mnist",
    "fashion-mnist-afl",
    "mnist",
    "omniglot",
    "sent140-subset",
    "shakespeare",
    "vehicle-subset",
)
LOAD = """
import sys, time, fairfl
began = time.perf_counter()
data = fairfl.datasets.load(sys.argv[1])
print(time.perf_counter() - began, len(data.y), data.x.nbytes / 1e6)
"""
CATALOGUE = "fairfl datasets --json"


def python(cache: Path, *words: str) -> str:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "FAIRFL_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, *words], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def loaded(name: str, cache: Path) -> tuple[float, str]:
    """Seconds, and what was loaded."""
    seconds, rows, megabytes = map(float, python(cache, "-c", LOAD, name).split())
    return seconds, f"{rows:,.0f} rows, {megabytes:,.0f} MB"


def listed(_: str, cache: Path) -> tuple[float, str]:
    """Seconds of the whole command, and how much it said."""
    began = time.perf_counter()
    said = python(cache, "-m", "fairfl", *CATALOGUE.split()[1:])
    return time.perf_counter() - began, f"{len(json.loads(said)['datasets'])} data sets"


def both(name: str, repeats: int) -> str:
    """A row of the table: medians of the first time and of that from the cache."""
    measured = listed if name == CATALOGUE else loaded
    first, again, what = [], [], ""
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            first.append(measured(name, Path(cache))[0])
            seconds, what = measured(name, Path(cache))
            again.append(seconds)
    limit = f"< {LIMITS[name]} s" if name in LIMITS else ""
    return f"| `{name}` | {what} | {median(first):.2f} s | {limit} | {median(again):.2f} s |"


def main(repeats: int, names: list[str]) -> None:
    print("| data set | what is loaded | first | aim | from the cache |\n|---|---|---|---|---|")
    for name in names or (*NAMES, CATALOGUE):
        print(both(name, repeats), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, sys.argv[2:])
