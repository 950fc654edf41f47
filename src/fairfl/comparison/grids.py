"""What a method is tried with where nothing was said: as many settings for one as for another."""

from collections.abc import Mapping

import numpy as np

BUDGET = 9
"""Settings of a method: three values of its own parameter at three learning rates, for example."""

GRIDS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "q-fedavg": {"q": (0.1, 1, 5)},
    "q-fedsgd": {"q": (0.1, 1, 5)},
    "fixed-step": {"q": (0.1, 1, 5)},
    "afl": {"gamma": (0.01, 0.1, 1)},
    "term": {"t": (0.1, 1, 5)},
    "superquantile": {"theta": (0.2, 0.5, 0.8)},
    "gifair": {"c": (0.1, 0.5, 0.9)},
    "semi-vred": {"beta": (0.1, 0.3, 1)},
    "fedprox": {"mu": (0.01, 0.1, 1)},
    "fedfv": {"alpha": (0.1, 0.3, 0.5)},
    "propfair": {"M": (2, 5, 10)},
    "aaggff": {"eta": (0.3, 1, 3)},
    "maml": {"inner_learning_rate": (0.01, 0.03, 0.1)},
    "q-maml": {"q": (0.1, 1, 5)},
    # Its updates are normalised, so eta takes the place of the learning rate.
    "fedmgda": {"eps": (0.1, 0.5, 1), "eta": (0.1, 0.3, 1)},
}
"""Values of each method's own parameters, around those that its paper uses."""

OF_THEIR_OWN = frozenset({"maml", "q-maml"})
"""Methods that serve each client with a model of its own: compared only where they are named."""

SPAN = 10.0
"""The learning rates go from the usual one divided by this to the usual one times this."""


def rates(usual: float, own: int) -> tuple[float, ...]:
    """Learning rates around the usual one that spend the budget, in equal ratios.

    `own` counts the values that the method's own parameters have. The number of rates is odd, so
    that the usual one is among them.

    >>> from fairfl.comparison.grids import rates
    >>> rates(0.1, own=3), rates(0.1, own=9), len(rates(0.1, own=1))
    ((0.01, 0.1, 1.0), (0.1,), 9)
    """
    count = max(1, BUDGET // own)
    count -= count % 2 == 0
    found = usual * SPAN ** np.linspace(-1, 1, count) if count > 1 else [usual]
    return tuple(float(f"{rate:.2g}") for rate in found)
