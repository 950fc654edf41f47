"""Every method on four data sets, tuned alike, five seeds: the tables of docs/comparison.md.

    python benchmarks/comparison.py --out docs/comparison.md

It goes on where it was interrupted (--runs FOLDER keeps what was trained), and writes the page
after every data set.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import fairfl
from fairfl.comparison import Comparison
from fairfl.comparison.differences import COMPARED
from fairfl.comparison.methods import alike, methods
from fairfl.comparison.notes import notes
from fairfl.datasets import defaults
from fairfl.report.tables import METRICS
from fairfl.runs import compiled

SEEDS = 5

COMMAND = "python benchmarks/comparison.py --out docs/comparison.md"


class Study(NamedTuple):
    """One data set with its model, how long it is trained, and what to read in its table."""

    title: str
    data: partial
    model: str
    rounds: int
    cohort: int
    batch_size: int
    about: str


STUDIES = {
    "synthetic": Study(
        "synthetic",
        partial(fairfl.datasets.load, "synthetic", seed=0),
        "softmax_regression",
        rounds=300,
        cohort=10,
        batch_size=10,
        about="The paper's Synthetic(1, 1): 100 clients of power-law sizes, a softmax regression. "
        "This is its beginning, where a q > 0 of q-FedAvg is not yet fairer; after 10,000 rounds "
        "it is (see [synthetic.md](synthetic.md)).",
    ),
    "adult": Study(
        "adult",
        partial(fairfl.datasets.load, "adult"),
        "softmax_regression",
        rounds=60,
        cohort=2,
        batch_size=64,
        about="Two clients, 413 people with a doctorate and 32,148 without, both in every round. "
        "The split is the published one; seeds change the tenth that is held out to tune on and "
        "the order of the batches. With two clients the worst 10 % is the worse of the two.",
    ),
    "fashion-mnist-afl": Study(
        "fashion-mnist-afl",
        partial(fairfl.datasets.load, "fashion-mnist-afl"),
        "softmax_regression",
        rounds=60,
        cohort=3,
        batch_size=64,
        about="Three clients, one class of clothes each (shirt, pullover, T-shirt/top), all in "
        "every round: the data of AFL's paper. With three clients the worst 10 % is the worst.",
    ),
    "fashion-mnist": Study(
        "fashion-mnist, Dirichlet(0.1)",
        partial(
            fairfl.datasets.load,
            "fashion-mnist",
            partition="dirichlet",
            alpha=0.1,
            clients=100,
            seed=0,
        ),
        "softmax_regression",
        rounds=60,
        cohort=10,
        batch_size=64,
        about="70,000 images dealt to 100 clients whose mixtures of the ten classes are draws from "
        "Dirichlet(0.1), and a softmax regression on the pixels.",
    ),
}


def studied(name: str, runs: Path) -> Comparison:
    """A data set's comparison, trained or gone on with in its folder."""
    study = STUDIES[name]
    data = study.data()
    said = {"batch_size": study.batch_size}
    began = time.perf_counter()

    @contextmanager
    def watch(method: str, _: object) -> Iterator[None]:
        yield
        print(f"{name}: {method} after {time.perf_counter() - began:,.0f} s", flush=True)

    return fairfl.compare(
        data,
        getattr(fairfl.models, study.model)(data),
        methods(alike(), vars(defaults(data.name)), said),
        rounds=study.rounds,
        cohort=study.cohort,
        seeds=SEEDS,
        evaluate_every=study.rounds // 10,
        watch=watch,
        out=runs / name,
        resume=True,
    )


def page(found: dict[str, Comparison]) -> str:
    """The whole page as Markdown, of the data sets that are done."""
    seconds = sum(comparison.seconds for comparison in found.values())
    missing = [study.title for name, study in STUDIES.items() if name not in found]
    lines = [
        "# Methods side by side",
        "",
        f"`{COMMAND}` trains everything on this page, in {seconds / 60:,.0f} minutes of training "
        "on the two cores that wrote it, shared with other work, and goes on where it was "
        "interrupted. The same with "
        "your own data is `fairfl compare TABLE --client COLUMN --label COLUMN`.",
        "",
        *protocol(found),
        *([f"Still to be trained: {', '.join(missing)}.", ""] if missing else []),
    ]
    for name, comparison in found.items():
        lines += section(name, comparison)
    return "\n".join(lines).rstrip() + "\n"


def protocol(found: dict[str, Comparison]) -> list[str]:
    """How the methods were tuned and compared, once for all tables."""
    count = len(next(iter(found.values())).methods)
    return [
        f"{count} methods, {SEEDS} seeds. Every method sees the same splits, cohorts, initial "
        "models and batches for a seed. Nine settings of each are trained: three values of its own "
        "parameter at three learning rates, or nine learning rates where it has none (FedMGDA+, "
        "whose updates are normalised, three lengths of its step instead). FedAvg is shown with "
        "the learning rate of the best average on validation data, every other method with the "
        "setting of the lowest variance among those within one point of that average, or with the "
        "best average where none is that close. The test rows are read for the chosen setting "
        "alone.",
        "",
        "Accuracy in percent over clients, mean ± deviation of the seeds. Differences are paired "
        "by seed, ± half the 95 % interval; `*` leaves out zero, `**` does so even when corrected "
        "for the number of comparisons. `fedsgd`, `q-fedsgd`, `fixed-step` and `afl` take one step "
        "of full gradients a round, all others an epoch of local steps, so tables of few rounds "
        "also compare these two ways to train.",
        "",
    ]


