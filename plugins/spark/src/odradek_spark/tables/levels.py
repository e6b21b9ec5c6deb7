"""The levels of the rollups: the metrics that are kept by client, and the labels that are kept of the fleet.

A fleet has as many client ids as clients, and a client has a hundred metrics. So the rollups of the fleet
have no client ids, and the rollup by client has only the metrics by which clients are compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from deltalake import DeltaTable

from odradek_spark.tables.log import CLOCK_SKEW_MAX

KAFKA = "org.apache.kafka."
CLIENT_METRICS: Final = tuple(
    KAFKA + name
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
PROPERTY = "odradek.clientMetrics"
"""Property of ``rollup_1h``: by prefix, the first hour for which its metrics are complete; empty for all."""


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


def has_prefix(name: str, prefix: str) -> bool:
    """Whether a prefix selects a metric, or every metric of another prefix."""
    return prefix == EVERYTHING or name.startswith(prefix)


def coverage(table: DeltaTable) -> Mapping[str, str] | None:
    """By prefix: the first hour for which ``rollup_1h`` has its metrics, ISO 8601, or empty for all.

    None for a table of an earlier version, which has all metrics.
    """
    text = table.metadata().configuration.get(PROPERTY)
    found: Mapping[str, str] | None = None if text is None else json.loads(text)
    return found


def covered_from(covered: Mapping[str, str] | None, name: str) -> str | None:
    """The first hour for which a metric is complete; empty for all, None for none."""
    if covered is None:
        return ""
    return min((since for prefix, since in covered.items() if has_prefix(name, prefix)), default=None)


def cover(table: DeltaTable, prefixes: Sequence[str], last_received: datetime | None) -> None:
    """Note the metrics that ``rollup_1h`` has from now on, in a commit of its own if they changed.

    Args:
        table: The table ``rollup_1h``.
        prefixes: The metrics.
        last_received: The latest receive time so far. A new metric is complete from the first hour on of
            which no point has arrived.

    Raises:
        CommitFailedError: Another writer committed first.
    """
    before = coverage(table)
    hour = "" if last_received is None else first_whole_hour(last_received + CLOCK_SKEW_MAX).isoformat()
    known = {prefix: covered_from(before, prefix) for prefix in prefixes}
    now = {prefix: hour if since is None else since for prefix, since in known.items()}
    if now != before:
        table.alter.set_table_properties({PROPERTY: json.dumps(now)}, raise_if_not_exists=False)


def first_whole_hour(at: datetime) -> datetime:
    """The first hour that begins at a time or later."""
    hour = at.replace(minute=0, second=0, microsecond=0)
    return hour if hour == at else hour + timedelta(hours=1)
