"""The console as a process beside a host: the table ``[plugins.console]`` has the options of its command."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import click

from odradek.client.command_config import load_command_config
from odradek.endpoints import Address, read_listener_tls
from odradek.plugin import ConfigError, PluginConfig
from odradek_console.alarms.destinations import read_destinations
from odradek_console.console_settings import LISTENER, SERVERS, key_of, options, read_arguments
from odradek_console.engine.owners import read_owners
from odradek_console.terminal.access_options import access_settings
from odradek_console.web.tokens import read_tokens

LOOK_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleProcess:
    """``odradek console`` with the settings of ``[plugins.console]``."""

    address: Address
    scheme: str
    bootstrap_servers: str | None
    """None for the host itself."""
    security_protocol: str
    """That of the file of ``command.config``: the host passes the address of such a listener."""
    arguments: tuple[str, ...]

    def command(self, bootstrap_servers: str) -> Sequence[str]:
        """The program and its arguments."""
        return [
            *(sys.executable, "-m", "odradek_console", "--until-stdin-ends"),
            *("--bootstrap-server", self.bootstrap_servers or bootstrap_servers),
            *self.arguments,
        ]

    def status(self, bootstrap_servers: str) -> Mapping[str, object]:
        """The address of the pages, and whether the process listens there."""
        host, port = self.address
        try:
            with socket.create_connection((host, port), LOOK_S):
                answers = "yes"
        except OSError as error:
            answers = f"no: {error.strerror or error}"
        return {"page": f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{port}/", "answers": answers}


@contextmanager
def explained(config: PluginConfig, key: str) -> Iterator[None]:
    """Name the key of the table in errors.

    Raises:
        ConfigError: The body has raised one, or an error of an option.
    """
    try:
        yield
    except click.UsageError as error:
        parameter = getattr(error, "param", None)
        raise config.error(key if parameter is None else key_of(parameter), error.message) from None
    except ConfigError as error:
        if error.path.startswith("--"):
            (key,) = (key_of(each) for each in options.params if error.path in each.opts)
            raise config.error(key, error.problem) from None
        raise config.error(key, f"{error.path}: {error.problem}") from None


def read_console(config: PluginConfig) -> ConsoleProcess | None:
    """Read the table; None without a listener.

    Raises:
        ConfigError: A key has an invalid value, or users could not be told apart at this address.
    """
    arguments = read_arguments(config)
    bootstrap_servers, tls = config.text(SERVERS), read_listener_tls(config, "tls.")
    if config.value(LISTENER) is None:
        return None
    with explained(config, LISTENER):
        given = options.make_context("console", ["--bootstrap-server", "host:1", *arguments]).params
        access_settings(given).check(given[LISTENER])
    with explained(config, "tokens"):
        if given["tokens"] is not None:
            read_tokens(given["tokens"])
    with explained(config, "alarms"):
        if given["alarms"] is not None:
            read_destinations(given["alarms"])
    with explained(config, "owners"):
        read_owners(given["owners"])
    with explained(config, "command.config"):
        table = load_command_config(given["command_config"]).table
    if not given[LISTENER].port:
        raise config.error(LISTENER, "expected a port other than 0, by which the pages can be found")
    return ConsoleProcess(
        address=given[LISTENER],
        scheme="http" if tls is None else "https",
        bootstrap_servers=bootstrap_servers,
        security_protocol=table.text("security.protocol") or "PLAINTEXT",
        arguments=tuple(arguments),
    )