def section(name: str, found: Comparison) -> list[str]:
    """One data set: what it is, the three tables as one, and what to know beside them."""
    study, result = STUDIES[name], found[found.baseline]
    return [
        f"## {study.title}",
        "",
        study.about,
        "",
        f"{result.rounds:,} rounds of {study.cohort} clients, batches of {study.batch_size}; "
        f"{found.seconds:,.0f} s of training.",
        "",
        *table(found),
        "",
        *(f"- {said}" for said in (*winners(found), *judged(found))),
        *(f"- {note}".replace("*", "\\*") for note in notes(found)),
        "",
    ]


def table(found: Comparison) -> list[str]:
    """One row per method: metrics, and differences to the baseline with their marks."""
    shown = ("average", "worst10", "best10", "variance")
    heads = [METRICS[m].replace("%", " %") for m in shown]
    deltas = [f"Δ {METRICS[m].replace('%', ' %')}" for m in COMPARED]
    columns = ["method", "setting", *heads, *deltas]
    summary = found.summary()
    rows = []
    for place, method in enumerate(found.methods):
        hyper = found.tuned[method].hyper
        setting = ", ".join(f"{n.replace('_', ' ')} {v:g}" for n, v in hyper.items())
        cells = [
            f"{summary[m][place]:{form(m)}} ±{summary[f'{m}_deviation'][place]:{form(m)}}"
            for m in shown
        ]
        dagger = " †" if summary["stopped"][place] else ""
        rows.append([f"`{method}`{dagger}", setting, *cells, *differences(found, method)])
    return [line(columns), line(["---"] * len(columns)), *map(line, rows)]


def differences(found: Comparison, method: str) -> list[str]:
    compared = found.differences()
    cells = []
    for place in range(len(compared["method"])):
        if compared["method"][place] == method:
            value = compared["difference"][place]
            mark = "**" if compared["sure"][place] else "*" if compared["real"][place] else ""
            figures = form(str(compared["metric"][place]))
            half = compared["high"][place] - value
            cells.append(f"{value:+{figures}} ±{half:{figures}} {mark}".rstrip())
    return [cell.replace("*", "\\*") for cell in cells] or ["-"] * len(COMPARED)


def form(metric: str) -> str:
    return ".0f" if metric == "variance" else ".1f"


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def judged(found: Comparison) -> list[str]:
    """How much of a difference is owed to the way of training, and whether AFL beats q-FFL."""
    summary = found.summary()
    places = {method: place for place, method in enumerate(found.methods)}
    worst, variance = summary["worst10"], summary["variance"]
    plain, single = places["fedavg"], places["fedsgd"]
    afl, ffl = places["afl"], places["q-fedsgd"]
    better = "beats" if worst[afl] > worst[ffl] else "does not beat"
    return [
        f"`fedsgd` minimises the same average as `fedavg`, yet differs from it by "
        f"{worst[single] - worst[plain]:+.1f} in the worst 10 % and by "
        f"{variance[single] - variance[plain]:+.0f} in the variance: so much is owed to the way "
        "of training and its learning rate, and not to fairness.",
        f"AFL {better} q-FFL with the same full gradients (`q-fedsgd`) on the worst 10 %: "
        f"{worst[afl]:.1f} and {worst[ffl]:.1f}.",
    ]


def winners(found: Comparison) -> list[str]:
    """Which method is best by each metric, whoever it is."""
    summary = found.summary()
    best = {
        "average": found.methods[int(summary["average"].argmax())],
        "worst10": found.methods[int(summary["worst10"].argmax())],
        "variance": found.methods[int(summary["variance"].argmin())],
    }
    return [
        f"Best average: `{best['average']}`; best worst 10 %: `{best['worst10']}`; lowest "
        f"variance: `{best['variance']}`."
    ]


def main() -> None:
    """Train what is missing and write the page after every data set."""
    parser = argparse.ArgumentParser(description="Every method on four data sets.")
    parser.add_argument("--out", type=Path, default=Path("docs/comparison.md"))
    parser.add_argument("--runs", type=Path, default=Path("runs/comparison"))
    parser.add_argument("--data", nargs="+", choices=list(STUDIES), default=list(STUDIES))
    asked = parser.parse_args()
    compiled.keep()
    found: dict[str, Comparison] = {}
    for name in asked.data:
        found[name] = studied(name, asked.runs)
        asked.out.write_text(page(found), encoding="utf-8")
        print(f"{name}: written to {asked.out}", flush=True)


if __name__ == "__main__":
    main()
