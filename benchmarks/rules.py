"""What a fair round costs: every algorithm against FedAvg, on the same cohorts and batches.

    python benchmarks/rules.py [ROUNDS] [REPEATS]      1,000 rounds, 7 repeats unless given

60 features x 10 classes, 30 clients of about 50 rows, 10 of them a round, one epoch of batches of
10, one model to a program. The repeats are interleaved; the median is printed, of runs that were
compiled before. An algorithm that only weighs replies may take 1.5 times FedAvg plus half a
millisecond a round. Those that do more local work, or hear everyone, are listed and not judged.
"""

import sys
import time
from statistics import median

import numpy as np

import fairfl
from fairfl.algorithms import NAMED, Algorithm

CLIENTS, FEATURES, CLASSES, COHORT = 30, 60, 10, 10
ALLOWED, PLUS_MS = 1.5, 0.5
MORE_WORK = ("afl", "ditto", "fedprox", "maml", "propfair", "q-maml")
"""Work of their own by definition: everyone's gradient, personal models, or a loss of their own."""


def main(rounds: int, repeats: int) -> bool:
    data = federation()
    model = fairfl.models.softmax_regression(data)
    families = contenders()
    times: dict[str, list[float]] = {name: [] for name in families}
    for repeat in range(repeats + 1):
        for name, family in families.items():
            took = timed(data, model, family, rounds)
            # The first repeat compiles.
            if repeat:
                times[name].append(took / rounds * 1e3)
    return table({name: median(each) for name, each in times.items()})


def federation() -> fairfl.FederatedData:
    draw = np.random.default_rng(0)
    clients = {}
    for k, size in enumerate(draw.integers(30, 70, CLIENTS)):
        x = draw.normal(size=(size, FEATURES)).astype(np.float32)
        clients[str(k)] = (x, draw.integers(0, CLASSES, size))
    return fairfl.from_arrays(clients, split=None)


def contenders() -> dict[str, Algorithm]:
    """All that need no other data, FedAvg first; FedFV with longer memories too."""
    families = {name: make() for name, make in NAMED.items() if "maml" not in name}
    return families | {
        "fedfv:tau=3": fairfl.fedfv(tau=3),
        "fedfv:tau=10": fairfl.fedfv(tau=10),
        "bounded q-fedavg": fairfl.with_rule(
            fairfl.rules.bounded(fairfl.rules.q_ffl()), q=1, L=10, spread=3, growth=2
        ),
    }


def timed(data: fairfl.FederatedData, model: fairfl.Model, family: Algorithm, rounds: int) -> float:
    began = time.perf_counter()
    fairfl.train(data, model, family, rounds=rounds, cohort=COHORT, evaluate_every=rounds, lanes=1)
    return time.perf_counter() - began


def table(milliseconds: dict[str, float]) -> bool:
    """Prints every algorithm's median, and whether all that are judged keep what is allowed."""
    base = milliseconds["fedavg"]
    most = ALLOWED * base + PLUS_MS
    print(f"{'algorithm':18} {'ms a round':>10} {'x FedAvg':>9}   allowed: {most:.2f} ms")
    kept = True
    for name, took in sorted(milliseconds.items(), key=lambda pair: pair[1]):
        judged = name not in MORE_WORK and not name.endswith("sgd") and name != "fixed-step"
        verdict = "" if judged and took <= most else "too slow" if judged else "other work"
        kept = kept and verdict != "too slow"
        print(f"{name:18} {took:10.3f} {took / base:9.2f}   {verdict}")
    return kept


if __name__ == "__main__":
    asked = [int(word) for word in sys.argv[1:]]
    sys.exit(not main(*(asked + [1000, 7][len(asked) :])))
