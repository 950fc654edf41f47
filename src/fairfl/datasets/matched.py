"""Some of many clients, drawn so that their sizes have the mean and deviation of a published table.

A paper that draws its clients without a seed leaves nothing but such a table to draw them again by.
"""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fairfl.clients.randomness import Stream, generator

Number = int | float
Numbers = np.ndarray | np.floating


class Published(NamedTuple):
    """A row of the table: so many clients and samples, with a deviation over the clients."""

    clients: int
    samples: int
    deviation: float


def matched(
    sizes: Int[np.ndarray, " clients"], count: int, published: Published, seed: int
) -> Int[np.ndarray, " chosen"]:
    """The places of `count` clients, in order: a draw, and then the swaps of one of them for one
    of the others, the best first, that bring mean and deviation closer, until none does.

    >>> import numpy as np
    >>> from fairfl.datasets.matched import Published, matched
    >>> sizes = np.arange(1, 101) ** 2
    >>> published = Published(clients=20, samples=60_000, deviation=2_500)
    >>> chosen = sizes[matched(sizes, 10, published, seed=0)]
    >>> round(chosen.mean(), -1), round(chosen.std(), -1)
    (np.float64(3000.0), np.float64(2500.0))
    """
    chosen = generator(seed, Stream.DATA).permutation(len(sizes))[:count]
    values = sizes.astype(np.float64)
    drawn = values[chosen]
    nearest = _distance(drawn.sum(), (drawn**2).sum(), count, published)
    while True:
        distance = _after_swaps(values, chosen, published)
        distance[:, chosen] = np.inf
        leaves, comes = np.unravel_index(np.argmin(distance), distance.shape)
        if distance[leaves, comes] >= nearest:
            return np.sort(chosen)
        chosen[leaves], nearest = comes, distance[leaves, comes]


def _after_swaps(
    values: Float[np.ndarray, " clients"], chosen: Int[np.ndarray, " chosen"], published: Published
) -> Float[np.ndarray, "chosen clients"]:
    """How far from the table every swap would lead."""
    total, squares = (
        powers[chosen].sum() - powers[chosen][:, None] + powers for powers in (values, values**2)
    )
    return _distance(total, squares, len(chosen), published)


def _distance(total: Numbers, squares: Numbers, count: int, published: Published) -> Any:
    mean = total / count
    deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
    return np.hypot(mean - published.samples / published.clients, deviation - published.deviation)


def chosen_clients(
    sizes: Int[np.ndarray, " clients"],
    clients: Number | None,
    least: Number,
    published: Published,
    seed: int,
    of: str,
    rows: str,
) -> Int[np.ndarray, " chosen"]:
    """The places of `clients` of those with at least `least` rows: where None, as many as are
    published, or all where there are fewer.

    >>> import numpy as np
    >>> from fairfl.datasets.matched import Published, chosen_clients
    >>> table = Published(clients=2, samples=10, deviation=1)
    >>> chosen_clients(np.array([4, 9, 2, 6]), None, 3, table, 0, "roles", "samples").tolist()
    [0, 3]
    """
    places = at_least(sizes, least, of, rows)
    count = (
        min(published.clients, len(places)) if clients is None else whole_number("clients", clients)
    )
    if count > len(places):
        raise ValueError(
            f"clients={count:,} are more than the {len(places):,} {of} with at least {least:,} "
            f"{rows}; ask for fewer, or lower `least`"
        )
    return places[matched(sizes[places], count, published, seed)]


def at_least(
    sizes: Int[np.ndarray, " clients"], least: Number, of: str, rows: str
) -> Int[np.ndarray, " chosen"]:
    """The places of those with at least so many rows.

    >>> import numpy as np
    >>> from fairfl.datasets.matched import at_least
    >>> at_least(np.array([4, 9, 2, 6]), 5, "roles", "samples").tolist()
    [1, 3]
    """
    places = np.flatnonzero(sizes >= whole_number("least", least))
    if not len(places):
        raise ValueError(
            f"least={least:,}, but the largest of {len(sizes):,} {of} has {sizes.max():,} {rows}; "
            "ask for fewer"
        )
    return places


def whole_number(name: str, value: object) -> int:
    """The value, where it is a whole number of at least 1.

    >>> from fairfl.datasets.matched import whole_number
    >>> whole_number("most", 5)
    5
    """
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r} must be a whole number of at least 1")
    return int(value)
