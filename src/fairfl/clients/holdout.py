"""Validation rows for data that have none: a share of every client's training rows."""

from dataclasses import replace

import numpy as np

from fairfl.clients.federated import FederatedData

SHARE = 0.1
"""Of a client's training rows, as where a split is drawn from all rows."""


def with_validation(data: FederatedData, share: float = SHARE) -> FederatedData:
    """The same data, where every seed draws a share of each client's training rows to validate on.

    Test and support rows stay what they are. Data that have validation rows stay as they are.

    >>> import numpy as np, fairfl
    >>> from fairfl.clients import with_validation
    >>> rows = np.zeros((20, 2)), np.arange(20) % 2
    >>> published = fairfl.from_arrays({"a": rows}, test={"a": rows})
    >>> [part.sizes.tolist() for part in with_validation(published).split(seed=0)]
    [[18], [2], [20], [0]]
    """
    if not 0 < share < 1:
        raise ValueError(f"share={share} of the rows to validate on must lie between 0 and 1")
    if has_validation(data):
        return data
    return replace(data, fractions=(1 - share, share, 0.0))


def has_validation(data: FederatedData) -> bool:
    """Whether some client has rows to validate on.

    >>> import fairfl
    >>> from fairfl.clients.holdout import has_validation
    >>> has_validation(fairfl.datasets.load("synthetic", clients=20))
    True
    """
    return bool(np.any(data.split(seed=0).validation.sizes))
