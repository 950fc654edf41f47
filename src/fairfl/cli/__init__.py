"""The command line: one file per command; no logic."""

import io
import sys
import warnings
from collections.abc import Sequence

import typer

from fairfl.cli import compare, datasets, predict, report, reproduce, training
from fairfl.cli.app import app
from fairfl.cli.errors import INTERRUPTED, complain, note, say_error
from fairfl.runs import compiled

__all__ = ["app", "compare", "datasets", "main", "predict", "report", "reproduce", "training"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; whatever goes wrong is one sentence."""
    warnings.showwarning = note
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show ± shows a question mark.
            stream.reconfigure(errors="replace")
    compiled.keep()
    command = typer.main.get_command(app)
    command.suggest_commands = False  # type: ignore[attr-defined]  # click does it
    try:
        code = command.main(
            args=None if arguments is None else list(arguments),
            prog_name="fairfl",
            standalone_mode=False,
        )
    except Exception as error:
        return complain(error)
    if code == INTERRUPTED:
        say_error("interrupted; where the run has a folder, --out FOLDER --resume goes on with it")
    return code or 0
