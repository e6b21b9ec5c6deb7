"""The metrics of the telemetry topic on a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.delivery.cluster_writer import ClusterWriter
from odradek.meters.metrics import SPOOL
from odradek.metrics.metric import MetricRow, Metrics

CLUSTER = Metrics[ClusterWriter]("odradek.cluster")
CLUSTER.counter("acknowledged", "{record}", "Records that the cluster acknowledged")
CLUSTER.counter(
    "late", "{record}", "Records that the cluster acknowledged after their pushes had been refused"
)
CLUSTER.gauge("in.flight", "{record}", "Records sent to the cluster and not acknowledged")
CLUSTER.gauge("in.flight.size", "By", "Memory of the records in flight", "held_bytes")
CLUSTER.gauge(
    "unavailable", "1", "1 while the cluster acknowledges nothing", lambda it: it.down_since_ms is not None
)


def cluster_rows(writer: ClusterWriter) -> Iterator[MetricRow]:
    """The records in flight, and their outcomes; push_rows has the refusals by reason."""
    yield from CLUSTER.rows(writer)
    yield from SPOOL.rows(writer.refused)
