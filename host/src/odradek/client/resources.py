"""Arguments and results of the admin client: configuration, topics, the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from odradek.client.address import Address
from odradek.wire.config_resource import ConfigOperation, ConfigSource, ResourceType

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
"""Used instead of a timestamp: selects the record with the largest timestamp."""
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
"""Used instead of a timestamp: offsets of tiered storage (KIP-405)."""


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A resource that has a configuration."""

    type: int
    """A `ResourceType`, or a number of a newer broker."""
    name: str

    def __str__(self) -> str:
        return self.name or "the cluster default"

    @classmethod
    def broker(cls, node_id: int) -> Self:
        """The configuration of one broker."""
        return cls(ResourceType.BROKER, str(node_id))

    @classmethod
    def topic(cls, name: str) -> Self:
        """The configuration of a topic."""
        return cls(ResourceType.TOPIC, name)


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """The change of one key."""

    key: str
    value: str | None = None
    """None for DELETE."""
    operation: ConfigOperation = ConfigOperation.SET


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A value that a source has for a key. The first one in a list is in force."""

    name: str
    value: str | None
    source: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One key of a resource."""

    name: str
    value: str | None
    """None if the key is sensitive or not set."""
    source: int
    """A `ConfigSource`, or a number of a newer broker."""
    type: int
    """A `ConfigType`; UNKNOWN from brokers before 2.6."""
    read_only: bool
    sensitive: bool
    synonyms: Sequence[ConfigSynonym] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether no source sets the key."""
        return self.source == ConfigSource.DEFAULT

    @property
    def source_name(self) -> str:
        """The name of the source as Kafka's tools print it; its number if it is unknown here."""
        known = next((each.name for each in ConfigSource if each == self.source), None)
        return known or str(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create."""

    name: str
    partitions: int = -1
    """-1 for the broker's default, as for the replication factor."""
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Sequence[Sequence[int]] = ()
    """The brokers of each partition, the preferred leader first. If given, the numbers above must be -1."""


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The new number of partitions of a topic."""

    total: int
    assignments: Sequence[Sequence[int]] | None = None
    """The brokers of each new partition; None lets the broker choose."""


@dataclass(frozen=True, slots=True)
class Node:
    """One broker."""

    id: int
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """The brokers of a cluster and its controller."""

    cluster_id: str | None
    controller_id: int
    """-1 if it is not known."""
    nodes: Sequence[Node]


@dataclass(frozen=True, slots=True)
class Offset:
    """The offset of a record in a partition; -1 if there is no such record."""

    offset: int
    timestamp_ms: int
    """-1 if the request was not for a timestamp."""
