"""A command as it was typed, for a run to remember and for a user to go on with."""

import shlex
from collections.abc import Sequence

import click
from click.core import ParameterSource

PLACES = ("data_dir", "as_json", "track")
"""What a command says of this machine and of this terminal alone."""


def as_typed(context: click.Context, without: Sequence[str]) -> str:
    """The command again, without where its results go."""
    words = ["fairfl", str(context.info_name), context.params["data"]]
    for option in context.command.params:
        name = str(option.name)
        typed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if typed and name not in ("data", "out", "resume", "overwrite", *without):
            is_flag = isinstance(option, click.Option) and option.is_flag
            words += [option.opts[0]] if is_flag else [option.opts[0], str(context.params[name])]
    return shlex.join(words)
