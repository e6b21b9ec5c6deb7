"""The levels of the rollups: the metrics that are kept by client, and the labels that are kept of the fleet.

A fleet has as many client ids as clients, and a client has a hundred metrics. So the rollups of the fleet
have no client ids, and the rollup by client has only the metrics by which clients are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odradek.findings.client_metrics import PREFIX

CLIENT_METRICS: Final = tuple(
    PREFIX + name
    for name in (
        "producer.buffer.exhausted.total",
        "producer.connection.creation.total",
        "producer.node.request.latency.",
        "producer.outgoing.byte.total",
        "producer.produce.throttle.time.",
        "producer.record.error.total",
        "producer.record.queue.time.",
        "producer.record.retry.total",
        "producer.record.send.total",
        "producer.request.latency.",
        "consumer.connection.creation.total",
        "consumer.coordinator.assigned.partitions",
        "consumer.coordinator.commit.latency.",
        "consumer.coordinator.failed.rebalance.total",
        "consumer.coordinator.rebalance.latency.",
        "consumer.coordinator.rebalance.total",
        "consumer.fetch.manager.bytes.consumed.total",
        "consumer.fetch.manager.fetch.latency.",
        "consumer.fetch.manager.fetch.throttle.time.",
        "consumer.fetch.manager.records.consumed.total",
        "consumer.fetch.manager.records.lag.max",
        "consumer.node.request.latency.",
        "consumer.poll.idle.ratio.avg",
    )
)
"""KIP-714's standard metrics, and those of errors, retries, rebalances, lag and volume."""
EVERYTHING = "*"
BY_CLIENT = ("client_id", "group_id")
"""Columns with about as many values as there are clients."""


@dataclass(frozen=True, slots=True)
class Levels:
    """The settings of the rollups."""

    client_metrics: tuple[str, ...] = CLIENT_METRICS
    """Prefixes of the metrics that ``rollup_1h`` has, by client; ``*`` for all."""
    fleet_labels: tuple[str, ...] = ()
    """Those of `BY_CLIENT` that the rollups of the fleet have nevertheless."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that are null in the rollups of the fleet."""
        return tuple(each for each in BY_CLIENT if each not in self.fleet_labels)
