"""OffsetDelete, API key 47 (KIP-496).

Source: OffsetDeleteRequest.json and OffsetDeleteResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import NEVER, Int16, Int32, String, Versions, only


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestPartition:
    """One of `OffsetDeleteRequestTopic.partitions`."""

    partition_index: Int32 = 0


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    """One of `OffsetDeleteRequest.topics`."""

    name: String = ""
    partitions: list[OffsetDeleteRequestPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponsePartition:
    """One of `OffsetDeleteResponseTopic.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponseTopic:
    """One of `OffsetDeleteResponse.topics`."""

    name: String = ""
    partitions: list[OffsetDeleteResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequest:
    """Delete committed offsets of a group."""

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[Versions] = only(0)
    FLEXIBLE: ClassVar[Versions] = NEVER

    group_id: String = ""
    topics: list[OffsetDeleteRequestTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponse:
    """Answer to `OffsetDeleteRequest`."""

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[Versions] = only(0)
    FLEXIBLE: ClassVar[Versions] = NEVER

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = field(default_factory=list)
