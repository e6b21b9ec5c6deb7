"""The metrics of deliveries to share groups, after Kafka's SharePartitionMetrics and ShareGroupMetrics."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.metrics.metric import MetricRow, Metrics
from odradek.share.deliveries import Deliveries

DELIVERIES = Metrics[Deliveries]("odradek.share")
DELIVERIES.gauge("partitions", "{partition}", "Partitions that share groups read, once for each group", len)
DELIVERIES.gauge(
    "in.flight",
    "{record}",
    "Records from the first that a share group is not done with to the last that it has got",
)
DELIVERIES.counter("acquired", "{record}", "Records given to members of share groups")
DELIVERIES.counter(
    "acknowledged", "{record}", "Records about which members said something, by what they said", by="type"
)
DELIVERIES.counter("expired", "{record}", "Records whose member did not say anything before its lock ended")


def share_rows(deliveries: Deliveries) -> Iterator[MetricRow]:
    """What share groups have got, and what became of it."""
    yield from DELIVERIES.rows(deliveries)
