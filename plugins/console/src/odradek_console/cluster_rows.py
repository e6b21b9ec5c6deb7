"""Immutable rows of subscriptions, quotas and other state of a cluster, for pages and commands."""

from __future__ import annotations

from dataclasses import dataclass

from odradek_console.json_form import JsonRow


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRow(JsonRow):
    """A subscription."""

    name: str
    metrics: str
    """Prefixes of metric names, with commas; empty if they are not set."""
    interval_ms: int | None
    """None if it is not set: the broker's default."""
    match: str
    lease_end_s: int | None
    """When it ends, epoch seconds; None if it stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRow(JsonRow):
    """The quotas of an entity."""

    entity: tuple[tuple[str, str | None], ...]
    """Type and name of each part; None for the default."""
    limits: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow(JsonRow):
    """A forwarder of the telemetry topic."""

    name: str
    group_id: str
    partitions: int
    """Partitions with a committed offset."""
    lag_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterRow(JsonRow):
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
    """The place of the push in the telemetry topic; -1 if the letter does not have it."""
    payload_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicListing:
    """A topic of the cluster."""

    name: str
    partitions: int
    last_ms: int | None
    """The newest time of a record; None if there is none, or the brokers do not tell it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow(JsonRow):
    """A broker, or a gateway that answers as one."""

    node_id: int
    host: str
    port: int
    is_controller: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRow(JsonRow):
    """A setting of telemetry, or of the telemetry topic."""

    resource: str
    name: str
    value: str | None
    source: str
