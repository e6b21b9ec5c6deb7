"""The metrics of the telemetry topic on a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.delivery.cluster_writer import ClusterWriter
from odradek.meters.instrument import Instrument
from odradek.telemetry.client_metrics_stats import MetricRow

CLUSTER_INSTRUMENTS = {
    "cluster-acknowledged": Instrument(
        "odradek.cluster.acknowledged", "counter", "{record}", "Records that the cluster acknowledged"
    ),
    "cluster-late": Instrument(
        "odradek.cluster.late",
        "counter",
        "{record}",
        "Records that the cluster acknowledged after their pushes had been refused",
    ),
    "cluster-in-flight": Instrument(
        "odradek.cluster.in.flight", "gauge", "{record}", "Records sent to the cluster and not acknowledged"
    ),
    "cluster-in-flight-bytes": Instrument(
        "odradek.cluster.in.flight.size", "gauge", "By", "Memory of the records in flight"
    ),
    "cluster-unavailable": Instrument(
        "odradek.cluster.unavailable", "gauge", "1", "1 while the cluster acknowledges nothing"
    ),
}
"""By row name."""


def cluster_rows(writer: ClusterWriter) -> Iterator[MetricRow]:
    """The records in flight, and their outcomes; push_rows has the refusals by reason."""
    yield MetricRow("cluster-acknowledged", "counter", {}, writer.acknowledged)
    yield MetricRow("cluster-late", "counter", {}, writer.late)
    yield MetricRow("cluster-in-flight", "gauge", {}, writer.in_flight)
    yield MetricRow("cluster-in-flight-bytes", "gauge", {}, writer.held_bytes)
    yield MetricRow("cluster-unavailable", "gauge", {}, int(writer.down_since_ms is not None))
    for reason, records in writer.refused.items():
        yield MetricRow("spool-refused", "counter", {"reason": reason}, records)
