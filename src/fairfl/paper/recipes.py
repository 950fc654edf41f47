"""Every table and figure of the paper, as data: what of ours stands beside what of theirs."""

from difflib import get_close_matches

from fairfl.clients.federated import SplitName
from fairfl.paper.recipe import Curve, Number, Panel, Pick, Race, Recipe, Spread, q_of
from fairfl.paper.trainings import HETEROGENEOUS

TUNED = {"synthetic": 1.0, "vehicle": 5.0, "sent140": 1.0, "shakespeare": 0.001}
"""The q that the paper's protocol chose."""


def _fair(dataset: str, after: int | None = None) -> dict[str, Pick]:
    """q = 0 and the tuned q of one data set."""
    family, tuned = f"{dataset}-family", TUNED[dataset]
    return {"q=0": q_of(family, 0, after), f"q={tuned:g}": q_of(family, tuned, after)}


def _panels() -> tuple[Panel, ...]:
    return (
        Panel("synthetic", _fair("synthetic", 1_000), "after 1,000 rounds", EARLY),
        *(Panel(data, _fair(data)) for data in TUNED),
    )


EARLY = (
    "1,000 rounds are too few here: a larger q takes smaller steps, and its objective still falls"
)


def _uniform(dataset: str) -> dict[str, Pick]:
    tuned = TUNED[dataset]
    return {
        "uniform": Pick(f"{dataset}-uniform"),
        f"q={tuned:g}": q_of(f"{dataset}-family", tuned),
    }


def _afl(
    dataset: str,
    family: str,
    afl: str,
    q: tuple[Number, Number],
    gamma: Number,
    label: str,
    reason: str = "",
) -> Panel:
    rows = {
        "q=0": q_of(family, 0),
        "AFL": Pick(afl, (("gamma", gamma),)),
        "q1": q_of(family, q[0]),
        "q2": q_of(family, q[1]),
    }
    return Panel(dataset, rows, label, reason)


BY_SIZE = (
    "the published q1, q2 and AFL rows are those of clients that count equally and of an AFL "
    "without its lambdas, which come next; when clients count by their size, q = 0.01 changes "
    "nothing and q = 2 needs more than these rounds"
)
EQUALLY = "the published q = 0 row is that of clients that count by their size, which comes before"

_TABLE_2 = (
    _afl("adult", "adult-size", "adult-afl", (0.01, 2), 0.1,
         "clients weighed by size, AFL with its lambdas", BY_SIZE),
    _afl("adult", "adult-equal", "adult-afl", (0.01, 2), 0.0,
         "clients weighed equally, AFL without its lambdas (the reference)", EQUALLY),
    Panel("adult", {"q=0": q_of("adult-long", 0, 3_000), "q2": q_of("adult-long", 2, 3_000)},
          "clients weighed by size, 3,000 rounds"),
    _afl("fashion-mnist-afl", "fashion-mnist-family", "fashion-mnist-afl", (5, 15), 0.01,
         "AFL with its lambdas"),
    _afl("fashion-mnist-afl", "fashion-mnist-family", "fashion-mnist-afl", (5, 15), 0.0,
         "AFL without its lambdas (the reference)"),
)  # fmt: skip

_TABLES = (
    Recipe(
        "table-1", "Test accuracy over clients, q = 0 and the tuned q",
        _panels(),
    ),
    Recipe(
        "table-2", "AFL against q-FFL on Adult and Fashion-MNIST", _TABLE_2,
        note="The reference counts every client equally where all take part, and its AFL never "
        "uses its lambdas; so the table is run both ways.",
    ),
    Recipe(
        "table-3", "q-MAML on Omniglot: accuracy of personalised models on held-out tasks",
        (Panel("omniglot", {"q=0": q_of("omniglot-q-maml", 0),
                            "q=0.1": q_of("omniglot-q-maml", 0.1)}),),
    ),
    Recipe(
        "table-4", "Statistics of the data sets",
        tuple(Panel(data, {"": Pick("")}) for data in TUNED),
    ),
    Recipe(
        "table-5", "Test accuracy over clients, all measures of uniformity", _panels()
    ),
    Recipe("table-6", "Training accuracy over clients", _panels()),
    Recipe(
        "table-7", "Average test accuracy by data points and by clients",
        tuple(Panel(data, _fair(data)) for data in TUNED),
    ),
    Recipe(
        "table-8", "Uniform sampling, training accuracy",
        tuple(Panel(data, _uniform(data)) for data in TUNED),
    ),
    Recipe(
        "table-9", "Uniform sampling, test accuracy",
        tuple(Panel(data, _uniform(data)) for data in TUNED),
    ),
    Recipe(
        "table-10", "Heterogeneity and the number of clients",
        tuple(Panel(data, {"q=0": q_of(data, 0), "q=1": q_of(data, 1)}) for data in HETEROGENEOUS),
    ),
    Recipe(
        "table-11", "A family of q on the synthetic data",
        (Panel("synthetic", {f"q={q:g}": q_of("synthetic-family", q) for q in (0, 0.1, 1, 2, 5)}),),
    ),
    Recipe(
        "table-12", "Device-specific q",
        tuple(
            Panel(data, {**_fair(data), "multiple q": Pick(f"{data}-family", own_q=True)})
            for data in ("vehicle", "shakespeare")
        ),
    ),
)  # fmt: skip


