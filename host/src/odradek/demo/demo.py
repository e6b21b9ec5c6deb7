"""``odradek demo``: runs a host, a real producer and a real consumer, and shows the metrics they push.

Everything is local and temporary: free ports, a temporary directory, and a small OTLP endpoint that counts
what arrives unless ``--otlp`` names another one.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from odradek.cli.client_view import ClientView
from odradek.demo.clients import SETTLE_S, Clients
from odradek.demo.console import DemoConsole, check_console
from odradek.demo.gateway import DemoGateways, Producers
from odradek.demo.libraries import library
from odradek.demo.pipeline import QUOTA, Pipeline, check_pipeline, quota_line
from odradek.demo.prometheus import PROGRAM, DemoPrometheus, program_of
from odradek.demo.security import CONSUMER, MECHANISM, PRODUCER, TOPIC, DemoSecurity
from odradek.demo.sink import OtlpSink, otlp_sink
from odradek.process.limits import run
from odradek.process.log_format import log_to_stderr
from odradek.programs.config import HostConfig, load_config
from odradek.programs.host import Host

INTERVAL_MS = 1_000
PLAIN_LINES_EVERY_S = 5
DEFAULT_S: Final = 20
LONGEST_S: Final = 3_600


@click.command()
@click.option(
    "--seconds",
    type=click.IntRange(3, LONGEST_S),
    show_default=f"{DEFAULT_S}; with --console an hour",
    help="How long to run.",
)
@click.option(
    "--otlp", metavar="ENDPOINT", help="Forward to this OTLP/HTTP endpoint, e.g. http://localhost:4318."
)
@click.option(
    "--spark",
    "with_spark",
    is_flag=True,
    help="Afterwards load the pushes into tables and query them.",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="With --spark: keep the tables in this folder.",
)
@click.option(
    "--prometheus",
    "prometheus_name",
    metavar="[PROGRAM]",
    is_flag=False,
    flag_value=PROGRAM,
    help="Show the metrics in Prometheus, by default the one in PATH.",
)
@click.option(
    "--console",
    "with_console",
    is_flag=True,
    help="Show the clients in the browser, with a third one that is slow, until Ctrl-C.",
)
@click.option(
    "--secure",
    "with_security",
    is_flag=True,
    help="Use TLS and passwords, and allow each client no more than it needs.",
)
@click.option(
    "--gateway",
    "with_gateways",
    is_flag=True,
    help="Show two gateways in front of a cluster, a producer that pushes, and one that cannot.",
)
@click.option(
    "--upstream",
    metavar="HOST:PORT[,...]",
    help=f"With --gateway: brokers of a cluster of yours, without TLS; both produce to its topic {TOPIC}.",
)
def demo(
    seconds: int | None,
    otlp: str | None,
    with_spark: bool,
    keep: Path | None,
    prometheus_name: str | None,
    with_console: bool,
    with_security: bool,
    with_gateways: bool,
    upstream: str | None,
) -> None:
    """Show a real producer and consumer pushing labeled metrics.

    The exit status is 1 if no labeled push arrived.
    """
    besides = with_spark or with_security or with_console or bool(prometheus_name)
    check_combination(keep, with_spark, upstream, with_gateways, besides)
    program = program_of(prometheus_name) if prometheus_name else None
    kafka = library("confluent_kafka")
    if with_console:
        check_console()
    if with_spark:
        check_pipeline(keep)
    seconds = seconds or (LONGEST_S if with_console else DEFAULT_S)
    log_to_stderr("warning")
    view = ClientView()
    with tempfile.TemporaryDirectory(prefix="odradek-demo-") as name, otlp_sink() as own:
        folder, sink = Path(name), own if otlp is None else None
        endpoint = otlp or own.endpoint
        if with_gateways:
            gateways = DemoGateways(folder, upstream, endpoint, view)
            producers = Producers(kafka, library("aiokafka"))
            display = Display(view, producers, sink)
            run(lambda stop: show_gateways(gateways, display, producers, seconds, stop))
        else:
            security = DemoSecurity(folder / "security") if with_security else None
            parts = Parts(
                prometheus=DemoPrometheus(program, folder) if program else None,
                console=DemoConsole(folder, security) if with_console else None,
                pipeline=Pipeline(folder, keep, security) if with_spark else None,
            )
            config = demo_config(folder / "data", endpoint, security, parts.prometheus)
            clients = Clients(kafka, security, with_slow_consumer=with_console)
            display = Display(view, clients, sink)
            run(lambda stop: show(config, display, clients, seconds, stop, parts))
    summarize(view, sink)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The programs beside the host; None for those that are not wanted."""

    prometheus: DemoPrometheus | None
    console: DemoConsole | None
    pipeline: Pipeline | None


def check_combination(
    keep: Path | None, with_spark: bool, upstream: str | None, with_gateways: bool, besides: bool
) -> None:
    """Check which options are there together.

    Raises:
        click.UsageError: Some do not fit.
    """
    if keep is not None and not with_spark:
        raise click.UsageError("--keep needs --spark: without it there are no tables")
    if upstream is not None and not with_gateways:
        raise click.UsageError("--upstream needs --gateway: without it the demo has its own host alone")
    if with_gateways and besides:
        raise click.UsageError(
            "--gateway cannot be combined with --spark, --secure, --console or --prometheus"
        )


def summarize(view: ClientView, sink: OtlpSink | None) -> None:
    """Print the total.

    Raises:
        click.exceptions.Exit: No labeled push arrived.
    """
    summary = f"{view.labeled_pushes} labeled pushes of {len(view.rows)} client instances"
    if sink is not None:
        summary += f", {sink.requests} OTLP requests"
    click.echo(summary)
    if not view.labeled_pushes:
        raise click.exceptions.Exit(1)


