"""Does the paper's protocol choose well? Ten splits of the synthetic data, its nine candidates.

    python benchmarks/choice.py [ROUNDS]      10,000 unless given

For every seed (which sets split, cohorts and shuffles) it prints the q that the protocol takes on
the validation split, the q that the same rule takes when it may look at the test split, what the
one costs against the other there; how often the two agree on means over several seeds; and what a
q of its own for every client gives.
"""

import sys
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from itertools import combinations

import numpy as np

import fairfl
from fairfl.datasets.defaults import PAPER_Q

SEEDS = list(range(10))


def main(rounds: int) -> None:
    data = fairfl.datasets.load("synthetic", seed=0)
    model = fairfl.models.softmax_regression(data)
    began = time.perf_counter()
    result = fairfl.train(
        data, model, fairfl.q_fedavg(q=[0, *PAPER_Q]), rounds=rounds, seed=SEEDS,
        evaluate_every=rounds // 10,
    )  # fmt: skip
    print(f"{len(result)} experiments of {rounds} rounds in {time.perf_counter() - began:.0f} s")
    agreement(result)
    for count in (2, 5, len(SEEDS)):
        several(result, count)
    shape(result)
    device_specific(result)


def agreement(result: fairfl.Result) -> None:
    """Seed by seed, and how many of the validation splits are as good as looking."""
    print("seed   chosen   looking at test   test variance: q=0  chosen  looking")
    same = 0
    for seed in SEEDS:
        one = of_seeds(result, [seed])
        chosen, looked = both(one)
        found = one.fairness("test")
        variance = dict(zip(found["q"].tolist(), found["variance"].tolist(), strict=True))
        spread = [f"{variance[q]:7.0f}" for q in (0.0, chosen, looked)]
        print(f"{seed:4}   {chosen:6g}   {looked:15g}   {'':14}", *spread)
        same += chosen == looked
    print(f"the same q for {same} of {len(SEEDS)} seeds")


def several(result: fairfl.Result, count: int) -> None:
    """The protocol on means over several seeds, for every way to take so many of the ten."""
    pairs = [both(of_seeds(result, some)) for some in combinations(SEEDS, count)]
    same, chosen = np.mean([a == b for a, b in pairs]), Counter(a for a, _ in pairs)
    taken = ", ".join(f"q={q:g} {n / len(pairs):.0%}" for q, n in chosen.most_common())
    print(f"means over {count} seeds: the same q in {same:.0%} of {len(pairs)} ways ({taken})")


def of_seeds(result: fairfl.Result, seeds: Collection[int]) -> fairfl.Result:
    return replace(result, members=[m for m in result.members if m.seed in seeds])


def both(result: fairfl.Result) -> tuple[float, float]:
    """The q chosen on validation data, and by the same rule on test data."""
    chosen, looked = (fairfl.choose_q(result, split) for split in ("validation", "test"))
    return chosen.hyperparameters["q"], looked.hyperparameters["q"]


def shape(result: fairfl.Result) -> None:
    """Every candidate on both splits: how far apart neighbours are, beside their deviation."""
    print("     q   validation: average  variance       test: average  variance")
    for q in (0.0, *PAPER_Q):
        cells = []
        for split in ("validation", "test"):
            found = result.fairness(split)
            average, variance = (
                fairfl.interval(found[name][found["q"] == q]) for name in ("average", "variance")
            )
            cells += [
                f"{average.mean:8.1f} ±{average.deviation:.1f}",
                f"{variance.mean:5.0f} ±{variance.deviation:3.0f}",
            ]
        print(f"{q:6g}        ", *cells)


def device_specific(result: fairfl.Result) -> None:
    """The paper's table of multiple q: plain, chosen and each client its own, on test data."""
    found, own = result.fairness("test"), fairfl.device_q(result).fairness
    chosen = fairfl.choose_q(result).hyperparameters["q"]
    rows = {f"q={q:g}": {n: c[found["q"] == q] for n, c in found.items()} for q in (0.0, chosen)}
    print("               average    worst 10%    best 10%     variance")
    for name, columns in {**rows, "own q": own}.items():
        cells = (columns[m] for m in ("average", "worst10", "best10", "variance"))
        spread = [f"{np.mean(cell):6.1f} ±{np.std(cell, ddof=1):4.1f}" for cell in cells]
        print(f"{name:12}", *spread)
    for name in ("average", "variance"):
        change = fairfl.paired_interval(own[name], rows["q=0"][name])
        between = f"{change.low:+.2f} to {change.high:+.2f}"
        print(f"own q against q=0, {name}: {change.mean:+.2f} ({between})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
