"""The typer application that the commands register with."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_type_hints

import click
import typer

from fairfl import __version__
from fairfl.cli.options import AskedData

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)


A = TypeVar("A", bound=AskedData)


def command(asked: type[A]) -> Callable[[Callable[[A], None]], None]:
    """Register a function of a request as the command of its name, with the request's fields."""

    def register(function: Callable[[A], None]) -> None:
        def typed(**options: Any) -> None:
            function(asked(**options))

        typed.__doc__ = _flowing(inspect.getdoc(function) or "")
        typed.__annotations__ = get_type_hints(asked, include_extras=True)
        typed.__signature__ = inspect.signature(asked)  # type: ignore[attr-defined]
        app.command(function.__name__)(typed)

    return register


def _flowing(paragraphs: str) -> str:
    """Each paragraph on one line, because typer keeps the line ends of the source."""
    return "\n\n".join(" ".join(lines.split()) for lines in paragraphs.split("\n\n"))


@app.callback(invoke_without_command=True)
def _begin(
    context: click.Context,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", show_default=False)
    ] = False,
) -> None:
    """Fair federated learning: train one model so that it serves every client."""
    if show_version:
        print(f"fairfl {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())
