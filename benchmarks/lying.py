"""One of twenty clients reports ten times its loss at q = 5: what that buys, and what bounds it.

    python benchmarks/lying.py [ROUNDS]      300 unless given

The synthetic data with twenty clients, all of them in every round, five seeds. Share: what part of
the round's coefficients the liar has, the mean over the second half of the rounds. Worst 10 %: of
the nineteen honest clients on their test rows. The bounds are FairStrategy's usual ones.
"""

import sys
from typing import Any

import jax.numpy as jnp
import numpy as np

import fairfl
from fairfl.algorithms.rules import Rule, bounded, q_ffl
from fairfl.flower import Trust

LIAR, FACTOR, RATE, SEEDS = 0, 10.0, 0.1, [0, 1, 2, 3, 4]
USUAL = Trust()


def claimed(rule: Rule, factor: float) -> Rule:
    """The rule behind a client that multiplies the loss it reports."""

    def coefficients(hyper, state, cohort):
        liar = cohort.ids == LIAR
        told = cohort._replace(losses=jnp.where(liar, factor * cohort.losses, cohort.losses))
        a, state, info = rule.coefficients(hyper, state, told)
        share = jnp.where(liar, a, 0).sum() / a.sum()
        return a, state, {**info, "share": share}

    return rule._replace(coefficients=coefficients)


def main(rounds: int) -> None:
    data = fairfl.datasets.load("synthetic", seed=0, clients=20)
    model = fairfl.models.softmax_regression(data)
    print("| reports | bounds | liar's share of the weight | average | worst 10 % of the honest |")
    print("|---|---|---|---|---|")
    bounds: dict[str, Any] = {"spread": USUAL.loss_spread, "growth": USUAL.loss_growth}
    for factor in (1.0, FACTOR):
        for name, rule, own in (("off", q_ffl(), {}), ("on", bounded(q_ffl()), bounds)):
            algorithm = fairfl.with_rule(
                claimed(rule, factor), RATE, sampler="everyone", q=5, L=1 / RATE, **own
            )
            result = fairfl.train(data, model, algorithm, rounds=rounds, seed=SEEDS)
            print(f"| {factor:g} x its loss | {name} | {' | '.join(found(result))} |", flush=True)


def found(result: fairfl.Result) -> list[str]:
    shares = [100 * member.trace["share"][result.rounds // 2 :].mean() for member in result.members]
    served = [fairness(member.final["test"]) for member in result.members]
    average, worst = (np.array(values) for values in zip(*served, strict=True))
    return [f"{np.mean(shares):.1f} %", spread(average), spread(worst)]


def fairness(test) -> tuple[float, float]:
    honest = np.arange(len(test.size)) != LIAR
    one = fairfl.fairness(test.accuracy[honest], test.size[honest])
    return one.average, one.worst10


def spread(values: np.ndarray) -> str:
    return f"{values.mean():.1f} ±{values.std(ddof=1):.1f}"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
