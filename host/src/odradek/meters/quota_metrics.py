"""The metrics of the quotas: Kafka's groups of the domain ``kafka.server``, as a prefix."""

from __future__ import annotations

import re
from collections.abc import Iterator

from odradek.metrics.metric import MetricRow, declare
from odradek.quota.quota_managers import QuotaManagers

CLIENT = ("user", "client_id")
"""A quota callback can give other labels."""
BYTES = ("By/s", "Bytes charged against the quota")


def kafka(group: str, name: str, unit: str, sentence: str, *labels: str) -> None:
    """Declare a metric by Kafka's group and name."""
    declare("gauge", full_name(group, name), unit, sentence, *labels)


def full_name(group: str, name: str) -> str:
    """``kafka.server.leader.replication.byte.rate`` of LeaderReplication and byte-rate."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", ".", group).lower()
    return f"kafka.server.{words}.{name}".replace("-", ".")


for group in ("LeaderReplication", "FollowerReplication", "AlterLogDirsReplication"):
    kafka(group, "byte-rate", *BYTES)
for group in ("Produce", "Fetch"):
    kafka(group, "byte-rate", *BYTES, *CLIENT)
for group in ("Produce", "Fetch", "Request", "ControllerMutation"):
    kafka(group, "throttle-time", "ms", "Throttle time of clients, mean", *CLIENT)
    kafka(group, "queue-size", "{connection}", "Connections that are currently throttled")
kafka("Request", "request-time", "%", "Processing time of requests, in percent of a thread", *CLIENT)
EXEMPT = "Processing time of requests that do not throttle their client"
kafka("Request", "exempt-request-time", "%", EXEMPT)
kafka("ControllerMutation", "mutation-rate", "{partition}/s", "Partitions created and deleted", *CLIENT)
TOKENS = "Partitions that may be created or deleted now; negative if overdrawn"
kafka("ControllerMutation", "tokens", "{partition}", TOKENS, *CLIENT)


def quota_rows(quotas: QuotaManagers, now_ms: int) -> Iterator[MetricRow]:
    """Every metric of every manager. Non-empty tags become labels, as in Kafka."""
    for (name, group, tags), value in quotas.measured(now_ms):
        labels = {tag.replace("-", "_"): text for tag, text in tags if text}
        yield MetricRow(full_name(group, name), labels, value)
