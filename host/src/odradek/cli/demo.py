"""``odradek demo``: runs a host, a real producer and a real consumer, and shows the metrics they push.

Everything is local and temporary: free ports, a temporary directory, and a small OTLP endpoint that counts
what arrives unless ``--otlp`` names another one.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from rich.console import Console
from rich.live import Live

from odradek.cli.client_view import ClientView
from odradek.cli.main import installed_command
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.server.config import HostConfig, load_config
from odradek.server.host import Host
from odradek.server.log_format import log_to_stderr
from odradek.server.plugins.process import run

TOPIC = "demo"
INTERVAL_MS = 1_000
PLAIN_LINES_EVERY_S = 5
THROTTLED_BYTES_PER_S = 15_000.0
"""The producer's quota with ``--spark``: less than it sends, so that some minutes are throttled."""
QUESTIONS = (
    ("Clients", ("clients",)),
    ("Slowest request latency", ("top", "--metric", "producer.request.latency.avg")),
    ("Throttled minutes", ("throttled",)),
)
"""Title and arguments of each ``odradek spark query``."""


@click.command()
@click.option(
    "--seconds", type=click.IntRange(3, 3600), default=20, show_default=True, help="How long to run."
)
@click.option(
    "--otlp", metavar="ENDPOINT", help="Forward to this OTLP/HTTP endpoint, e.g. http://localhost:4318."
)
@click.option(
    "--spark", "with_spark", is_flag=True, help="Afterwards load the pushes into tables and query them."
)
def demo(seconds: int, otlp: str | None, with_spark: bool) -> None:
    """Show a real producer and consumer pushing labeled metrics.

    The exit status is 1 if no labeled push arrived.
    """
    kafka = client_library()
    if with_spark:
        check_pipeline()
    log_to_stderr("warning")
    view = ClientView()
    with tempfile.TemporaryDirectory(prefix="odradek-demo-") as folder, otlp_sink() as sink:
        endpoint = otlp or sink.endpoint
        config = demo_config(Path(folder), endpoint)
        pipeline = Pipeline(Path(folder) / "tables") if with_spark else None
        run(lambda stop: show(config, view, sink, Clients(kafka), seconds, stop, pipeline))
    summary = f"{view.labeled_pushes} labeled pushes of {len(view.rows)} client instances"
    if otlp is None:
        summary += f"; {sink.data_points} data points in {sink.requests} requests at the OTLP endpoint"
    click.echo(summary)
    if not view.labeled_pushes:
        raise click.exceptions.Exit(1)


def client_library() -> Any:
    """The module confluent_kafka, which only the demo needs.

    Raises:
        click.UsageError: It is not installed.
    """
    try:
        return importlib.import_module("confluent_kafka")
    except ImportError:
        raise click.UsageError("the demo needs confluent-kafka: install the extra odradek[demo]") from None


def check_pipeline() -> None:
    """Check first that the pipeline can be started at the end.

    Raises:
        CommandFailed: The pipeline is not installed.
        click.ClickException: No suitable Java was found.
    """
    spark = installed_command("spark")
    if spark is not None:
        spark.main(["java"], "odradek spark", standalone_mode=False)


def demo_config(folder: Path, otlp_endpoint: str) -> HostConfig:
    """The configuration: free ports, a temporary directory, one subscription for all clients."""
    return load_config(
        None,
        [
            "listeners=PLAINTEXT://127.0.0.1:0",
            f"data.dir={folder}",
            "subscriptions.demo.metrics=*",
            f"subscriptions.demo.interval.ms={INTERVAL_MS}",
            f"plugins.otlp.endpoint={otlp_endpoint}",
            "plugins.enrich.static.environment=demo",
            "group.initial.rebalance.delay.ms=0",
            "telemetry.durability=log",
        ],
    )


async def show(
    config: HostConfig,
    view: ClientView,
    sink: OtlpSink,
    clients: Clients,
    seconds: int,
    stop: asyncio.Event,
    pipeline: Pipeline | None,
) -> None:
    """Run the host and the clients until time is up, then the pipeline if there is one."""
    async with AsyncExitStack() as stack:
        host = Host(config)
        stack.push_async_callback(host.stop)
        host.receivers.register("demo", view)
        await host.start()
        bootstrap = f"127.0.0.1:{host.listeners[0].bound_port}"
        click.echo(f"host on {bootstrap}, OTLP to {config.plugins['otlp']['endpoint']}")
        if pipeline is not None:
            producer = ClientQuotaEntity(client_id="demo-producer")
            host.broker.quotas.apply(producer, {"producer_byte_rate": THROTTLED_BYTES_PER_S})
        stack.push_async_callback(asyncio.to_thread, clients.stop)
        await asyncio.to_thread(clients.start, bootstrap)
        await watch(view, sink, clients, seconds, stop)
        if pipeline is not None and not stop.is_set():
            await asyncio.to_thread(clients.stop)
            await pipeline.show(bootstrap)


