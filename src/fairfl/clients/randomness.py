"""Named random streams: every draw is a function of (seed, stream, round, client).

A stream never depends on who else takes part or in which order, so experiments of one seed stay
paired, rounds are reachable at random, and a Flower run can repeat a simulation's draws.
"""

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What a draw is for; the numbers are part of every run's reproducibility and never change."""

    SPLIT = 1
    MODEL = 2
    COHORT = 3
    SHUFFLE = 4
    DATA = 5
    NOISE = 6


def generator(seed: int, stream: Stream, round: int = 0, client: int = 0) -> np.random.Generator:
    """One stream: Philox with key (seed, stream) and counter (0, 0, round, client).

    >>> from fairfl.clients.randomness import Stream, generator
    >>> a = generator(0, Stream.COHORT, round=7).integers(100, size=3)
    >>> b = generator(0, Stream.COHORT, round=7).integers(100, size=3)
    >>> bool((a == b).all())
    True
    """
    key = np.array([seed, stream], np.uint64)
    counter = np.array([0, 0, round, client], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
