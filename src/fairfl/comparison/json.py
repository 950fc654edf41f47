"""A comparison as one JSON object, for programs: `--json` prints it, its folder keeps the rest."""

from typing import Any

from fairfl.comparison.comparison import Comparison
from fairfl.comparison.notes import notes
from fairfl.metrics import Fairness
from fairfl.runs.json import SCHEMA, plain
from fairfl.runs.json import as_object as run_object
from fairfl.runs.result import Columns


def as_object(found: Comparison) -> dict[str, Any]:
    """Every experiment of every method at its setting, as of a run, and what was compared.

    >>> import fairfl
    >>> from fairfl.comparison.json import as_object
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> methods = [fairfl.fedavg(), fairfl.q_fedavg()]
    >>> found = as_object(fairfl.compare(data, model, methods, rounds=3, cohort=5, seeds=2))
    >>> [(one["method"], one["seed"]) for one in found["experiments"]][:3]
    [('fedavg', 0), ('fedavg', 1), ('q-fedavg', 0)]
    """
    result = found[found.baseline]
    return plain(
        {
            "schema": SCHEMA,
            "dataset": result.data.name,
            "rounds": result.rounds,
            "seconds": found.seconds,
            "experiments": [
                {"method": method, **experiment}
                for method in found.methods
                for experiment in run_object(found[method])["experiments"]
            ],
            "chosen": None,
            "comparison": compared(found),
            "notes": notes(found),
        }
    )


def compared(found: Comparison) -> dict[str, Any]:
    """Methods with the setting that each was tuned to, means over seeds, paired differences.

    >>> import fairfl
    >>> from fairfl.comparison.json import compared
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> methods = [fairfl.fedavg(), fairfl.q_fedavg()]
    >>> found = compared(fairfl.compare(data, model, methods, rounds=3, cohort=5, seeds=2))
    >>> found["comparisons"], found["differences"][0]["metric"]
    (3, 'average')
    """
    summary = found.summary()
    return plain(
        {
            "baseline": found.baseline,
            "methods": [_method(found, summary, place) for place in range(len(found.methods))],
            "comparisons": found.comparisons,
            "differences": _rows(found.differences()),
        }
    )


def _method(found: Comparison, summary: Columns, place: int) -> dict[str, Any]:
    method = found.methods[place]
    result, chosen = found[method], found.tuned[method]
    return {
        "method": method,
        "algorithm": result.algorithm,
        "sampler": result.sampler,
        "weights": result.weights,
        "hyperparameters": chosen.hyper,
        "tried": chosen.tried,
        "reason": chosen.reason,
        "seeds": [member.seed for member in result.members],
        "stopped": summary["stopped"][place],
        "test": {
            metric: {
                "mean": summary[metric][place],
                **{end: summary[f"{metric}_{end}"][place] for end in ("deviation", "low", "high")},
            }
            for metric in Fairness._fields
        },
    }


def _rows(columns: Columns) -> list[dict[str, Any]]:
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
