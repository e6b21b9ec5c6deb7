"""The gateways of ``odradek demo --gateway``: two in front of a cluster, and a producer at each of them.

One producer pushes its metrics. The other has no telemetry: its gateway derives metrics from what passes.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import click

from odradek.cli.gateway_run import GatewayRun
from odradek.client.admin import AdminClient
from odradek.demo.security import PRODUCER, TOPIC
from odradek.plugin.protocols import ClientTelemetryExporterProvider
from odradek.programs.config import HostConfig, load_config
from odradek.programs.gateway import Gateway
from odradek.programs.host import Host

GATEWAYS: Final = ("edge-1", "edge-2")
SILENT: Final = "demo-silent"
"""The client id of the producer that pushes nothing."""
INTERVAL_MS: Final = 1_000
PAUSE_S: Final = 0.01
"""Between two records of a producer."""
START_S: Final = 5


class DemoGateways:
    """A cluster, and two gateways in front of it.

    Args:
        folder: A temporary folder.
        upstream: Brokers of a cluster, as ``HOST:PORT,...``; None for a host of the demo's own.
        otlp_endpoint: The destination of the gateways' forwarders.
        view: Shows the pushes.
    """

    def __init__(
        self, folder: Path, upstream: str | None, otlp_endpoint: str, view: ClientTelemetryExporterProvider
    ) -> None:
        self.folder = folder
        self.upstream = upstream
        self.otlp_endpoint = otlp_endpoint
        self.view = view

    async def start(self, stack: AsyncExitStack, stop: asyncio.Event) -> list[str]:
        """Start everything; return the bootstrap address of each gateway.

        Raises:
            ConfigError, ClientError: The cluster does not answer, or cannot be used.
        """
        upstream = self.upstream
        if upstream is None:
            host = Host(self.cluster_config())
            stack.push_async_callback(host.stop)
            await host.start()
            upstream = f"127.0.0.1:{host.listeners[0].bound_port}"
        nodes = await asyncio.to_thread(node_ids, upstream)
        click.echo(f"cluster on {upstream}, without telemetry of its own; OTLP to {self.otlp_endpoint}")
        addresses = []
        for name in GATEWAYS:
            made = GatewayRun(self.config(name, upstream, nodes))
            running = await stack.enter_async_context(made.running(lambda _: stop.set(), self.shown))
            addresses.append(f"127.0.0.1:{running.listeners[0].bound_port}")
        for name, address, client in zip(GATEWAYS, addresses, (PRODUCER, SILENT), strict=True):
            click.echo(f"gateway {name} on {address}, for {client}")
        return addresses

    def shown(self, gateway: Gateway) -> None:
        """Show the pushes that a gateway takes."""
        gateway.receivers.register("demo", self.view)

    def cluster_config(self) -> HostConfig:
        """A host that offers no telemetry to its clients."""
        return load_config(
            None,
            [
                "listeners=PLAINTEXT://127.0.0.1:0",
                "node.id=1",
                f"data.dir={self.folder / 'cluster'}",
                "telemetry.durability=memory",
            ],
        )

    def config(self, name: str, upstream: str, nodes: str) -> HostConfig:
        """The configuration of a gateway: free ports, and a subscription for all clients."""
        return load_config(
            None,
            [
                "listeners=PLAINTEXT://127.0.0.1:0",
                f"data.dir={self.folder / name}",
                f"gateway.name={name}",
                f"gateway.upstream={upstream}",
                f"gateway.nodes={nodes}",
                "subscriptions.demo.preset=essential",
                f"subscriptions.demo.interval.ms={INTERVAL_MS}",
                f"plugins.otlp.endpoint={self.otlp_endpoint}",
                "plugins.enrich.static.environment=demo",
            ],
        )


def node_ids(upstream: str) -> str:
    """The ids of the brokers of a cluster, as the setting ``gateway.nodes`` has them.

    Raises:
        ClientError: The cluster does not answer.
    """
    with AdminClient(upstream, timeout_s=START_S) as admin:
        return ",".join(str(broker.node_id) for broker in admin.metadata([]).brokers)


class Producers:
    """The two producers, each in its own thread.

    Args:
        kafka: The module confluent_kafka.
        aiokafka: The module aiokafka.
    """

    def __init__(self, kafka: Any, aiokafka: Any) -> None:
        self.kafka = kafka
        self.aiokafka = aiokafka
        self.produced = {PRODUCER: 0, SILENT: 0}
        self.ended = threading.Event()
        self.threads: list[threading.Thread] = []

    def start(self, pushing: str, silent: str) -> None:
        """Begin to produce.

        Args:
            pushing: The gateway of the producer that pushes.
            silent: The gateway of the other one.
        """
        for work, address in ((self.push, pushing), (self.keep_silent, silent)):
            self.threads.append(threading.Thread(target=work, args=(address,), daemon=True))
            self.threads[-1].start()

    def stop(self) -> None:
        """Close both."""
        self.ended.set()
        for thread in self.threads:
            thread.join(timeout=10)

    def status(self) -> str:
        """How many records the cluster has acknowledged."""
        return ", ".join(f"{number} records of {name}" for name, number in self.produced.items())

    def push(self, address: str) -> None:
        """Produce with librdkafka, which pushes metrics by itself."""
        producer = self.kafka.Producer(
            {"bootstrap.servers": address, "client.id": PRODUCER, "linger.ms": 5, "log_level": 2}
        )

        def delivered(error: object, _message: object) -> None:
            self.produced[PRODUCER] += error is None

        while not self.ended.is_set():
            producer.produce(TOPIC, value=b"x" * 100, on_delivery=delivered)
            producer.poll(0)
            time.sleep(PAUSE_S)
        producer.flush(5)
        producer.close()

    def keep_silent(self, address: str) -> None:
        """Produce with aiokafka, which has no telemetry."""
        asyncio.run(self.produce_silently(address))

    async def produce_silently(self, address: str) -> None:
        """Produce until the end."""
        producer = self.aiokafka.AIOKafkaProducer(bootstrap_servers=address, client_id=SILENT, linger_ms=5)
        async with producer:
            while not self.ended.is_set():
                await (await producer.send(TOPIC, b"x" * 100))
                self.produced[SILENT] += 1
                await asyncio.sleep(PAUSE_S)
