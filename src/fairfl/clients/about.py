"""About: what a result remembers of its data, so that it can be read where the rows are not."""

from collections.abc import Hashable
from dataclasses import dataclass

from fairfl.clients.federated import FederatedData, Task


@dataclass(frozen=True)
class About:
    """The data without its rows; `fingerprint` tells whether other data are the same.

    `shape` is that of one row of x, and `classes` the user's own labels, None for regression.
    """

    name: str
    fingerprint: str
    ids: tuple[Hashable, ...]
    rows: int
    shape: tuple[int, ...]
    task: Task
    classes: tuple[bool | int | float | str, ...] | None

    @property
    def clients(self) -> int:
        return len(self.ids)


def about(data: FederatedData) -> About:
    """What is remembered of the data.

    >>> import numpy as np, fairfl
    >>> from fairfl.clients.about import about
    >>> found = about(fairfl.from_arrays({"a": (np.ones((4, 2)), ["no", "yes", "no", "no"])}))
    >>> found.clients, found.rows, found.shape, found.classes
    (1, 4, (2,), ('no', 'yes'))
    """
    return About(
        name=data.name,
        fingerprint=data.fingerprint,
        ids=data.ids,
        rows=len(data.y),
        shape=data.x.shape[1:],
        task=data.task,
        classes=None if data.classes is None else tuple(data.classes.tolist()),
    )
