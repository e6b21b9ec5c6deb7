"""How every program runs: its options, its loop, its signals, and its exit code."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from odradek.bounds.small_file import read_small_file
from odradek.cli.errors import CommandFailed
from odradek.plugin.config import ConfigError
from odradek.process.freed_memory import FreedMemory
from odradek.process.garbage import tend_garbage
from odradek.process.limits import keep_buffers, on_hangup, raise_descriptor_limit, run
from odradek.process.log_format import hide_in_log
from odradek.process.standard_streams import silence
from odradek.process.supervisor import READY, tell_supervisor
from odradek.programs.config import HostConfig, load_config
from odradek.programs.program_keys import Program, check_config
from odradek.programs.reload import Reloader
from odradek.programs.start_report import report

if TYPE_CHECKING:
    from odradek.broker.acls import Acls
    from odradek.programs.gateway import Gateway
    from odradek.programs.host import Host

log = logging.getLogger(__name__)

MOST_CONFIG_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Start:
    """The options that decide which host is started."""

    config_file: Path | None
    overrides: tuple[str, ...]
    plugins: tuple[str, ...]
    recover_metadata: bool
    log_level: str
    program: Program
    adapted: Callable[[HostConfig], HostConfig] = lambda config: config
    """Adapts the configuration to the process: a worker of a gateway has a share of it."""

    def config(self) -> HostConfig:
        """Read the configuration.

        Raises:
            ConfigError: It is not usable, or has keys of another program.
        """
        config = load_config(self.config_file, self.overrides, self.plugins)
        check_config(self.program, config)
        hide_in_log(config.secrets)
        return self.adapted(config)


Failed = Callable[[str], None]
"""Takes the reason why a server stops by itself."""


def run_server(serve: Callable[[asyncio.Event, Failed], Coroutine[Any, Any, None]]) -> None:
    """Run a host or a gateway on the loop of this thread.

    Args:
        serve: Serves until the event is set, by a signal or by its own failure.

    Raises:
        CommandFailed: The server stopped by itself.
    """
    failures: list[str] = []

    async def main(stop: asyncio.Event) -> None:
        def failed(reason: str) -> None:
            failures.append(reason)
            stop.set()

        keep_buffers()
        raise_descriptor_limit()
        await serve(stop, failed)

    run(main)
    if failures:
        raise CommandFailed(f"odradek stopped: {failures[0]}")


def begin(program: Host | Gateway, start: Start, stop: asyncio.Event, acls: Acls | None = None) -> None:
    """Do what every program with clients does once it has started."""
    on_hangup(partial(reload_file, program.reloader, start), stop)
    tend_garbage(program.clock, program.timer, program.ground.common.steps)
    FreedMemory.of_process(program.clock, program.timer)
    report(program, start.config_file, start.log_level, acls)


def reload_file(reloader: Reloader, start: Start) -> None:
    """Reload the configuration, if there is a file that can have changed."""
    if start.config_file is None:
        log.warning("nothing to reload: the host was started without --config")
    else:
        reloader.reload(partial(read_again, start, start.config_file))


def read_again(start: Start, config_file: Path) -> HostConfig:
    """Read the configuration while the host runs. The first time it may come from a pipe.

    Raises:
        ConfigError: It is not usable, or not in a file.
    """
    try:
        read_small_file(config_file, MOST_CONFIG_BYTES)
    except OSError as error:
        raise ConfigError(str(config_file), f"cannot be read: {error.strerror}") from error
    return start.config()


def announce(line: str) -> None:
    """Print the ready line, and tell the supervisor. Without a stdout the host serves all the same."""
    tell_supervisor(READY)
    try:
        click.echo(line)
    except OSError as error:
        silence(sys.stdout)
        log.warning("stdout cannot take the ready line", extra={"problem": error.strerror})
