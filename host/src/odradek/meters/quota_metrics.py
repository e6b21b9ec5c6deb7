"""The metrics of the quotas: Kafka's groups of the domain ``kafka.server``, as a prefix."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.meters.instrument import Instrument
from odradek.quota.quota_managers import QuotaManagers
from odradek.telemetry.client_metrics_stats import MetricRow

GROUPS = {
    "Produce": "produce",
    "Fetch": "fetch",
    "Request": "request",
    "ControllerMutation": "controller.mutation",
    "LeaderReplication": "leader.replication",
    "FollowerReplication": "follower.replication",
    "AlterLogDirsReplication": "alter.log.dirs.replication",
}
MEANINGS = {
    "byte-rate": ("By/s", "Bytes charged against the quota"),
    "request-time": ("%", "Processing time of requests, in percent of a thread"),
    "exempt-request-time": ("%", "Processing time of requests that do not throttle their client"),
    "mutation-rate": ("{partition}/s", "Partitions created and deleted"),
    "tokens": ("{partition}", "Partitions that may be created or deleted now; negative if overdrawn"),
    "throttle-time": ("ms", "Throttle time of clients, mean"),
    "queue-size": ("{connection}", "Connections that are currently throttled"),
}
OF_CLIENTS = ("throttle-time", "queue-size")
METRICS = {
    "Produce": ("byte-rate", *OF_CLIENTS),
    "Fetch": ("byte-rate", *OF_CLIENTS),
    "Request": ("request-time", "exempt-request-time", *OF_CLIENTS),
    "ControllerMutation": ("mutation-rate", "tokens", *OF_CLIENTS),
    "LeaderReplication": ("byte-rate",),
    "FollowerReplication": ("byte-rate",),
    "AlterLogDirsReplication": ("byte-rate",),
}
"""The metrics of each group."""


def instruments() -> Iterator[tuple[str, Instrument]]:
    """By row name."""
    for group, names in METRICS.items():
        for name in names:
            unit, meaning = MEANINGS[name]
            full_name = f"kafka.server.{GROUPS[group]}.{name.replace('-', '.')}"
            yield f"{group}:{name}", Instrument(full_name, "gauge", unit, meaning)


QUOTA_INSTRUMENTS = dict(instruments())


def quota_rows(quotas: QuotaManagers, now_ms: int) -> Iterator[MetricRow]:
    """Every metric of every manager. Non-empty tags become labels, as in Kafka."""
    for (name, group, tags), value in quotas.measured(now_ms):
        labels = {tag.replace("-", "_"): text for tag, text in tags if text}
        yield MetricRow(f"{group}:{name}", "gauge", labels, value)
