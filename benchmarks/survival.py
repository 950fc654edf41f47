"""Does a sweep survive SIGKILL? Twenty kills, each followed by a resumed run.

    python benchmarks/survival.py [KILLS]      20 unless given

Every trial starts `fairfl sweep`, kills it, goes on with --resume, and compares every file of the
folder but timings.json with the uninterrupted sweep's. Odd trials are killed at a random moment,
even ones while a file of a checkpoint is being written. Prints a line for each, and fails if any
byte differs.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SWEEP = (
    "sweep synthetic --clients 30 --rounds 400 --cohort 5 --q 0,1,5 --seeds 3 --evaluate-every 50"
)

OFTEN = (
    "import sys; from fairfl.runs import keeping; keeping.SECONDS = 0; keeping.SHARE = 0.5; "
    "from fairfl.simulation import engine; engine.SECONDS = 0.05; "
    "from fairfl.cli import main; sys.exit(main())"
)
"""The command with a checkpoint after every chunk, and with short chunks."""


def start(folder: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", OFTEN, *SWEEP.split(), "--out", str(folder), "--resume"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL)


def finished(folder: Path) -> float:
    began = time.perf_counter()
    if start(folder).wait():
        raise SystemExit(f"the sweep in {folder} failed")
    return time.perf_counter() - began


def killed_at(folder: Path, seconds: float) -> str:
    """Killed so many seconds after its start."""
    process = start(folder)
    time.sleep(seconds)
    process.kill()
    return f"killed after {seconds:4.1f} s" if process.wait() else "had finished"


def killed_while_writing(folder: Path, after: float) -> str:
    """Killed as soon as a file of a checkpoint is seen unfinished, some time after its start."""
    process, began = start(folder), time.perf_counter()
    place = folder / "checkpoints"
    while process.poll() is None:
        late = time.perf_counter() - began > after
        if late and place.is_dir() and any(f.startswith(".fairfl-") for f in os.listdir(place)):
            process.kill()
            break
    return "killed while writing" if process.wait() else "had finished"


def content(folder: Path) -> dict[str, bytes]:
    return {f.name: f.read_bytes() for f in folder.iterdir() if f.name != "timings.json"}


def main(kills: int) -> None:
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as parent:
        whole = Path(parent, "whole")
        finished(whole)
        seconds = finished(Path(parent, "again"))
        print(f"an uninterrupted sweep takes {seconds:.1f} s")
        same = 0
        for trial in range(1, kills + 1):
            folder, moment = Path(parent, f"run-{trial}"), draw.uniform(0.2, 0.95) * seconds
            how = killed_at(folder, moment) if trial % 2 else killed_while_writing(folder, moment)
            names = sorted(f.name for f in folder.rglob("*")) if folder.exists() else []
            partial = sum(name.startswith(".fairfl-") for name in names)
            finished(folder)
            equal = content(folder) == content(whole)
            same += equal
            print(
                f"{trial:3}  {how}, {len(names):2} files there, {partial} of them half written: "
                f"{'the same bytes' if equal else 'OTHER BYTES'}",
                flush=True,
            )
    print(f"{same} of {kills} went on to the same bytes")
    if same < kills:
        raise SystemExit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
