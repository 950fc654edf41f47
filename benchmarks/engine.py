"""The engine side by side with NumPy and PyTorch loops, in one run of interleaved repeats.

    python benchmarks/engine.py            speed: ratios on synthetic and vehicle-shaped data
    python benchmarks/engine.py scale      time per round and memory from 1,000 to 100,000 clients

Every contender runs in a process of its own, is asked for one timed repeat at a time, and takes
turns with the others, so that a busy moment hits all alike. Data, cohorts and batches are the same.
Drawing cohorts and shuffling rows is inside every measured time. fairfl's times are those of
`fairfl.train`, after a first call that compiles: splitting, planning, training, one evaluation.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fairfl
from contenders import (
    THREAD_LIMITS,
    Workload,
    flops,
    numpy_rounds,
    plain_numpy_rounds,
    roofline,
    steps,
    torch_available,
    torch_rounds,
)
from fairfl.simulation.plan import planner, shuffles_of

REPEATS = 5
Q = (0, 0.001, 0.01, 0.1, 0.5, 1, 2, 5)
C_BOUND = {"synthetic": 1675, "vehicle": 3226}
"""Experiment-rounds per second of hand-written C on two cores, measured elsewhere once."""

VEHICLE = (2578, 1511, 1519, 1425, 1375, 1164, 1683, 1735, 2000, 1701, 1803, 1803)
VEHICLE += (1954, 2200, 2214, 1914, 2068, 1962, 2287, 2002, 2068, 2448, 2281)
"""Rows of the 23 sensors of the full Vehicle data set."""


@dataclass(frozen=True)
class Contender:
    """Experiments per repeat, rounds per repeat on either data, and the cores it may use."""

    experiments: int
    rounds: dict[str, int]
    cores: int
    options: dict[str, Any]


CONTENDERS = {
    "NumPy loop": Contender(1, {"synthetic": 40, "vehicle": 200}, 1, {}),
    "NumPy loop, tuned": Contender(1, {"synthetic": 40, "vehicle": 200}, 1, {}),
    "PyTorch loop": Contender(1, {"synthetic": 12, "vehicle": 60}, 1, {}),
    "fairfl, one model": Contender(1, {"synthetic": 300, "vehicle": 1500}, 2, {"q": 1.0}),
    "fairfl, 8 q, one core": Contender(
        8, {"synthetic": 100, "vehicle": 800}, 1, {"q": Q, "width": 8}
    ),
    "fairfl, 8 q x 2 seeds": Contender(
        16, {"synthetic": 100, "vehicle": 800}, 2, {"q": Q, "width": 8, "seed": [0, 1]}
    ),
    "fairfl, 8 q x 4 seeds": Contender(
        32, {"synthetic": 60, "vehicle": 400}, 2, {"q": Q, "width": 8, "seed": [0, 1, 2, 3]}
    ),
    "fairfl, 40 q x 2 seeds": Contender(
        80,
        {"synthetic": 40, "vehicle": 300},
        2,
        {"q": tuple(0.1 * i for i in range(40)), "seed": [0, 1]},
    ),
}
REQUIRED = {
    "fairfl, one model": {"synthetic": 3.3, "vehicle": 3.5},
    "fairfl, 8 q, one core": {"synthetic": 9, "vehicle": 10},
    "fairfl, 8 q x 2 seeds": {"synthetic": 18, "vehicle": 19},
}


def case(name: str) -> tuple[fairfl.FederatedData, fairfl.Model, dict[str, float]]:
    """Data, model and settings: the reference generator's sizes, or the Vehicle data's shape."""
    if name == "synthetic":
        data = fairfl.datasets.load("synthetic", seed=0, sizes="heavy")
        model = fairfl.models.softmax_regression(data)
        return data, model, {"learning_rate": 0.1, "batch_size": 10}
    draw = np.random.default_rng(0)
    direction = draw.normal(size=100)
    clients = {}
    for k, n in enumerate(VEHICLE):
        x = draw.normal(size=(n, 100)).astype(np.float32)
        clients[k] = (x, (x @ direction + 3 * draw.normal(size=n) > 0).astype(int))
    data = fairfl.from_arrays(clients)
    return data, fairfl.models.linear_svm(data), {"learning_rate": 1e-4, "batch_size": 64}


def workload(name: str, rounds: int) -> Callable[[], Workload]:
    """The contenders' workload, whose cohorts and shuffles are drawn when it is called."""
    data, _, settings = case(name)
    algorithm = fairfl.q_fedavg(**settings)  # type: ignore[arg-type]
    plan = planner(data.split(0).train, algorithm, 10, seed=0)

    def draw() -> Workload:
        cohorts = [
            [shuffles_of(plan.rows.of(k), 0, t, k, 1)[0] for k in plan.draw(t)[0].tolist()]
            for t in range(rounds)
        ]
        return Workload(
            x=data.x,
            y=data.y,
            cohorts=cohorts,
            batch_size=int(settings["batch_size"]),
            learning_rate=settings["learning_rate"],
            q=1.0,
            kind="softmax" if name == "synthetic" else "svm",
            classes=10 if name == "synthetic" else 2,
        )

    return draw


def repeat(contender: str, name: str) -> Callable[[], Any]:
    """One repeat of a contender, ready to be timed."""
    chosen = CONTENDERS[contender]
    rounds = chosen.rounds[name]
    if not contender.startswith("fairfl"):
        loops = {
            "NumPy loop": plain_numpy_rounds,
            "NumPy loop, tuned": numpy_rounds,
            "PyTorch loop": torch_rounds,
        }
        draw, loop = workload(name, rounds), loops[contender]
        return lambda: loop(draw())
    data, model, settings = case(name)
    options = dict(chosen.options)
    algorithm = fairfl.q_fedavg(q=options.pop("q"), **settings)  # type: ignore[arg-type]
    return lambda: fairfl.train(
        data, model, algorithm, rounds=rounds, evaluate_every=rounds, **options
    )


