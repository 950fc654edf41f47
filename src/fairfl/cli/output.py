"""What a command prints for people."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console


def say(lines: Sequence[Any], aside: bool = False) -> None:
    """Print text and tables, aside for people who have the output read by a program."""
    console = Console(stderr=aside, highlight=False)
    for line in lines:
        console.print(line, markup=False)
