"""The table of ``odradek demo``: one row per client instance, with a few key metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData
from rich.box import SIMPLE_HEAD
from rich.table import Table

from odradek.findings.client_metrics import PREFIX
from odradek.plugin.context import UNKNOWN, ClientTelemetryContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.wire.uuid_text import uuid_text

ROLES = ("producer", "consumer")
KEY_METRICS = (
    ("producer.request.latency.avg", "request time", "ms"),
    ("producer.record.queue.time.avg", "queue time", "ms"),
    ("producer.connection.creation.total", "connections", ""),
    ("consumer.fetch.manager.fetch.latency.avg", "fetch time", "ms"),
    ("consumer.poll.idle.ratio.avg", "poll idle", ""),
    ("consumer.coordinator.assigned.partitions", "partitions", ""),
    ("consumer.connection.creation.total", "connections", ""),
)
"""Name of the metric without `PREFIX`, label, unit. librdkafka and Java send all of these (KIP-714)."""
OWN = "io.odradek.observed.client."
OBSERVED_METRICS = (
    ("producer.node.request.latency.avg", "request time", "ms"),
    (f"{OWN}produce.records", "sent", "records"),
    (f"{OWN}produce.bytes", "sent", "bytes"),
    (f"{OWN}connections.open", "connections", ""),
)
"""The same of a client that pushes nothing, as a gateway derives them."""
TOTALS = (f"{OWN}produce.records", f"{OWN}produce.bytes")
"""Sums that are added up; each record of an observed client has those of one interval."""


@dataclass(slots=True)
class ClientRow:
    """One client instance: totals of its pushes, and the labels and values of the latest ones."""

    client_instance_id: bytes
    client_id: str
    software_name: str
    software_version: str
    pushes: int = 0
    payload_bytes: int = 0
    data_points: int = 0
    attributes: dict[str, str] = field(default_factory=dict)
    """Resource attributes: the labels of the broker, and the client's own."""
    values: dict[str, float] = field(default_factory=dict)
    """Latest value by metric name, without `PREFIX`."""
    is_terminated: bool = False
    """The last push of the client has arrived."""

    @property
    def is_labeled(self) -> bool:
        """Whether the metrics themselves carry the label that the broker adds."""
        return self.attributes.get("client_instance_id") == uuid_text(self.client_instance_id)

    @property
    def kind(self) -> str:
        """``producer`` or ``consumer``, taken from the names of its metrics."""
        return next((role for role in ROLES for name in self.values if name.startswith(role)), "client")

    @property
    def has_software(self) -> bool:
        """Whether the client has said what it is (ApiVersions v3)."""
        return self.software_name not in ("", UNKNOWN)

    @property
    def is_observed(self) -> bool:
        """Whether a gateway has derived the metrics of a client that pushes nothing."""
        return self.attributes.get("observed") == "true"

    def key_metrics(self) -> list[str]:
        """The key metrics, each with its label and unit."""
        return [
            f"{label} {short(self.values[name])}{' ' + unit if unit else ''}"
            for name, label, unit in (OBSERVED_METRICS if self.is_observed else KEY_METRICS)
            if self.values.get(name)
        ]


class ClientView:
    """An exporter, and its own provider, that keeps a row per client instance."""

    def __init__(self) -> None:
        self.rows: dict[bytes, ClientRow] = {}

    def client_telemetry_exporter(self) -> ClientView:
        return self

    def export_metrics(self, context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> None:
        """Add one push to the row of its client instance."""
        connection = context.request.connection
        if not connection.client_address:
            return  # the lag of a group
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
        row.is_terminated = payload.terminating
        row.payload_bytes += len(payload.data)
        for resource_metrics in MetricsData.FromString(payload.data).resource_metrics:
            row.attributes |= {
                item.key: item.value.string_value for item in resource_metrics.resource.attributes
            }
            for scope_metrics in resource_metrics.scope_metrics:
                values = latest(scope_metrics.metrics)
                totals = {name: row.values.get(name, 0) + values[name] for name in TOTALS if name in values}
                row.values |= values | totals
                row.data_points += data_points(scope_metrics.metrics)

    @property
    def labeled_pushes(self) -> int:
        """The number of pushes of clients whose metrics carry the broker's labels."""
        return sum(row.pushes for row in self.rows.values() if row.is_labeled)

    @property
    def data_points(self) -> int:
        """The number of data points in all pushes."""
        return sum(row.data_points for row in self.rows.values())

    def table(self) -> Table:
        """The rows as a table for a terminal of 60 columns or more: each client takes several lines."""
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for heading in ("client instance", "pushed", "latest values"):
            table.add_column(heading, overflow="fold")
        for row in self.rows.values():
            gateway = row.attributes.get("gateway")
            client = (
                row.client_id,
                *((row.software_name, row.software_version) if row.has_software else ("unknown software",)),
                uuid_text(row.client_instance_id),
                *([f"at gateway {gateway}"] if gateway else []),
            )
            pushed = (
                f"observed {row.pushes} times" if row.is_observed else f"{row.pushes} pushes",
                f"{row.payload_bytes} bytes",
                f"{len(row.values)} metrics",
                f"{len(row.attributes)} attributes" if row.is_labeled else "no labels",
            )
            table.add_row(
                "\n".join(client), "\n".join(pushed), "\n".join(row.key_metrics()), end_section=True
            )
        return table

    def lines(self) -> list[str]:
        """The rows as plain lines for a file or a pipe."""
        return [
            f"{row.kind} client_id={row.client_id} software={row.software_name}/{row.software_version} "
            f"instance={uuid_text(row.client_instance_id)} labeled={'yes' if row.is_labeled else 'no'} "
            f"{'observed=yes ' if row.is_observed else ''}"
            f"pushes={row.pushes} bytes={row.payload_bytes} metrics={len(row.values)} | "
            + ", ".join(row.key_metrics())
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


def data_points(metrics: Iterable[Metric]) -> int:
    """The number of data points of gauges and sums."""
    return sum(len(metric.gauge.data_points) + len(metric.sum.data_points) for metric in metrics)


def short(value: float) -> str:
    """A value in three digits, or as a whole number if it is larger."""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
