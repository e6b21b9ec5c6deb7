"""A custom plugin: an exporter that prints how often each client pushes, and how much.

Run it: ``python examples/07_export_pushes.py`` (needs ``odradek[all]``). Takes seconds.

The plugin is the class and the hook below. To install it, put both into a package and name the package in its
pyproject.toml::

    [project.entry-points.odradek]
    meter = "my_package"
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections import Counter

from confluent_kafka import Producer

from odradek.hosting.plugin_manager import load_plugins
from odradek.otlp import merged_scopes
from odradek.plugin import ClientTelemetryContext, ClientTelemetryPayload, PluginConfig, hookimpl
from odradek.programs.config import load_config
from odradek.programs.host import Host


class PushMeter:
    """Adds up pushes and metrics. The host calls it on its event loop, so it must not block."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.pushes: Counter[str] = Counter()
        self.metrics: Counter[str] = Counter()
        self.intervals_ms: dict[str, int] = {}
        self.enough = asyncio.Event()

    def client_telemetry_exporter(self) -> PushMeter:
        return self

    def export_metrics(self, context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> None:
        client_id = context.request.client_id or ""
        self.pushes[client_id] += 1
        self.metrics[client_id] += len(merged_scopes(payload.data).scope_metrics.metrics)
        self.intervals_ms[client_id] = context.push_interval_ms
        if self.pushes[client_id] == self.wanted:
            self.enough.set()

    def close(self) -> None:
        """Print the sums. The host calls it once, when it stops."""
        for client_id, pushes in self.pushes.items():
            seconds = self.intervals_ms[client_id] / 1000
            each = self.metrics[client_id] / pushes
            print(f"{client_id} pushes every {seconds:g} s, {each:.0f} metrics each time")


class MeterPlugin:
    """The object that the entry point would refer to. A module with this function works as well."""

    def __init__(self) -> None:
        self.meter: PushMeter | None = None

    @hookimpl
    def odradek_client_telemetry(self, config: PluginConfig) -> PushMeter:
        """Read ``[plugins.meter]``. The host does not start if the table has an unread key."""
        self.meter = PushMeter(config.integer("wanted", 2, least=1))
        return self.meter


def produce(bootstrap: str, done: threading.Event) -> None:
    """Run an unmodified client."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "my-app"})
    while not done.wait(0.1):
        producer.produce("greetings", value=b"hello")
        producer.poll(0)
    producer.flush(5)


async def main(data_dir: str) -> None:
    plugins, plugin, done = load_plugins(), MeterPlugin(), threading.Event()
    plugins.add("meter", plugin, distribution="example", version="1.0")
    config = load_config(
        overrides=[
            f"data.dir={data_dir}",
            "listeners=PLAINTEXT://127.0.0.1:0",
            "subscriptions.everything.metrics=*",
            "subscriptions.everything.interval.ms=500",
            "plugins.meter.wanted=3",
        ]
    )
    host = Host(config, plugins=plugins)
    await host.start()
    client = asyncio.to_thread(produce, f"127.0.0.1:{host.listeners[0].bound_port}", done)
    running = asyncio.create_task(client)
    try:
        assert plugin.meter is not None
        await asyncio.wait_for(plugin.meter.enough.wait(), 20)
    finally:
        done.set()
        await running
        await host.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