async def watch(
    view: ClientView, sink: OtlpSink, clients: Clients, seconds: int, stop: asyncio.Event
) -> None:
    """Show the rows until time is up or a signal arrives."""
    console = Console()
    if not console.is_terminal:
        for elapsed_s in range(1, seconds + 1):
            if await stopped(stop):
                return
            if elapsed_s % PLAIN_LINES_EVERY_S == 0 or elapsed_s == seconds:
                click.echo(f"after {elapsed_s} s: {clients.status()}, {sink.status()}")
                for line in view.lines():
                    click.echo(f"  {line}")
        return
    with Live(console=console, auto_refresh=False) as live:
        for elapsed_s in range(1, seconds + 1):
            if await stopped(stop):
                return
            table = view.table()
            table.caption = f"{elapsed_s} of {seconds} s, {clients.status()}, {sink.status()}"
            live.update(table, refresh=True)


async def stopped(stop: asyncio.Event) -> bool:
    """Wait one second and return whether a signal arrived."""
    try:
        await asyncio.wait_for(stop.wait(), 1)
    except TimeoutError:
        return False
    return True


class Pipeline:
    """Runs ``odradek spark`` in child processes: loads the pushes into tables and queries them."""

    def __init__(self, dataset: Path) -> None:
        self.dataset = str(dataset)

    async def show(self, bootstrap: str) -> None:
        """Ingest everything and print the answers to the queries.

        Raises:
            click.ClickException: The pipeline failed; it has printed the reason.
        """
        click.echo("loading the pushes with Spark, which takes some seconds to start")
        await self.run("ingest", "--once", "--master", "local[2]", "--bootstrap-server", bootstrap)
        for title, question in QUESTIONS:
            click.echo(f"\n{title}")
            await self.run("query", *question)
        click.echo()

    async def run(self, *arguments: str) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "odradek", "spark", *arguments, "--dataset", self.dataset
        )
        if await process.wait():
            raise click.ClickException(f"odradek spark {arguments[0]} failed; its output above says why")


class Clients:
    """An unmodified librdkafka producer and consumer, each in its own thread."""

    def __init__(self, kafka: Any) -> None:
        self.kafka = kafka
        self.bootstrap = ""
        self.produced = 0
        self.consumed = 0
        self.ended = threading.Event()
        self.threads = [
            threading.Thread(target=work, name=work.__name__, daemon=True)
            for work in (self.produce, self.consume)
        ]

    def start(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Close both clients; each sends its terminating push."""
        self.ended.set()
        for thread in self.threads:
            thread.join(timeout=10)

    def status(self) -> str:
        return f"{self.produced} records produced, {self.consumed} read"

    def settings(self, role: str) -> dict[str, object]:
        return {"bootstrap.servers": self.bootstrap, "client.id": f"demo-{role}", "log_level": 2}

    def produce(self) -> None:
        producer = self.kafka.Producer(
            self.settings("producer") | {"linger.ms": 5, "enable.idempotence": True}
        )
        while not self.ended.is_set():
            producer.produce(TOPIC, value=b"x" * 100, on_delivery=self.delivered)
            producer.poll(0)
            time.sleep(0.005)
        producer.flush(5)
        producer.close()

    def delivered(self, error: object, _message: object) -> None:
        self.produced += error is None

    def consume(self) -> None:
        consumer = self.kafka.Consumer(
            self.settings("consumer")
            | {"group.id": "demo", "auto.commit.interval.ms": 1_000, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([TOPIC])
        while not self.ended.is_set():
            message = consumer.poll(0.2)
            self.consumed += message is not None and message.error() is None
        consumer.close()


class OtlpSink(ThreadingHTTPServer):
    """An OTLP/HTTP endpoint that counts requests and data points."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), OtlpSinkHandler)
        self.requests = 0
        self.data_points = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def status(self) -> str:
        return f"{self.data_points} data points at the OTLP endpoint"

    def take(self, body: bytes) -> None:
        """Count the data points of one export. Its request message has the same encoding as MetricsData."""
        self.requests += 1
        for resource_metrics in MetricsData.FromString(body).resource_metrics:
            for scope_metrics in resource_metrics.scope_metrics:
                for metric in scope_metrics.metrics:
                    self.data_points += len(metric.gauge.data_points) + len(metric.sum.data_points)


class OtlpSinkHandler(BaseHTTPRequestHandler):
    """Answers POST /v1/metrics; accepts uncompressed bodies only."""

    protocol_version = "HTTP/1.1"
    server: OtlpSink

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.take(body)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Suppress the log line of each request."""


@contextmanager
def otlp_sink() -> Iterator[OtlpSink]:
    """Yield an OTLP endpoint that listens on a free port."""
    with OtlpSink() as sink:
        thread = threading.Thread(target=sink.serve_forever, name="otlp-sink", daemon=True)
        thread.start()
        try:
            yield sink
        finally:
            sink.shutdown()
            thread.join()
