"""``odradek serve``: run a host until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from odradek.bounds.small_file import read_small_file
from odradek.cli.errors import CommandFailed
from odradek.cli.start_options import config_options, log_options
from odradek.plugin.config import ConfigError
from odradek.process.freed_memory import FreedMemory
from odradek.process.garbage import tend_garbage
from odradek.process.limits import keep_buffers, on_hangup, raise_descriptor_limit, run, switch_threads_often
from odradek.process.log_format import audit_to_file, hide_in_log, log_to_stderr
from odradek.process.standard_streams import silence
from odradek.process.supervisor import READY, tell_supervisor
from odradek.programs.config import REFERENCE, HostConfig, load_config, read_values
from odradek.programs.config_check import check
from odradek.programs.host import Host
from odradek.programs.program_keys import Program, check_config, check_keys
from odradek.programs.reload import reload
from odradek.programs.start_report import report

if TYPE_CHECKING:
    from odradek.testing.running_host import RunningHost

log = logging.getLogger(__name__)

MOST_CONFIG_BYTES: Final = 64 << 20


@click.command(epilog=f"\b\nAll keys of the configuration:\n  {REFERENCE}")
@config_options
@click.option(
    "--recover-metadata",
    is_flag=True,
    help="If metadata.db is lost or damaged, rebuild the topics from their partitions.",
)
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Check the configuration and exit; opens no port and changes no file.",
)
@click.option(
    "--ephemeral",
    is_flag=True,
    help="For tests: free ports, data in a temporary directory, and a control port.",
)
@click.option(
    "--control",
    metavar="HOST:PORT",
    help="With --ephemeral: the control port; by default a free one of 127.0.0.1. Requests need the token in "
    "ODRADEK_CONTROL_TOKEN, if it is set; it must be, if other machines can reach HOST.",
)
@click.option(
    "--virtual-clock",
    is_flag=True,
    help="With --ephemeral: the host's time stands still until the control port advances it.",
)
@log_options
def serve(
    config_file: Path | None,
    overrides: tuple[str, ...],
    plugins: tuple[str, ...],
    recover_metadata: bool,
    only_check: bool,
    ephemeral: bool,
    control: str | None,
    virtual_clock: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Run a host until SIGTERM or SIGINT. Once it accepts connections it prints one line:

    odradek ready listeners=PLAINTEXT://HOST:PORT[,...] node.id=N data=DIR

    With --ephemeral the line ends with control=http://HOST:PORT, and if stdin is a pipe, the host also
    stops when the pipe closes.

    SIGHUP reloads the subscriptions of the file, and the tables of plugins that can take a new one.
    """
    if not ephemeral and (control is not None or virtual_clock):
        raise click.UsageError("--control and --virtual-clock need --ephemeral")
    if ephemeral and recover_metadata:
        raise click.UsageError("--ephemeral starts without data: nothing to recover")
    log_to_stderr(log_level, log_format)
    start = Start(config_file, overrides, plugins, recover_metadata, log_level, Program.SERVE)
    config = start.config()
    with config.secrets.hidden_in_errors():
        if config.audit_log_file is not None and not only_check:
            audit_to_file(config.audit_log_file)
            hide_in_log(config.secrets)
        if only_check:
            for line in check(config):
                click.echo(line)
        elif ephemeral:
            serve_ephemeral(start, control, virtual_clock)
        else:
            serve_until_stopped(start, config)


@dataclass(frozen=True, slots=True)
class Start:
    """The options that decide which host is started."""

    config_file: Path | None
    overrides: tuple[str, ...]
    plugins: tuple[str, ...]
    recover_metadata: bool
    log_level: str
    program: Program

    def config(self) -> HostConfig:
        """Read the configuration.

        Raises:
            ConfigError: It is not usable, or has keys of another program.
        """
        config = load_config(self.config_file, self.overrides, self.plugins)
        check_config(self.program, config)
        hide_in_log(config.secrets)
        return config


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


def serve_until_stopped(start: Start, config: HostConfig) -> None:
    """Run a host on the loop of this thread.

    Raises:
        CommandFailed: The host stopped by itself.
    """

    async def main(stop: asyncio.Event, failed: Failed) -> None:
        switch_threads_often()
        host = Host(config, recover_metadata=start.recover_metadata, failed=failed)
        try:
            async with followed(host, config):
                await host.start()
                on_hangup(partial(reload_file, host, start), stop)
                tend_garbage(host.clock, host.timer, host.broker.steps)
                FreedMemory.of_process(host.clock, host.timer)
                report(host, start.config_file, start.log_level)
                announce(ready_line(config, host))
                await stop.wait()
        finally:
            await host.stop()

    run_server(main)


def followed(host: Host, config: HostConfig) -> AbstractAsyncContextManager[None]:
    """Follow the subscriptions of a cluster in the body of the statement, if the configuration says so."""
    if not config.follow.servers:
        return nullcontext()
    from odradek.cli.followed_cluster import following  # the client, which other hosts do not need

    return following(host, config.follow)


def reload_file(host: Host, start: Start) -> None:
    """Reload the configuration, if there is a file that can have changed."""
    if start.config_file is None:
        log.warning("nothing to reload: the host was started without --config")
    else:
        reload(host, partial(read_again, start, start.config_file))


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


def serve_ephemeral(start: Start, control: str | None, virtual_clock: bool) -> None:
    """Run a host whose data end with it."""
    # the test kit, which other hosts do not need
    from odradek.cli.ephemeral import CONTROL, EphemeralHost, clock_from_now, run_ephemeral

    def ready(running: RunningHost, control_url: str) -> None:
        running.call(lambda: report(running.host, start.config_file, start.log_level))
        announce(f"{ready_line(running.host.config, running.host)} control={control_url}")

    values = read_values(start.config_file, start.overrides)
    check_keys(start.program, values)
    host = EphemeralHost(values, frozenset(start.plugins), clock_from_now() if virtual_clock else None)
    run_ephemeral(host, control or CONTROL, ready)


def announce(line: str) -> None:
    """Print the ready line, and tell the supervisor. Without a stdout the host serves all the same."""
    tell_supervisor(READY)
    try:
        click.echo(line)
    except OSError as error:
        silence(sys.stdout)
        log.warning("stdout cannot take the ready line", extra={"problem": error.strerror})


def ready_line(config: HostConfig, host: Host) -> str:
    """The line that scripts wait for. Its addresses have the ports that were bound, never 0."""
    addresses = ",".join(host.addresses)
    return f"odradek ready listeners={addresses} node.id={config.broker.node_id} data={config.data_dir}"
