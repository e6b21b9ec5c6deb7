"""The standard metrics of KIP-714: what every client should be able to send.

The KIP has some for producers and some for consumers, none for admin clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PREFIX: Final = "org.apache.kafka."
ROLES: Final = {
    "producer": f"{PREFIX}producer.",
    "consumer": f"{PREFIX}consumer.",
    "admin": f"{PREFIX}admin.client.",
}
"""What a client is, by the names of its metrics."""
RESOURCE_LABELS: Final = frozenset(
    {"client_rack", "group_id", "group_instance_id", "group_member_id", "transactional_id"}
)
"""What a client says of itself on the Resource."""
HOST_LABELS: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
        "principal",
        "node_id",
    }
)
"""What is set on receipt."""


@dataclass(frozen=True, slots=True)
class StandardMetric:
    """One row of the KIP."""

    name: str
    """Below `PREFIX`."""
    kind: str
    """``gauge`` or ``sum``."""
    unit: str = ""
    """``ms``; empty for ratios and counts."""
    labels: frozenset[str] = frozenset()
    """On each data point."""

    @property
    def role(self) -> str:
        return self.name.partition(".")[0]


NODE = frozenset({"node_id"})


def both(name: str, unit: str = "", labels: frozenset[str] = frozenset()) -> tuple[StandardMetric, ...]:
    """The average and the maximum of something."""
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
