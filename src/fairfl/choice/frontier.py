"""The accuracy-fairness frontier: what evenness costs, setting by setting."""

import numpy as np
from jaxtyping import Bool, Float

from fairfl.choice.means import means
from fairfl.clients.federated import SplitName
from fairfl.metrics import interval
from fairfl.runs import Result
from fairfl.runs.result import Columns, columns


def frontier(result: Result, split: SplitName = "test") -> Columns:
    """One row per setting: average and variance as means over the seeds with their 95 % intervals,
    and `efficient`, whether no other setting is at least as good in both.

    >>> import fairfl
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> family = fairfl.q_fedavg(q=[0, 1])
    >>> result = fairfl.train(data, model, family, rounds=3, cohort=5, seed=[0, 1])
    >>> list(fairfl.frontier(result))[1:6]
    ['learning_rate', 'average', 'average_low', 'average_high', 'variance']
    """
    found = result.fairness(split)
    rows = []
    for mean in means(result, split):
        spans = {name: interval(found[name][list(mean.places)]) for name in ("average", "variance")}
        ends = {
            name + end: value
            for name, span in spans.items()
            for end, value in {"": span.mean, "_low": span.low, "_high": span.high}.items()
        }
        rows.append({**mean.hyper, **ends})
    table = columns(rows)
    sign = -1 if result.data.task == "regression" else 1
    return {**table, "efficient": efficient(sign * table["average"], table["variance"])}


def efficient(
    gain: Float[np.ndarray, " settings"], price: Float[np.ndarray, " settings"]
) -> Bool[np.ndarray, " settings"]:
    """Settings that no other beats: as large a gain for as small a price, one of them strictly.

    >>> import numpy as np
    >>> from fairfl.choice.frontier import efficient
    >>> efficient(np.array([80.0, 79.0, 78.0]), np.array([500.0, 300.0, 400.0])).tolist()
    [True, True, False]
    """
    reached = (gain[:, None] >= gain) & (price[:, None] <= price)
    better = reached & ((gain[:, None] > gain) | (price[:, None] < price))
    return np.isfinite(gain) & np.isfinite(price) & ~better.any(axis=0)
