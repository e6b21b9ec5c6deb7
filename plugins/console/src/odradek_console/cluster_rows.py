"""What pages and commands show of a cluster: immutable rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRow:
    """A subscription."""

    name: str
    metrics: str
    """Prefixes of metric names, with commas; empty if they are not set."""
    interval_ms: int | None
    """None if it is not set: the broker's default."""
    match: str
    lease_end_s: int | None
    """When it ends, epoch seconds; None if it stays."""

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return {
            "name": self.name,
            "metrics": self.metrics,
            "interval_ms": self.interval_ms,
            "match": self.match,
            "lease_end_s": self.lease_end_s,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRow:
    """The quotas of an entity."""

    entity: tuple[tuple[str, str | None], ...]
    """Type and name of each part; None for the default."""
    limits: tuple[tuple[str, float], ...]

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return {"entity": dict(self.entity), "limits": dict(self.limits)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """A forwarder of the telemetry topic."""

    name: str
    group_id: str
    partitions: int
    """Partitions with a committed offset."""
    lag_records: int

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return {
            "name": self.name,
            "group_id": self.group_id,
            "partitions": self.partitions,
            "lag_records": self.lag_records,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterRow:
    """A push that a forwarder gave up."""

    partition: int
    offset: int
    """Its place in the topic of dead letters."""
    time_ms: int
    client_id: str
    client_instance_id: str
    forwarder: str
    reason: str
    origin_partition: int
    origin_offset: int
    """Its place in the telemetry topic; -1 if the letter does not say so."""
    payload_bytes: int

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """A broker, or a gateway that answers as one."""

    node_id: int
    host: str
    port: int
    is_controller: bool

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRow:
    """A setting of telemetry, or of the telemetry topic."""

    resource: str
    name: str
    value: str | None
    source: str

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return {each.name: getattr(self, each.name) for each in fields(self)}
