"""What q does to fairness on the synthetic data: three draws of it, five seeds, as rounds go by.

    python benchmarks/fairness.py [ROUNDS]      10,000 unless given

For every generation seed and some numbers of rounds it prints the means over the seeds of average,
worst 10 % and variance of the test accuracies, for q = 0 and q = 1, and how they change.
"""

import statistics
import sys
import time

import fairfl

SEEDS = [0, 1, 2, 3, 4]
Q = [0, 0.1, 1, 2, 5]


def main(rounds: int) -> None:
    print(
        f"{'data':>4} {'rounds':>6} {'q':>4} {'average':>8} {'worst 10%':>9} {'variance':>8}",
        end="",
    )
    print(f" {'average':>8} {'worst 10%':>9} {'variance':>8}   (against q = 0)")
    for generation in range(3):
        data = fairfl.datasets.load("synthetic", seed=generation)
        model = fairfl.models.softmax_regression(data)
        began = time.perf_counter()
        family = fairfl.q_fedavg(q=Q)
        result = fairfl.train(
            data, model, family, rounds=rounds, seed=SEEDS, evaluate_every=rounds // 20
        )
        seconds = time.perf_counter() - began
        for share in (10, 5, 2, 1):
            report(result, generation, rounds // share)
        print(f"     {seconds:.0f} s for {len(result)} experiments of {rounds} rounds", flush=True)


def report(result: fairfl.Result, generation: int, done: int) -> None:
    plain = means(result, 0, done)
    for q in Q:
        average, worst, variance = means(result, q, done)
        print(
            f"{generation:4} {done:6} {q:4g} {average:8.1f} {worst:9.1f} {variance:8.0f} "
            f"{average - plain[0]:+8.1f} {worst - plain[1]:+9.1f} {variance / plain[2] - 1:+8.0%}"
        )


def means(result: fairfl.Result, q: float, done: int) -> tuple[float, float, float]:
    """Average, worst 10 % and variance on the test split, means over the seeds."""
    found = [m.fairness[done]["test"] for m in result.members if m.hyper["q"] == q]
    kept = [f for f in found if f is not None]
    return (
        statistics.mean(f.average for f in kept),
        statistics.mean(f.worst10 for f in kept),
        statistics.mean(f.variance for f in kept),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
