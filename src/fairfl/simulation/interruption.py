"""Ctrl-C is heard between chunks: what is under way is finished, so that it can be kept."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Ctrl-C was heard, and every group stands at the end of a chunk."""


@contextmanager
def heard() -> Iterator[threading.Event]:
    """Set by the first Ctrl-C of the block; a second one ends the block at once, as ever.

    Only in the main thread, where Python hears signals, and only where nobody else listens.

    >>> import signal
    >>> from fairfl.simulation.interruption import heard
    >>> with heard() as asked:
    ...     asked.is_set()
    False
    """
    asked = threading.Event()
    numbers = _listening() if threading.current_thread() is threading.main_thread() else []

    def hear(*_: Any) -> None:
        asked.set()
        _restore(numbers)

    for number in numbers:
        signal.signal(number, hear)
    try:
        yield asked
    finally:
        _restore(numbers)


def _listening() -> list[signal.Signals]:
    """The signals that Python would turn into a KeyboardInterrupt."""
    both = (signal.SIGINT, signal.SIGTERM)
    return [number for number in both if signal.getsignal(number) is signal.default_int_handler]


def _restore(numbers: list[signal.Signals]) -> None:
    for number in numbers:
        signal.signal(number, signal.default_int_handler)