def _spreads(split: SplitName, uniform: bool) -> tuple[Spread, ...]:
    return tuple(Spread(data, _uniform(data) if uniform else _fair(data), split) for data in TUNED)


def _trio(data: str, q: Number) -> Race:
    """q-FedAvg against q-FedSGD, and that against a FedSGD tuned by hand."""
    own = (("q", q),)
    return Race(
        data,
        (
            Curve("q-FedAvg", Pick(f"{data}-speed-q-fedavg", own), "objective", "plain"),
            Curve("q-FedSGD", Pick(f"{data}-speed-q-fedsgd", own), "objective", "plain"),
            Curve("FedSGD, tuned", Pick(f"{data}-speed-fedsgd", own), "objective", "own"),
        ),
        "q-FedAvg needs no more rounds than q-FedSGD",
    )


def _slower(data: str) -> Race:
    q = TUNED[data]
    curves = tuple(
        Curve(f"q={value:g}", q_of(f"{data}-family", value), "average") for value in (q, 0)
    )
    return Race(data, curves, f"q={q:g} is not much slower than q=0 (1.5 times at most)", 1.5)


_FIGURES = (
    Recipe(
        "figure-2", "Test accuracy over clients, distributions",
        spreads=_spreads("test", False),
    ),
    Recipe(
        "figure-3", "Uniform sampling, distributions of test accuracy",
        spreads=_spreads("test", True),
    ),
    Recipe(
        "figure-4", "q-FedAvg, q-FedSGD and a tuned FedSGD on one objective",
        races=(_trio("synthetic", 1), _trio("vehicle", 5)),
        note="On the synthetic data the paper finds q-FedAvg slower than q-FedSGD.",
    ),
    Recipe(
        "figure-5", "q-MAML, distribution over held-out tasks",
        spreads=(Spread("omniglot", {"q=0": q_of("omniglot-q-maml", 0),
                                     "q=0.1": q_of("omniglot-q-maml", 0.1)}, "test"),),
    ),
    Recipe(
        "figure-6", "Training accuracy over clients, distributions",
        spreads=_spreads("train", False),
    ),
    Recipe(
        "figure-7", "Uniform sampling, distributions of training accuracy",
        spreads=_spreads("train", True),
    ),
    Recipe(
        "figure-8", "Convergence of q > 0 against FedAvg",
        races=tuple(_slower(data) for data in TUNED),
    ),
    Recipe(
        "figure-9", "q-FFL against AFL: the worst client's accuracy over rounds",
        races=(
            Race(
                "fashion-mnist-afl",
                (
                    Curve("q-FFL, q=5", q_of("fashion-mnist-family", 5), "worst"),
                    Curve("AFL", Pick("fashion-mnist-afl", (("gamma", 0.01),)), "worst"),
                ),
                "q-FFL needs no more rounds than AFL",
            ),
            Race(
                "vehicle",
                (
                    Curve("q-FFL, q=5", q_of("vehicle-everyone-q-fedsgd", 5), "worst", "plain"),
                    Curve("AFL", Pick("vehicle-afl", (("gamma", 0.0001),)), "worst", "own"),
                ),
                "q-FFL needs no more rounds than AFL",
            ),
        ),
    ),
    Recipe(
        "figure-10", "q-FedAvg and q-FedSGD under IID, hybrid and non-IID data",
        races=tuple(_trio(data, 1) for data in ("synthetic-iid", "synthetic-hybrid", "synthetic")),
        note="The paper finds q-FedAvg faster on IID data, and slower the more clients differ.",
    ),
)  # fmt: skip

RECIPES = {recipe.name: recipe for recipe in (*_TABLES, *_FIGURES)}
THEORY = "theory"


def named(names: tuple[str, ...]) -> tuple[str, ...]:
    """What to reproduce, in the paper's order: recipes by name, and all of them.

    >>> from fairfl.paper.recipes import named
    >>> named(("table-2", "table-1")), len(named(("all",)))
    (('table-1', 'table-2'), 22)
    """
    known = (*RECIPES, THEORY)
    for name in names:
        if name not in (*known, "all"):
            near = get_close_matches(name, known)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            raise ValueError(
                f"there is no {name!r} to reproduce; {hint}the known ones are "
                f"{', '.join(known)} and all"
            )
    return known if "all" in names else tuple(name for name in known if name in names)
