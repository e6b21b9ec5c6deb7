"""AlterReplicaLogDirs, API key 34 (KIP-113).

Source: AlterReplicaLogDirsRequest.json and AlterReplicaLogDirsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import Int16, Int32, Message, String, Struct, between, since


class AlterReplicaLogDirTopic(Struct):
    """One of `AlterReplicaLogDir.topics`."""

    name: String = ""
    partitions: list[Int32] = field(default_factory=list)


class AlterReplicaLogDir(Struct):
    """One of `AlterReplicaLogDirsRequest.dirs`."""

    path: String = ""
    topics: list[AlterReplicaLogDirTopic] = field(default_factory=list)


class AlterReplicaLogDirPartitionResult(Struct):
    """One of `AlterReplicaLogDirTopicResult.partitions`."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class AlterReplicaLogDirTopicResult(Struct):
    """One of `AlterReplicaLogDirsResponse.results`."""

    topic_name: String = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = field(default_factory=list)


class AlterReplicaLogDirsRequest(Message, api_key=34, versions=between(1, 2), flexible=since(2)):
    """Move replicas between the log directories of a broker."""

    dirs: list[AlterReplicaLogDir] = field(default_factory=list)


class AlterReplicaLogDirsResponse(Message, answers=AlterReplicaLogDirsRequest):
    """Answer to `AlterReplicaLogDirsRequest`."""

    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = field(default_factory=list)
