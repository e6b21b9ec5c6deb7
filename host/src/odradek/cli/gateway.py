"""``odradek gateway``: run a proxy in front of a Kafka cluster until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import logging
import signal
from functools import partial
from pathlib import Path

import click

from odradek.cli.command_config import CommandConfig, load_command_config
from odradek.cli.errors import CommandFailed
from odradek.cli.serve import Start, announce
from odradek.cli.start_options import config_options, log_options
from odradek.client.address import addresses
from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import ClusterWatch, Observed
from odradek.clock import SystemClock
from odradek.gateway.gateway_settings import UPSTREAM
from odradek.server.config import REFERENCE, HostConfig
from odradek.server.gateway.gateway import Gateway
from odradek.server.gateway.gateway_host import GatewayHost
from odradek.server.gateway.gateway_kinds import check_listeners
from odradek.server.host import Host
from odradek.server.log_format import audit_to_file, hide_in_log, log_to_stderr
from odradek.server.plugins.process import freeze_garbage, keep_buffers, raise_descriptor_limit, run
from odradek.server.start_report import report

log = logging.getLogger(__name__)

FIRST_POLL_S = 5.0
"""Time for the cluster to answer before the start goes on without it."""


@click.command(epilog=f"\b\nAll keys of the configuration:\n  {REFERENCE}")
@click.option("--upstream", metavar="HOST:PORT[,...]", help="Brokers of the cluster; sets gateway.upstream.")
@config_options
@log_options
def gateway(
    upstream: str | None,
    config_file: Path | None,
    overrides: tuple[str, ...],
    plugins: tuple[str, ...],
    log_level: str,
    log_format: str,
) -> None:
    """Run a proxy in front of a Kafka cluster until SIGTERM or SIGINT. Once it accepts connections it prints:

    odradek ready listeners=PLAINTEXT://HOST:PORT upstream=HOST:PORT[,...] nodes=FIRST-LAST[,...]

    Clients get telemetry from the gateway, and everything else from the brokers.

    SIGUSR1 takes the next step of the kill switch: no-observation, no-telemetry, rewrite-only.
    """
    log_to_stderr(log_level, log_format)
    if upstream is not None:
        overrides = (*overrides, f"{UPSTREAM}={upstream}")
    start = Start(config_file, overrides, plugins, False, log_level)
    config = start.config()
    with config.secrets.hidden_in_errors():
        check_listeners(config)
        brokers = addresses(",".join(config.gateway.upstream), UPSTREAM)
        connection = load_command_config(config.gateway.upstream_config)
        if config.audit_log_file is not None:
            audit_to_file(config.audit_log_file)
            hide_in_log(config.secrets)
        made = Gateway(
            config,
            [(each.host, each.port) for each in brokers],
            connection.context(),
            connection.login is not None,
            SystemClock(),
        )
        run_gateway(start, config, made, connection)


def run_gateway(start: Start, config: HostConfig, made: Gateway, connection: CommandConfig) -> None:
    """Run a gateway on the loop of this thread.

    Raises:
        CommandFailed: The gateway stopped by itself.
    """
    failures: list[str] = []

    async def main(stop: asyncio.Event) -> None:
        def failed(reason: str) -> None:
            failures.append(reason)
            stop.set()

        keep_buffers()
        raise_descriptor_limit()
        host = GatewayHost(config, made, failed)
        loop = asyncio.get_running_loop()
        own = config.gateway.own_telemetry

        def polled(state: Observed) -> None:
            loop.call_soon_threadsafe(host.polled, state)

        watch = ClusterWatch(
            partial(connected, config, connection),
            own.poll_interval_ms,
            polled,
            with_subscriptions=own.reads_cluster,
        )
        made.dialer.refresh = watch.poke
        try:
            found = await first_poll(watch, made)
            await host.start()
            host.polled(found)
            watch.start()
            loop.add_signal_handler(signal.SIGUSR1, made.step_down)
            freeze_garbage()
            report(host, start.config_file, start.log_level)
            announce(ready_line(config, host))
            await stop.wait()
        finally:
            await asyncio.to_thread(watch.stop)
            await host.stop()

    run(main)
    if failures:
        raise CommandFailed(f"odradek stopped: {failures[0]}")


def connected(config: HostConfig, connection: CommandConfig) -> AdminClient:
    """A client for the gateway's own requests, with the certificates and secrets of now."""
    return AdminClient(
        ",".join(config.gateway.upstream),
        client_id=connection.client_id,
        timeout_s=connection.request_timeout_ms / 1000,
        login=connection.login,
        tls=connection.context(),
    )


async def first_poll(watch: ClusterWatch, made: Gateway) -> Observed:
    """Ask the cluster for its brokers and subscriptions before clients can connect, unless it does not answer
    soon.

    Raises:
        ConfigError: A broker has no port.
    """
    try:
        found = await asyncio.wait_for(asyncio.to_thread(watch.poll), FIRST_POLL_S)
    except TimeoutError:
        found = Observed(failure=f"no answer within {FIRST_POLL_S:g} s")
    made.check_nodes(node_id for node_id, _, _ in found.nodes)
    if found.failure is not None:
        log.warning(
            "the cluster does not answer; clients are accepted, and closed until it does",
            extra={"upstream": ",".join(made.settings.upstream), "problem": found.failure},
        )
    return found


def ready_line(config: HostConfig, host: Host) -> str:
    """The line that scripts wait for. Its ports are the bound ones, never 0."""
    listeners = ",".join(host.addresses)
    upstream = ",".join(config.gateway.upstream)
    return f"odradek ready listeners={listeners} upstream={upstream} nodes={config.gateway.addressing}"
