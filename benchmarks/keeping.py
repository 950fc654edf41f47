"""What keeping a run and showing its progress costs: the same sweep without, with, without ...

    python benchmarks/keeping.py [REPEATS]      5 unless given

Each repeat trains on the synthetic data once bare and once with a folder, checkpoints and the
progress bar, in random order, and the medians are compared. Checkpoints come as often as in a real
run; the last one, which every run writes, is in the time too.
"""

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

import fairfl
from fairfl.report.progress import shown

ROUNDS, Q, SEEDS = 2_000, [0, 0.1, 1, 2, 5], [0, 1]


def seconds(kept: bool) -> float:
    data = fairfl.datasets.load("synthetic", seed=0)
    model, family = fairfl.models.softmax_regression(data), fairfl.q_fedavg(q=Q)
    total = ROUNDS * len(Q) * len(SEEDS)
    with tempfile.TemporaryDirectory() as parent:
        began = time.perf_counter()
        if kept:
            with (
                open("/dev/null", "w", encoding="utf-8") as nowhere,
                shown(total, Console(file=nowhere, force_terminal=True)) as meter,
            ):
                fairfl.train(
                    data, model, family, rounds=ROUNDS, seed=SEEDS, on_chunk=meter,
                    out=Path(parent, "run"),
                )  # fmt: skip
        else:
            fairfl.train(data, model, family, rounds=ROUNDS, seed=SEEDS)
        return time.perf_counter() - began


def main(repeats: int) -> None:
    seconds(kept=True)  # compiles
    found: dict[bool, list[float]] = {False: [], True: []}
    draw = random.Random(0)
    for _ in range(repeats):
        for kept in draw.sample([False, True], 2):
            found[kept].append(seconds(kept))
    bare, kept = (statistics.median(found[which]) for which in (False, True))
    print(f"bare {bare:.2f} s, kept and shown {kept:.2f} s: {100 * (kept / bare - 1):+.1f} %")
    for name, which in (("bare", False), ("kept", True)):
        print(f"  {name}: {', '.join(f'{one:.2f}' for one in found[which])}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
