"""What every command that talks to brokers has: where they are, how to be a client, how to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from odradek.cli.command_config import load_command_config
from odradek.cli.errors import CommandFailed
from odradek.client.address import addresses
from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError

Command = TypeVar("Command", bound=Callable[..., Any])


def bootstrap(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Let through a list of addresses, so that a bad one is complained about under the option's name."""
    if value is not None:
        addresses(value, "--bootstrap-server")
    return value


def cluster_options(command: Command, required: bool = True) -> Command:
    """Add ``--bootstrap-server`` and ``--command-config`` in front of the options of a command."""
    options = (
        click.option(
            "--bootstrap-server",
            required=required,
            metavar="HOST:PORT[,...]",
            callback=bootstrap,
            help="The brokers to connect to.",
        ),
        click.option(
            "--command-config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="A properties file for the client: client.id, request.timeout.ms, security.protocol, sasl.*",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def connected(
    failing: str, bootstrap_server: str, command_config: Path | None, timeout_ms: int | None = None
) -> Iterator[AdminClient]:
    """An admin client for the time of a command.

    Args:
        failing: What the line begins with that says why the command failed.
        bootstrap_server: Where the brokers are.
        command_config: The client's properties file.
        timeout_ms: Instead of the file's ``request.timeout.ms``.

    Raises:
        CommandFailed: Instead of a `ClientError`.
        ConfigError: The file is not usable.
    """
    config = load_command_config(command_config)
    timeout_s = (timeout_ms or config.request_timeout_ms) / 1000
    try:
        with AdminClient(bootstrap_server, config.client_id, timeout_s, config.login) as admin:
            yield admin
    except ClientError as error:
        raise CommandFailed(f"{failing} {error}") from error
