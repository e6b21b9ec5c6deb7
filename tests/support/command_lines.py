"""Command lines of files for operators, read as the commands themselves read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from odradek.cli.main import cli


def parsed(arguments: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The command of a line, without the program's name, and the values of its options. It is not run.

    Raises:
        click.UsageError: It does not accept them.
    """
    command: click.Command = cli
    rest = list(arguments)
    # A command keeps its help option from its first context on, so that must have the names of the program.
    with click.Context(cli, **cli.context_settings) as context:
        while isinstance(command, click.Group):
            found = command.get_command(context, rest[0])
            if found is None:
                raise click.UsageError(f"no such command: {rest[0]}")
            command, rest = found, rest[1:]
        return str(command.name), command.make_context(str(command.name), rest, context).params
