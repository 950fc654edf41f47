"""What a catalogue says of data: its clients and their rows, counted from the data themselves."""

from dataclasses import dataclass

import numpy as np

from fairfl.clients.federated import SPLITS, FederatedData

MOST_LABELS = 20


@dataclass(frozen=True)
class Statistics:
    """Clients and their rows; the deviation is over clients, as in the paper's table.

    `labels` counts the rows of each class, None where there are many or none; `splits` those that
    are published to train on, to validate and to test on, None where a seed draws them.
    """

    clients: int
    rows: int
    mean: float
    deviation: float
    smallest: int
    largest: int
    labels: dict[str, int] | None
    splits: dict[str, int] | None


def statistics(data: FederatedData) -> Statistics:
    """The statistics of data.

    >>> import numpy as np, fairfl
    >>> from fairfl.datasets.statistics import statistics
    >>> pairs = {"a": (np.ones((3, 2)), [0, 1, 1]), "b": (np.ones((1, 2)), [0])}
    >>> found = statistics(fairfl.from_arrays(pairs))
    >>> found.rows, found.mean, found.deviation, found.labels
    (4, 2.0, 1.0, {'0': 2, '1': 2})
    """
    sizes = data.sizes
    return Statistics(
        clients=data.clients,
        rows=len(data.y),
        mean=float(sizes.mean()),
        deviation=float(sizes.std()),
        smallest=int(sizes.min()),
        largest=int(sizes.max()),
        labels=_labels(data),
        splits=_splits(data),
    )


def _labels(data: FederatedData) -> dict[str, int] | None:
    if data.classes is None or len(data.classes) > MOST_LABELS:
        return None
    counts = np.bincount(data.y, minlength=len(data.classes))
    return dict(zip(map(str, data.classes.tolist()), counts.tolist(), strict=True))


def _splits(data: FederatedData) -> dict[str, int] | None:
    if data.roles is None:
        return None
    counts = np.bincount(data.roles, minlength=len(SPLITS) + 1).tolist()
    return dict(zip((*SPLITS, "support"), counts, strict=True))
