"""How groups get on in their topics, as hosts and gateways measure it, whatever library their clients use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import DataPointFlags, MetricsData

from odradek.plugin import TelemetryRecord
from odradek_console.engine.client_entry import ClientEntry

PROGRESS, LAG, MEMBER = "odradek.group.progress", "odradek.group.lag", "odradek.group.member"
WANTED: Final = frozenset({PROGRESS, LAG, MEMBER})
TROUBLES: Final = {"falling behind": "behind", "stalled": "stalled"}
"""Troubles by progress."""
KEPT_INTERVALS: Final = 3
ENDED: Final = DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK
Place = tuple[str, str]
"""A topic and a partition."""


@dataclass(slots=True)
class GroupLag:
    """A group."""

    until_ms: int = 0
    progress: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By topic, and since when."""
    lags: dict[Place, float] = field(default_factory=dict)
    owners: dict[Place, tuple[str, str]] = field(default_factory=dict)
    """Client id and address."""

    def take(self, name: str, labels: dict[str, str], value: float | None, now_ms: int) -> bool:
        """Take a value, or the end of a series; whether it changes who is in trouble."""
        place = labels["topic"], labels.get("partition", "")
        if name == LAG:
            self.lags[place] = value or 0.0
            return False
        if name == MEMBER:
            owner = labels["client_id"], labels["address"]
            if value is not None:
                is_new = self.owners.get(place) != owner
                self.owners[place] = owner
                return is_new
            return self.owners.get(place) == owner and self.owners.pop(place) == owner
        before, _ = self.progress.get(place[0], ("", 0))
        if value is None:
            return before == labels["progress"] and bool(self.progress.pop(place[0]))
        if before == labels["progress"]:
            return False
        self.progress[place[0]] = labels["progress"], now_ms
        return True

    def has(self, topic: str, client: tuple[str, str]) -> bool:
        """Whether a client has a partition of a topic in which there is something to read."""
        return any(
            owner == client and place[0] == topic and self.lags.get(place, 1.0) > 0
            for place, owner in self.owners.items()
        )


class GroupLags:
    """All groups. Not thread-safe."""

    def __init__(self) -> None:
        self.found: dict[str, dict[bytes, GroupLag]] = {}
        """By name and by instance id: groups of several clusters may have the same name."""
        self.changes: Counter[str] = Counter()
        """How often it has changed who is in trouble, by group."""

    def add(self, record: TelemetryRecord) -> None:
        """Add a record about a group, or another subject of a lag."""
        now_ms, instance_id = record.context.received_ms, record.payload.client_instance_id
        if record.payload.terminating:
            for groups in self.found.values():
                if instance_id in groups:
                    groups[instance_id].until_ms = 0
            self.expire(now_ms)
            return
        for name, labels, value in points(record.payload.data):
            group = self.found.setdefault(labels["group"], {}).setdefault(instance_id, GroupLag())
            group.until_ms = now_ms + KEPT_INTERVALS * record.push_interval_ms
            self.changes[labels["group"]] += group.take(name, labels, value, now_ms)

    def expire(self, now_ms: int) -> None:
        """Forget groups that are no longer told of."""
        for name, groups in list(self.found.items()):
            live = {key: each for key, each in groups.items() if now_ms < each.until_ms}
            self.changes[name] += len(live) != len(groups)
            if live:
                self.found[name] = live
            else:
                del self.found[name]

    def of(self, entry: ClientEntry, now_ms: int) -> dict[str, dict[str, tuple[float, int]]] | None:
        """The troubles of a client, each with its topics, their lag, and since when.

        None if nobody measures its group.
        """
        groups = [each for each in self.found.get(entry.group_id, {}).values() if now_ms < each.until_ms]
        if not entry.group_id or not groups:
            return None
        found: dict[str, dict[str, tuple[float, int]]] = {}
        client = entry.client_id, entry.connections[-1].address if entry.connections else ""
        for group in groups:
            for topic, (progress, since_ms) in group.progress.items():
                if progress in TROUBLES and group.has(topic, client):
                    lag = sum(value for place, value in group.lags.items() if place[0] == topic)
                    found.setdefault(TROUBLES[progress], {})[topic] = lag, since_ms
        return found


def points(data: bytes) -> Iterator[tuple[str, dict[str, str], float | None]]:
    """The points that count: metric, labels, and value; None for a series that has ended."""
    try:
        resources = MetricsData.FromString(data).resource_metrics
    except DecodeError:
        return
    for resource in resources:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.gauge.data_points if metric.name in WANTED else ():
                    yield metric.name, labels_of(point), None if point.flags & ENDED else number(point)


def labels_of(point: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in point.attributes}


def number(point: Any) -> float:
    return float(getattr(point, point.WhichOneof("value") or "as_int"))
