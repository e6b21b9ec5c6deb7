"""The console as a process beside a host: the table ``[plugins.console]`` has the options of its command."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from odradek.client.command_config import load_command_config
from odradek.endpoints import Address, read_listener_tls
from odradek.endpoints.tls_context import default_context
from odradek.plugin import ConfigError, PluginConfig
from odradek.settings import read_settings
from odradek.settings.options import arguments, option_name
from odradek.settings.setting import walk
from odradek_console.alarms.destinations import read_destinations
from odradek_console.console_settings import ConsoleSettings
from odradek_console.engine.owners import read_owners
from odradek_console.web.tokens import read_tokens

LISTENER: Final = "listener"
LOOK_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleProcess:
    """``odradek console`` with the settings of ``[plugins.console]``."""

    address: Address
    scheme: str
    is_beside: bool
    """The cluster is the host itself."""
    security_protocol: str
    """That of the file of ``command.config``: the host passes the address of such a listener."""
    arguments: tuple[str, ...]

    def command(self, bootstrap_servers: str) -> Sequence[str]:
        """The program and its arguments."""
        return [
            *(sys.executable, "-m", "odradek_console", "--until-stdin-ends"),
            *(("--bootstrap-server", bootstrap_servers) if self.is_beside else ()),
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
        ConfigError: The body has raised one.
    """
    try:
        yield
    except ConfigError as error:
        for _, each in walk(ConsoleSettings):
            if option_name(each) == error.path:
                raise config.error(each.name, error.problem) from None
        raise config.error(key, f"{error.path}: {error.problem}") from None


def read_console(config: PluginConfig) -> ConsoleProcess | None:
    """Read the table; None without a listener.

    Raises:
        ConfigError: A key has an invalid value, or users could not be told apart at this address.
    """
    settings, tls = read_settings(ConsoleSettings, config), read_listener_tls(config, "tls.")
    if config.value(LISTENER) is None:
        return None
    address, reading = settings.server.address, settings.reading
    with explained(config, LISTENER):
        settings.access.check_at(address)
    with explained(config, "tokens"):
        if settings.users.tokens is not None:
            read_tokens(settings.users.tokens)
    with explained(config, "alarms"):
        if settings.alarms is not None:
            read_destinations(settings.alarms)
    with explained(config, "owners"):
        read_owners(reading.owners)
    if settings.program_ca is not None:
        try:
            default_context(cafile=settings.program_ca)
        except OSError as error:
            raise config.error("program.ca", str(error)) from None
    with explained(config, "command.config"):
        table = load_command_config(reading.command_config).table
    if not address.port:
        raise config.error(LISTENER, "expected a port other than 0, by which the pages can be found")
    return ConsoleProcess(
        address=address,
        scheme="http" if tls is None else "https",
        is_beside=reading.bootstrap_servers is None,
        security_protocol=table.text("security.protocol") or "PLAINTEXT",
        arguments=tuple(arguments(ConsoleSettings, config)),
    )
