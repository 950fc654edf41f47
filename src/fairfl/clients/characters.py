"""Characters as numbers: the 80 of LEAF's Shakespeare, in its order."""

import numpy as np
from jaxtyping import UInt8

ALPHABET = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
"""The number of a character is its place here. LEAF turns line ends into spaces, so that number 0
is free: any other character becomes it."""

_NUMBERS = np.zeros(256, np.uint8)
_NUMBERS[[ord(character) for character in ALPHABET]] = np.arange(len(ALPHABET))


def numbers_of(text: str) -> UInt8[np.ndarray, " characters"]:
    """The numbers of a text's characters.

    >>> from fairfl.clients.characters import numbers_of
    >>> numbers_of("To be?").tolist(), numbers_of("ŧ").tolist()
    ([44, 67, 1, 54, 57, 24], [0])
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return _NUMBERS[np.minimum(codes, len(_NUMBERS) - 1)]
