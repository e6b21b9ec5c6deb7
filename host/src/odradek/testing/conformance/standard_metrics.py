"""The standard metrics of KIP-714, which every client should be able to send.

The KIP defines metrics for producers and for consumers, but none for admin clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odradek.plugin.context_labels import CONTEXT_LABELS

PREFIX: Final = "org.apache.kafka."
ROLES: Final = {
    "producer": f"{PREFIX}producer.",
    "consumer": f"{PREFIX}consumer.",
    "admin": f"{PREFIX}admin.client.",
}
"""The prefix of the metric names of each role."""
RESOURCE_LABELS: Final = frozenset(
    {"client_rack", "group_id", "group_instance_id", "group_member_id", "transactional_id"}
)
"""Labels that a client sets on the Resource."""
HOST_LABELS: Final = frozenset(CONTEXT_LABELS)
"""Labels that the host sets on receipt."""


@dataclass(frozen=True, slots=True)
class StandardMetric:
    """One standard metric of the KIP."""

    name: str
    """The name without `PREFIX`."""
    kind: str
    """``gauge`` or ``sum``."""
    unit: str = ""
    """``ms``; empty for ratios and counts."""
    labels: frozenset[str] = frozenset()
    """Labels of each data point."""

    @property
    def role(self) -> str:
        return self.name.partition(".")[0]


NODE = frozenset({"node_id"})


def both(name: str, unit: str = "", labels: frozenset[str] = frozenset()) -> tuple[StandardMetric, ...]:
    """The average and the maximum of a measurement."""
    return tuple(StandardMetric(f"{name}.{end}", "gauge", unit, labels) for end in ("avg", "max"))


def connections(role: str) -> tuple[StandardMetric, ...]:
    name = f"{role}.connection.creation"
    return StandardMetric(f"{name}.rate", "gauge"), StandardMetric(f"{name}.total", "sum")


STANDARD_METRICS: Final = (
    *connections("producer"),
    *both("producer.node.request.latency", "ms", NODE),
    *both("producer.produce.throttle.time", "ms"),
    *both("producer.record.queue.time", "ms"),
    *connections("consumer"),
    *both("consumer.node.request.latency", "ms", NODE),
    StandardMetric("consumer.poll.idle.ratio.avg", "gauge"),
    *both("consumer.coordinator.commit.latency", "ms"),
    StandardMetric("consumer.coordinator.assigned.partitions", "gauge"),
    *both("consumer.coordinator.rebalance.latency", "ms"),
    StandardMetric("consumer.coordinator.rebalance.latency.total", "sum", "ms"),
    *both("consumer.fetch.manager.fetch.latency", "ms"),
)
