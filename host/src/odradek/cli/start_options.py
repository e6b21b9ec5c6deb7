"""The options that all commands share that run until they are stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from odradek.endpoints.log_lines import FORMATTERS

Command = TypeVar("Command", bound=Callable[..., Any])


def config_options(command: Command) -> Command:
    """Add ``--config``, ``--set`` and ``--plugin`` before the other options of a command."""
    options = (
        click.option(
            "--config",
            "config_file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="TOML file; the page below lists its keys.",
        ),
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="KEY=VALUE",
            help="Override one key; may be repeated.",
        ),
        click.option(
            "--plugin", "plugins", multiple=True, metavar="NAME", help="Activate a plugin; may be repeated."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def log_options(command: Command) -> Command:
    """Add ``--log-level`` and ``--log-format`` before the other options of a command."""
    options = (
        click.option(
            "--log-level",
            type=click.Choice(["debug", "info", "warning", "error"]),
            default="info",
            show_default=True,
            help="Lowest level to log on stderr.",
        ),
        click.option(
            "--log-format",
            type=click.Choice(list(FORMATTERS)),
            default="text",
            show_default=True,
            help="Form of the log on stderr; json is one object per line.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
