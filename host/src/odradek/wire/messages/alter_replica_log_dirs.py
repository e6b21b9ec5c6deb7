"""AlterReplicaLogDirs, API key 34 (KIP-113).

Source: AlterReplicaLogDirsRequest.json and AlterReplicaLogDirsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class AlterReplicaLogDirTopic:
    """One of `AlterReplicaLogDir.topics`."""

    name: String = ""
    partitions: list[Int32] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterReplicaLogDir:
    """One of `AlterReplicaLogDirsRequest.dirs`."""

    path: String = ""
    topics: list[AlterReplicaLogDirTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterReplicaLogDirPartitionResult:
    """One of `AlterReplicaLogDirTopicResult.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


@dataclass(slots=True, kw_only=True)
class AlterReplicaLogDirTopicResult:
    """One of `AlterReplicaLogDirsResponse.results`."""

    topic_name: String = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterReplicaLogDirsRequest:
    """Move replicas between the log directories of a broker."""

    API_KEY: ClassVar[int] = 34
    VERSIONS: ClassVar[Versions] = between(1, 2)
    FLEXIBLE: ClassVar[Versions] = since(2)

    dirs: list[AlterReplicaLogDir] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterReplicaLogDirsResponse:
    """Answer to `AlterReplicaLogDirsRequest`."""

    API_KEY: ClassVar[int] = 34
    VERSIONS: ClassVar[Versions] = between(1, 2)
    FLEXIBLE: ClassVar[Versions] = since(2)

    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = field(default_factory=list)
