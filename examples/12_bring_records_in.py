"""A custom plugin: a source that brings metrics in from a file, line by line.

Run it: ``python examples/12_bring_records_in.py`` (needs ``odradek[enrich]``). Takes a second.

The plugin is the class and the hook below. To install it, put both into a package and name the package in its
pyproject.toml::

    [project.entry-points.odradek]
    lines = "my_package"
"""

from __future__ import annotations

import asyncio
import tempfile
import time
import uuid
from pathlib import Path

from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)

from odradek.hosting.plugin_manager import load_plugins
from odradek.plugin import (
    ClientTelemetry,
    ClientTelemetryPayload,
    ClientTelemetryReceiver,
    ConnectionContext,
    Intake,
    PluginConfig,
    RequestContext,
    TelemetryRecord,
    hookimpl,
)
from odradek.programs.config import load_config
from odradek.programs.host import Host


class LineSource:
    """Has a thread and an event loop of its own. A line is done when the host has stored it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done = 0

    async def run(self, intake: Intake) -> None:
        while True:
            records = [self.record_of(line) for line in self.lines()[self.done :]]
            receipt = await intake.store(records)
            self.done += len(records) - len(receipt.left)  # what has no room comes again
            await asyncio.sleep(0.05)

    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines()

    def record_of(self, line: str) -> TelemetryRecord:
        """A line like ``machine temperature 21.5`` as the push of a client that has never connected."""
        machine, name, value = line.split()
        metric = Metric(name=name, gauge=Gauge(data_points=[NumberDataPoint(as_double=float(value))]))
        data = MetricsData(resource_metrics=[ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=[metric])])])
        connection = ConnectionContext("lines", "FILE", "", "127.0.0.1", 0, -1)
        request = RequestContext(connection, 72, 0, 0, machine, time.time_ns() // 1_000_000)
        payload = ClientTelemetryPayload(uuid.uuid5(uuid.NAMESPACE_DNS, machine).bytes, False, b"")
        payload.data = data.SerializeToString()
        return TelemetryRecord(request, 60_000, payload, labeled=False)

    def lag(self) -> int | None:
        return len(self.lines()) - self.done


class Printer:
    """Prints what receivers get: the records of sources, too."""

    def client_receiver(self) -> ClientTelemetryReceiver:
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        (entry,) = MetricsData.FromString(payload.data).resource_metrics
        labels = {each.key: each.value.string_value for each in entry.resource.attributes}
        (metric,) = entry.scope_metrics[0].metrics
        print(f"{metric.name} of {labels['client_id']}: {metric.gauge.data_points[0].as_double}")


class LinesPlugin:
    """The object that the entry point would refer to. A module with these functions works as well."""

    def __init__(self) -> None:
        self.source: LineSource | None = None

    @hookimpl
    def odradek_source(self, config: PluginConfig) -> LineSource | None:
        """Read ``[plugins.lines]``; without a path the plugin offers nothing."""
        path = config.text("path")
        self.source = LineSource(Path(path)) if path else None
        return self.source

    @hookimpl
    def odradek_client_telemetry(self, config: PluginConfig) -> ClientTelemetry:
        return Printer()


async def main(folder: Path) -> None:
    path = folder / "lines.txt"
    path.write_text("boiler temperature 61.5\nfridge temperature 4.25\n", encoding="utf-8")
    plugins, plugin = load_plugins(), LinesPlugin()
    plugins.add("lines", plugin, distribution="example", version="1.0")
    settings = [
        f"data.dir={folder / 'data'}",
        "listeners=PLAINTEXT://127.0.0.1:0",
        f"plugins.lines.path={path}",
    ]
    host = Host(load_config(overrides=settings), plugins=plugins)
    await host.start()
    try:
        assert plugin.source is not None
        async with asyncio.timeout(20):
            while plugin.source.lag():
                await asyncio.sleep(0.05)
    finally:
        await host.stop()
    print("lines that wait:", plugin.source.lag())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