def demo_config(
    folder: Path, otlp_endpoint: str, security: DemoSecurity | None, prometheus: DemoPrometheus | None = None
) -> HostConfig:
    """The configuration: free ports, a temporary directory, one subscription for all clients."""
    return load_config(
        None,
        [
            *(["listeners=PLAINTEXT://127.0.0.1:0"] if security is None else security.settings()),
            f"data.dir={folder}",
            "subscriptions.demo.preset=essential",
            f"subscriptions.demo.interval.ms={INTERVAL_MS}",
            f"plugins.otlp.endpoint={otlp_endpoint}",
            "plugins.enrich.static.environment=demo",
            "group.initial.rebalance.delay.ms=0",
            "telemetry.durability=log",
            *([] if prometheus is None else prometheus.settings()),
        ],
    )


async def show_gateways(
    gateways: DemoGateways, display: Display, producers: Producers, seconds: int, stop: asyncio.Event
) -> None:
    """Run the gateways and the producers until time is up."""
    async with AsyncExitStack() as stack:
        addresses = await gateways.start(stack, stop)
        stack.push_async_callback(asyncio.to_thread, producers.stop)
        await asyncio.to_thread(producers.start, *addresses)
        await watch(display, seconds, stop)


async def show(
    config: HostConfig, display: Display, clients: Clients, seconds: int, stop: asyncio.Event, parts: Parts
) -> None:
    """Run the host and the clients until time is up, then the pipeline if there is one."""
    async with AsyncExitStack() as stack:
        host = Host(config)
        stack.push_async_callback(host.stop)
        host.receivers.register("demo", display.view)
        await host.start()
        bootstrap = f"127.0.0.1:{host.listeners[0].bound_port}"
        protocol = host.listeners[0].address.security_protocol
        click.echo(f"host on {protocol}://{bootstrap}, OTLP to {config.plugins['otlp']['endpoint']}")
        if clients.security is not None:
            clients.security.prepare(host.broker)
            click.echo(f"{PRODUCER} and {CONSUMER} log in with {MECHANISM.mechanism_name}; ACLs limit them")
        if parts.prometheus is not None:
            await stack.enter_async_context(parts.prometheus.running())
            click.echo("\n".join(parts.prometheus.lines()))
        if parts.console is not None:
            url = await stack.enter_async_context(parts.console.running(bootstrap))
            click.echo(f"console at {url}")
        if parts.pipeline is not None:
            host.broker.quotas.apply(*QUOTA)
            click.echo(quota_line())
        stack.push_async_callback(asyncio.to_thread, clients.stop)
        await asyncio.to_thread(clients.start, bootstrap)
        await watch(display, seconds, stop)
        if parts.prometheus is not None:
            click.echo(await parts.prometheus.report(clients.produced))
        if parts.pipeline is not None and not stop.is_set():
            await parts.pipeline.show(bootstrap)


async def watch(display: Display, seconds: int, stop: asyncio.Event) -> None:
    """Show the rows until time is up or a signal arrives, and once more when all counts are final."""
    console = Console()
    with Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as live:
        for elapsed_s in range(1, seconds + 1):
            if await stopped(stop):
                break
            if live is not None:
                live.update(display.table(f"{elapsed_s} of {seconds} s"), refresh=True)
            elif elapsed_s % PLAIN_LINES_EVERY_S == 0:
                display.print_lines(f"after {elapsed_s} s")
        await display.settle()
        if live is not None:
            live.update(display.table("at the end"), refresh=True)
        else:
            display.print_lines("at the end")


async def stopped(stop: asyncio.Event) -> bool:
    """Wait one second and return whether a signal arrived."""
    try:
        await asyncio.wait_for(stop.wait(), 1)
    except TimeoutError:
        return False
    return True


class RunningClients(Protocol):
    """The clients of a demo."""

    def status(self) -> str:
        """The text about their progress."""

    def stop(self) -> None:
        """Close them."""


class Display:
    """Rows and counts of the clients. The counts agree once `settle` has returned."""

    def __init__(self, view: ClientView, clients: RunningClients, sink: OtlpSink | None) -> None:
        self.view = view
        self.clients = clients
        self.sink = sink

    def table(self, moment: str) -> Group:
        """The rows and the counts for a terminal."""
        return Group(Text(), self.view.table(), Text(), *(Text(line) for line in self.counts(moment)))

    def print_lines(self, moment: str) -> None:
        """Print the rows and the counts for a file or a pipe."""
        click.echo(", ".join(self.counts(moment)))
        for line in self.view.lines():
            click.echo(f"  {line}")

    def counts(self, moment: str) -> tuple[str, str]:
        # the endpoint is read first: it never has more than was pushed
        arrived = f", {self.sink.data_points} at the OTLP endpoint" if self.sink is not None else ""
        pushed = f"{self.view.data_points} data points pushed{arrived}"
        return f"{moment}: {self.clients.status()}", pushed

    async def settle(self) -> None:
        """Stop the clients, and wait for their last pushes and until every data point has arrived."""
        await asyncio.to_thread(self.clients.stop)
        end_s = time.monotonic() + SETTLE_S
        while not self.is_settled:
            if time.monotonic() > end_s:
                return
            await asyncio.sleep(0.05)

    @property
    def is_settled(self) -> bool:
        """Whether no client pushes any more, and all pushes are at the endpoint."""
        arrived = self.sink is None or self.sink.data_points >= self.view.data_points
        return arrived and all(row.is_terminated for row in self.view.rows.values())
