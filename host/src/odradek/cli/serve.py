"""``odradek serve``: run a host until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from odradek.cli.program_run import Failed, Start, announce, begin, run_server
from odradek.cli.start_options import config_options, log_options
from odradek.process.limits import switch_threads_often
from odradek.process.log_format import audit_to_file, hide_in_log, log_to_stderr
from odradek.programs.config import REFERENCE, HostConfig, read_values
from odradek.programs.config_check import check
from odradek.programs.embedded import started
from odradek.programs.host import Host
from odradek.programs.program_keys import Program, check_keys
from odradek.programs.start_report import report

if TYPE_CHECKING:
    from odradek.testing.running_host import RunningHost

log = logging.getLogger(__name__)


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
    help="For tests: free ports, data in a temporary directory, a control port, and only the plugins that "
    "--plugin or a table names.",
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
@click.option(
    "--brokers",
    metavar="N",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="With --ephemeral: how many brokers clients see, each on a port of its own.",
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
    brokers: int,
    log_level: str,
    log_format: str,
) -> None:
    """Run a host until SIGTERM or SIGINT. Once it accepts connections it prints one line:

    odradek ready listeners=PLAINTEXT://HOST:PORT[,...] node.id=N data=DIR

    With --ephemeral the line ends with control=http://HOST:PORT, and if stdin is a pipe, the host also
    stops when the pipe closes.

    SIGHUP reloads the subscriptions of the file, and the tables of plugins that can take a new one.
    """
    if not ephemeral and (control is not None or virtual_clock or brokers > 1):
        raise click.UsageError("--control, --virtual-clock and --brokers need --ephemeral")
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
            serve_ephemeral(start, control, virtual_clock, brokers)
        else:
            serve_until_stopped(start, config)


def serve_until_stopped(start: Start, config: HostConfig) -> None:
    """Run a host on the loop of this thread.

    Raises:
        CommandFailed: The host stopped by itself.
    """

    async def main(stop: asyncio.Event, failed: Failed) -> None:
        switch_threads_often()
        host = Host(config, recover_metadata=start.recover_metadata, failed=failed)
        async with started(host):
            begin(host, start, stop, host.broker.acls)
            announce(ready_line(config, host))
            await stop.wait()

    run_server(main)


def serve_ephemeral(start: Start, control: str | None, virtual_clock: bool, brokers: int) -> None:
    """Run a host whose data end with it."""
    # the test kit, which other hosts do not need
    from odradek.cli.ephemeral import CONTROL, EphemeralHost, clock_from_now, run_ephemeral, tell_inactive

    def ready(running: RunningHost, control_url: str) -> None:
        host = running.host
        running.call(lambda: report(host, start.config_file, start.log_level, host.broker.acls))
        tell_inactive(running.plugins, running.config.requested_plugins)
        announce(f"{ready_line(running.host.config, running.host)} control={control_url}")

    values = read_values(start.config_file, start.overrides)
    check_keys(start.program, values)
    clock = clock_from_now() if virtual_clock else None
    host = EphemeralHost(values, frozenset(start.plugins), clock, brokers)
    run_ephemeral(host, control or CONTROL, ready)


def ready_line(config: HostConfig, host: Host) -> str:
    """The line that scripts wait for. Its addresses have the ports that were bound, never 0."""
    addresses = ",".join(host.addresses)
    return f"odradek ready listeners={addresses} node.id={config.broker.node_id} data={config.data_dir}"
