"""The names of observed metrics, and which of them a subscription asks for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from odradek.telemetry.client_metrics_configs import ALL_METRICS

STANDARD: Final = "org.apache.kafka."
OWN: Final = "io.odradek.observed.client."

PRODUCER: Final = STANDARD + "producer."
CONSUMER: Final = STANDARD + "consumer."

OF_ROLE: Final = (
    "connection.creation.rate",
    "connection.creation.total",
    "node.request.latency.avg",
    "node.request.latency.max",
)
"""Standard metrics that producers and consumers have."""
OF_PRODUCER: Final = ("produce.throttle.time.avg", "produce.throttle.time.max")
OF_CONSUMER: Final = (
    "coordinator.commit.latency.avg",
    "coordinator.commit.latency.max",
    "coordinator.assigned.partitions",
    "coordinator.rebalance.latency.avg",
    "coordinator.rebalance.latency.max",
    "coordinator.rebalance.latency.total",
    "fetch.manager.fetch.latency.avg",
    "fetch.manager.fetch.latency.max",
)
OWN_NAMES: Final = (
    "requests",
    "request.bytes",
    "response.bytes",
    "latency",
    "errors",
    "throttle.time",
    "in.flight.max",
    "connections",
    "connections.open",
    "disconnects",
    "instances.seen",
    "produce.records",
    "produce.batches",
    "produce.bytes",
    "fetch.bytes",
    "acks0.requests",
    "api.version",
    "topic.produce.records",
    "topic.produce.batches",
    "topic.produce.bytes",
    "topic.fetch.records",
)
ALL_NAMES: Final = (
    *(PRODUCER + name for name in (*OF_ROLE, *OF_PRODUCER)),
    *(CONSUMER + name for name in (*OF_ROLE, *OF_CONSUMER)),
    *(OWN + name for name in OWN_NAMES),
)


def wanted_names(prefixes: Iterable[str]) -> frozenset[str]:
    """The names that begin with one of the prefixes of a subscription."""
    given = tuple(prefixes)
    if ALL_METRICS in given:
        return frozenset(ALL_NAMES)
    return frozenset(name for name in ALL_NAMES if name.startswith(given))
