"""Whatever goes wrong is one sentence on stderr, with an exit code that tells whose it was."""

import os
import re
import sys
import traceback
from typing import Any

import click

OURS, THEIRS, INTERRUPTED = 1, 2, 130
"""Exit codes: a mistake of ours, a mistake of the user's, Ctrl-C."""


class CommandError(Exception):
    """The command ends here, with an exit code and a sentence."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def complain(error: Exception) -> int:
    """Say what went wrong, and give the exit code that tells whose mistake it was."""
    if os.environ.get("FAIRFL_DEBUG") == "1":
        traceback.print_exception(error)
    match error:
        case CommandError():
            code, sentence = error.code, str(error)
        case click.UsageError():
            code, sentence = THEIRS, _usage(error)
        case ValueError():
            code, sentence = THEIRS, str(error)
        case OSError():
            code, sentence = THEIRS, f"{error}; check that the place exists and is yours to use"
        case _:
            code = OURS
            sentence = (
                f"{type(error).__name__} ({error}); this is a bug in fairfl, so please report it "
                "with what FAIRFL_DEBUG=1 prints"
            )
    say_error(sentence)
    return code


def _usage(error: click.UsageError) -> str:
    """What click says in two sentences, as one."""
    said = re.sub(r"\. (\(?)D", r"; \1d", error.format_message()).rstrip(".")
    command = error.ctx.command_path if error.ctx else "fairfl"
    return said if said.endswith("?") else f"{said}; see {command} --help"


def say_error(sentence: str) -> None:
    print(f"Error: {' '.join(sentence.split())}", file=sys.stderr)


def note(message: Warning | str, *_: Any) -> None:
    """A warning as a user reads it: without the line of our code that gave it."""
    print(f"Note: {message}", file=sys.stderr)
