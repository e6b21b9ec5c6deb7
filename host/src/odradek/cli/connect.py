"""The options and the connection shared by all commands that talk to brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from odradek.cli.errors import CommandFailed
from odradek.cli.progress import Progress
from odradek.cli.usage import Command, options_of
from odradek.client.address import addresses
from odradek.client.admin import AdminClient
from odradek.client.command_config import load_command_config
from odradek.client.errors import ClientError


def bootstrap(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Validate the list of addresses here, so that the error names the option."""
    if value is not None:
        addresses(value, "--bootstrap-server")
    return value


def cluster_options(command: Command, required: bool = True) -> Command:
    """Add ``--bootstrap-server`` and ``--command-config`` before the other options of a command."""
    options = options_of(
        click.option(
            "--bootstrap-server",
            required=required,
            metavar="HOST:PORT[,...]",
            callback=bootstrap,
            help="Brokers to connect to, tried in order.",
        ),
        click.option(
            "--command-config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Properties file of the client: client.id, request.timeout.ms, security.protocol, sasl.*, "
            "ssl.*",
        ),
    )
    return options(command)


@contextmanager
def connected(
    failing: str,
    bootstrap_server: str,
    command_config: Path | None,
    timeout_ms: int | None = None,
    *,
    progress: bool = True,
) -> Iterator[AdminClient]:
    """Yield an admin client that is closed when the command ends, and show progress on a terminal.

    Args:
        failing: Prefix of the error message.
        bootstrap_server: Addresses of the brokers.
        command_config: The client's properties file.
        timeout_ms: Overrides ``request.timeout.ms`` of the file.
        progress: Whether to show that the command is waiting; not for commands that wait as their job.

    Raises:
        CommandFailed: The body raised a `ClientError`.
        ConfigError: The file is not usable.
    """
    config = load_command_config(command_config)
    waiting = Progress(f"waiting for {bootstrap_server}", silent=not progress)
    try:
        with waiting, config.admin(bootstrap_server, timeout_ms) as admin:
            yield admin
    except ClientError as error:
        raise CommandFailed(f"{failing} {error}") from error
