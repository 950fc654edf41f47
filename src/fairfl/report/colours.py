"""Colours of the reports: few, told apart without seeing red from green, on light and on dark."""

from collections.abc import Sequence
from typing import NamedTuple


class Colours(NamedTuple):
    """What each colour says; `ramp` is for settings in an order and `methods` for those without.

    >>> from fairfl.report.colours import DARK, LIGHT
    >>> len(LIGHT.ramp) == len(DARK.ramp), len(LIGHT.methods) == len(DARK.methods)
    (True, True)
    """

    paper: str
    wash: str
    ink: str
    muted: str
    line: str
    plain: str
    chosen: str
    lost: str
    ramp: tuple[str, ...]
    methods: tuple[str, ...]


LIGHT = Colours(
    paper="#ffffff",
    wash="#f5f6f8",
    ink="#171a1f",
    muted="#5a6470",
    line="#dfe3e8",
    plain="#858f9c",
    chosen="#0b65b8",
    lost="#bf4800",
    ramp=("#858f9c", "#3fae9b", "#2b97b8", "#2a78c5", "#4a55bd", "#6a38a3", "#7c2480", "#7d1550"),
    methods=(
        "#0072b2",
        "#d55e00",
        "#009e73",
        "#cc79a7",
        "#e69f00",
        "#56b4e9",
        "#7a5195",
        "#6b6b6b",
    ),
)
"""On white; the ramp begins with plain's grey and runs from green over blue to plum."""

DARK = Colours(
    paper="#14171b",
    wash="#1d2127",
    ink="#eceff3",
    muted="#a0aab6",
    line="#313841",
    plain="#8d98a6",
    chosen="#62b0f5",
    lost="#ff9a57",
    ramp=("#8d98a6", "#6fd3bf", "#5cc3dc", "#68aef2", "#8f9df7", "#b28cf2", "#d585dc", "#f287b7"),
    methods=(
        "#4aa8e0",
        "#ff8a47",
        "#33c79d",
        "#e5a3c8",
        "#f5bf4f",
        "#9bd4f5",
        "#b48ad1",
        "#b0b0b0",
    ),
)
"""The same on black, place by place."""


def swaps() -> dict[str, str]:
    """From every light colour to its dark one.

    >>> from fairfl.report.colours import swaps
    >>> swaps()["#ffffff"]
    '#14171b'
    """
    return dict(zip(_flat(LIGHT), _flat(DARK), strict=True))


def _flat(colours: Colours) -> list[str]:
    return [*colours[:8], *colours.ramp, *colours.methods]


def stepped(count: int, colours: Sequence[str] = LIGHT.ramp) -> list[str]:
    """So many colours of a ramp, from end to end; the last repeats where there are not enough.

    >>> from fairfl.report.colours import stepped
    >>> stepped(3, ["a", "b", "c", "d", "e"]), stepped(1, ["a", "b"])
    (['a', 'c', 'e'], ['a'])
    """
    last = len(colours) - 1
    return [colours[round(place * last / max(1, count - 1))] for place in range(count)]