def serve(contender: str, name: str) -> None:
    """The contender's process: a repeat and its seconds for every line that is read."""
    run = repeat(contender, name)
    run()
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        run()
        print(time.perf_counter() - start, flush=True)


class Process:
    """A contender in a process of its own, pinned to its cores."""

    def __init__(self, contender: str, name: str) -> None:
        environment = os.environ | dict.fromkeys(THREAD_LIMITS, "1")
        pinned = ["taskset", "-c", "0"] if CONTENDERS[contender].cores == 1 else []
        self.process = subprocess.Popen(
            [*pinned, sys.executable, __file__, "serve", contender, name],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._line() == "ready"

    def seconds(self) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self._line())

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def measure(name: str) -> dict[str, float]:
    """Median experiment-rounds per second of every contender, repeats interleaved."""
    chosen = [c for c in CONTENDERS if c != "PyTorch loop" or torch_available()]
    processes = {contender: Process(contender, name) for contender in chosen}
    taken: dict[str, list[float]] = {contender: [] for contender in chosen}
    for _ in range(REPEATS):
        for contender, process in processes.items():
            taken[contender].append(process.seconds())
    for process in processes.values():
        process.stop()
    return {
        contender: CONTENDERS[contender].experiments
        * CONTENDERS[contender].rounds[name]
        / statistics.median(seconds)
        for contender, seconds in taken.items()
    }


def speed() -> None:
    """Print the table of ratios, and what was required."""
    peak = roofline()
    print(f"roofline: {peak.one_core:.0f} GFLOP/s on one core, {peak.all_cores:.0f} on all")
    for name in ("synthetic", "vehicle"):
        one = workload(name, 20)()
        per_round, floating = steps(one) / 20, flops(one) / 20
        print(f"\n{name}: {per_round:.0f} steps and {floating / 1e6:.1f} MFLOP a round")
        print(f"{'experiment-rounds per second':30} {'':>7} {'x NumPy':>8} {'x tuned':>8}", end="")
        print(f" {'required':>8} {'roofline':>8} {'us/step':>7}")
        found = measure(name)
        for contender, rate in found.items():
            required = REQUIRED.get(contender, {}).get(name)
            cores = peak.one_core if CONTENDERS[contender].cores == 1 else peak.all_cores
            print(
                f"{contender:30} {rate:7.0f} {rate / found['NumPy loop']:8.1f} "
                f"{rate / found['NumPy loop, tuned']:8.1f} {required or '':>8} "
                f"{rate * floating / 1e9 / cores:8.1%} {1e6 / rate / per_round:7.2f}"
            )
        print(f"{'hand-written C elsewhere':30} {C_BOUND[name]:7}")


def scale() -> None:
    """Time per round and peak memory as the number of clients grows; medians of fresh processes."""
    populations = (1_000, 10_000, 100_000)
    repeats = [[_scale_in_a_process(clients) for clients in populations] for _ in range(3)]
    print(f"{'clients':>8} {'ms/round':>9} {'growth':>7} ", end="")
    print(f"{'data MB':>8} {'peak over it':>12} {'x data':>7}")
    first = statistics.median(repeat[0]["seconds"] for repeat in repeats)
    for clients, found in zip(populations, zip(*repeats, strict=True), strict=True):
        seconds, peak, data = (
            statistics.median(one[name] for one in found) for name in ("seconds", "peak", "data")
        )
        print(
            f"{clients:8} {seconds * 1e3:9.2f} {seconds / first:7.2f} {data / 1e6:8.0f} "
            f"{peak / 1e6:12.0f} {peak / data:7.2f}"
        )


def _scale_in_a_process(clients: int) -> dict[str, float]:
    command = [sys.executable, __file__, "scale", str(clients)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def scale_of(clients: int) -> None:
    """About 50 rows x 60 features a client, cohort 10; the level is taken after compilation."""
    small = _even(1_000)
    model = fairfl.models.softmax_regression(small)
    algorithm = fairfl.q_fedavg(q=1)
    fairfl.train(small, model, algorithm, rounds=10, evaluate_every=10)
    level = _resident()
    data = small if clients == 1_000 else _even(clients)
    del small
    rates = []

    def note(progress: Any) -> None:
        rates.append((progress.done, progress.seconds))

    fairfl.train(data, model, algorithm, rounds=3_000, evaluate_every=3_000, on_chunk=note)
    (first, began), (last, ended) = rates[0], rates[-2]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - level
    seconds = (ended - began) / (last - first)
    print(json.dumps({"seconds": seconds, "peak": peak, "data": data.x.nbytes + data.y.nbytes}))


def _even(clients: int) -> fairfl.FederatedData:
    """Clients of 40 to 60 rows, as views of one array, so that only one copy of it is made."""
    draw = np.random.default_rng(0)
    sizes = draw.integers(40, 61, clients)
    ends = np.cumsum(sizes)
    x = draw.standard_normal((ends[-1], 60), np.float32)
    y = draw.integers(0, 10, ends[-1], dtype=np.int32)
    bounds = zip(ends - sizes, ends, strict=True)
    return fairfl.from_arrays({k: (x[a:b], y[a:b]) for k, (a, b) in enumerate(bounds)})


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", contender, name]:
            serve(contender, name)
        case ["scale", clients]:
            scale_of(int(clients))
        case ["scale"]:
            scale()
        case _:
            speed()
