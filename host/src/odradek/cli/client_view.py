"""The table of ``odradek demo``: one row per client instance, with a few key metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData
from rich.table import Table

from odradek.plugin.context import ClientTelemetryContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.wire.uuid_text import uuid_text

PREFIX = "org.apache.kafka."
KEY_METRICS = (
    ("producer.request.latency.avg", "request latency", "ms"),
    ("producer.record.queue.time.avg", "queue time", "ms"),
    ("producer.connection.creation.total", "connections", ""),
    ("consumer.fetch.manager.fetch.latency.avg", "fetch latency", "ms"),
    ("consumer.poll.idle.ratio.avg", "poll idle", ""),
    ("consumer.coordinator.assigned.partitions", "partitions", ""),
    ("consumer.connection.creation.total", "connections", ""),
)
"""Name of the metric without `PREFIX`, label, unit. librdkafka and Java send all of these (KIP-714)."""


@dataclass(slots=True)
class ClientRow:
    """One client instance: totals of its pushes, and the labels and values of the latest ones."""

    client_instance_id: bytes
    client_id: str
    software_name: str
    software_version: str
    pushes: int = 0
    payload_bytes: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    """Latest value by metric name, without `PREFIX`."""

    @property
    def is_labeled(self) -> bool:
        """Whether the metrics themselves carry the label that the broker adds."""
        return self.labels.get("client_instance_id") == uuid_text(self.client_instance_id)

    @property
    def kind(self) -> str:
        """``producer`` or ``consumer``, taken from the names of its metrics."""
        return next((name.split(".")[0] for name in self.values), "client")

    def key_metrics(self) -> str:
        """The key metrics on one line."""
        shown = [
            f"{label} {self.values[name]:.3g}{' ' + unit if unit else ''}"
            for name, label, unit in KEY_METRICS
            if self.values.get(name)
        ]
        return ", ".join(shown)


class ClientView:
    """An exporter, and its own provider, that keeps a row per client instance."""

    def __init__(self) -> None:
        self.rows: dict[bytes, ClientRow] = {}

    def client_telemetry_exporter(self) -> ClientView:
        return self

    def export_metrics(self, context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> None:
        """Add one push to the row of its client instance."""
        connection = context.request.connection
        row = self.rows.setdefault(
            payload.client_instance_id,
            ClientRow(
                payload.client_instance_id,
                context.request.client_id or "",
                connection.client_software_name,
                connection.client_software_version,
            ),
        )
        row.pushes += 1
        row.payload_bytes += len(payload.data)
        for resource_metrics in MetricsData.FromString(payload.data).resource_metrics:
            row.labels |= {item.key: item.value.string_value for item in resource_metrics.resource.attributes}
            for scope_metrics in resource_metrics.scope_metrics:
                row.values |= latest(scope_metrics.metrics)

    @property
    def labeled_pushes(self) -> int:
        """The number of pushes of clients whose metrics carry the broker's labels."""
        return sum(row.pushes for row in self.rows.values() if row.is_labeled)

    def table(self) -> Table:
        """The rows as a table for a terminal."""
        table = Table(title="Client instances", title_justify="left", expand=True)
        for heading in (
            "client id",
            "software",
            "instance",
            "labels",
            "pushes",
            "bytes",
            "metrics",
            "key metrics",
        ):
            table.add_column(heading, overflow="fold")
        for row in self.rows.values():
            table.add_row(
                row.client_id,
                f"{row.software_name} {row.software_version}",
                uuid_text(row.client_instance_id),
                str(len(row.labels)) if row.is_labeled else "none",
                str(row.pushes),
                str(row.payload_bytes),
                str(len(row.values)),
                row.key_metrics(),
            )
        return table

    def lines(self) -> list[str]:
        """The rows as plain lines for a file or a pipe."""
        return [
            f"{row.kind} client_id={row.client_id} software={row.software_name}/{row.software_version} "
            f"instance={uuid_text(row.client_instance_id)} labeled={'yes' if row.is_labeled else 'no'} "
            f"pushes={row.pushes} bytes={row.payload_bytes} metrics={len(row.values)} | {row.key_metrics()}"
            for row in self.rows.values()
        ]


def latest(metrics: Iterable[Metric]) -> dict[str, float]:
    """The last data point of each gauge and sum, by name without `PREFIX`."""
    values = {}
    for metric in metrics:
        points = metric.gauge.data_points or metric.sum.data_points
        if points:
            point = points[-1]
            value = point.as_double if point.HasField("as_double") else point.as_int
            values[metric.name.removeprefix(PREFIX)] = float(value)
    return values
