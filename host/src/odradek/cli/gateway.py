"""``odradek gateway``: run a proxy in front of a Kafka cluster until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from odradek.cli.gateway_run import GatewayRun, ready_line
from odradek.cli.gateway_workers import WORKER, needs_parent, run_parent, run_worker
from odradek.cli.program_run import Failed, Start, announce, begin, run_server
from odradek.cli.start_options import check_option, config_options, log_options, tell
from odradek.gateway.gateway_settings import UPSTREAM, WORKERS
from odradek.process.log_format import audit_to_file, hide_in_log, log_to_stderr
from odradek.programs.config import REFERENCE
from odradek.programs.program_keys import Program


@click.command(epilog=f"\b\nAll keys of the configuration:\n  {REFERENCE}")
@click.option("--upstream", metavar="HOST:PORT[,...]", help="Brokers of the cluster; sets gateway.upstream.")
@click.option(
    "--workers", type=int, metavar="N", help="Processes that share ports and work; sets gateway.workers."
)
@check_option
@click.option(WORKER, "is_worker", is_flag=True, hidden=True)
@config_options
@log_options
def gateway(
    upstream: str | None,
    workers: int | None,
    only_check: bool,
    is_worker: bool,
    config_file: Path | None,
    overrides: tuple[str, ...],
    plugins: tuple[str, ...],
    log_level: str,
    log_format: str,
) -> None:
    """Run a proxy in front of a Kafka cluster until SIGTERM or SIGINT. Once it accepts connections it prints:

    odradek ready listeners=PLAINTEXT://HOST:PORT upstream=HOST:PORT[,...] nodes=FIRST-LAST[,...]

    Clients get telemetry from the gateway, and everything else from the brokers.

    SIGUSR1 takes the next step of the kill switch: no-observation, no-telemetry, rewrite-only. SIGHUP reloads
    subscriptions, quotas, certificates, and the tables of plugins that can take a new one.

    With --workers, the line ends with workers=N. Send signals to this process: it passes them on. It starts a
    worker again that has ended.
    """
    log_to_stderr(log_level, log_format)
    if upstream is not None:
        overrides = (*overrides, f"{UPSTREAM}={upstream}")
    if workers is not None:
        overrides = (*overrides, f"{WORKERS}={workers}")
    start = Start(config_file, overrides, plugins, False, log_level, Program.GATEWAY)
    config = start.config()
    with config.secrets.hidden_in_errors():
        if only_check:
            # not at the top: a gateway starts without it
            from odradek.cli.gateway_check import check_gateway

            tell("gateway", check_gateway(GatewayRun(config)))
            return
        if not is_worker and needs_parent(config):
            run_parent(start, config)
            return
        run = None if is_worker else GatewayRun(config)
        if config.audit_log_file is not None:
            audit_to_file(config.audit_log_file)
            hide_in_log(config.secrets)
        if run is None:
            run_worker(start)
        else:
            run_gateway(start, run)


def run_gateway(start: Start, made: GatewayRun) -> None:
    """Run a gateway on the loop of this thread.

    Raises:
        CommandFailed: The gateway stopped by itself.
    """

    async def main(stop: asyncio.Event, failed: Failed) -> None:
        async with made.running(failed) as gateway:
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, gateway.pairs.step_down)
            begin(gateway, start, stop)
            announce(ready_line(made.config, gateway.addresses))
            await stop.wait()

    run_server(main)
