"""What an admin client asks about and gets told: configuration, topics, the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from odradek.client.address import Address
from odradek.wire.config_resource import ConfigOperation

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
"""Instead of a timestamp: the record with the largest one."""


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """One thing that can be configured."""

    type: int
    """A `ResourceType`, or a number that only the broker knows."""
    name: str

    def __str__(self) -> str:
        return self.name or "the cluster default"


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """What happens to one key."""

    key: str
    value: str | None = None
    """None for DELETE."""
    operation: ConfigOperation = ConfigOperation.SET


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A value that stands, or would stand, behind a key."""

    name: str
    value: str | None
    source: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One key of a resource."""

    name: str
    value: str | None
    """None when it is sensitive, or not set."""
    source: int
    """A `ConfigSource`, or a number that only the broker knows."""
    type: int
    """A `ConfigType`; UNKNOWN from brokers before 2.6."""
    read_only: bool
    sensitive: bool
    synonyms: Sequence[ConfigSynonym] = ()
    documentation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create."""

    name: str
    partitions: int = -1
    """-1 takes the broker's default, as does a replication factor of -1."""
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Sequence[Sequence[int]] = ()
    """The brokers of each partition, the preferred leader first; then the two numbers above are -1."""


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """How many partitions a topic shall have."""

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
    """What a cluster says of itself."""

    cluster_id: str | None
    controller_id: int
    """-1 where it is not known."""
    nodes: Sequence[Node]


@dataclass(frozen=True, slots=True)
class Offset:
    """Where something stands in a partition; -1 for no such record."""

    offset: int
    timestamp_ms: int
    """-1 where the question was not about a time."""
