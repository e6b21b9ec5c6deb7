"""The metrics of deliveries to share groups, after Kafka's SharePartitionMetrics and ShareGroupMetrics."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.share.dead_letters import DeadLetters
from odradek.broker.share.shares import Shares
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
DELIVERIES.counter(
    "exhausted", "{record}", "Records that share groups have given up because they were delivered too often"
)
DELIVERIES.gauge(
    "given.up", "{record}", "Records that share groups have given up and that are not dead letters yet"
)
LETTERS = Metrics[DeadLetters]("odradek.share.dead.letters")
LETTERS.counter(
    "",
    "{record}",
    "Records that share groups have given up, by what became of them in the dead-letter topic",
    "records",
    by="outcome",
)


def share_rows(shares: Shares) -> Iterator[MetricRow]:
    """What share groups have got, and what became of it."""
    yield from DELIVERIES.rows(shares.deliveries)
    yield from LETTERS.rows(shares.letters)
