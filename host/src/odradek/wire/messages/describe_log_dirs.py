"""DescribeLogDirs, API key 35 (KIP-113).

Source: DescribeLogDirsRequest.json and DescribeLogDirsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Bool, Int16, Int32, Int64, Message, String, Struct, between, since


class DescribableLogDirTopic(Struct):
    """One of `DescribeLogDirsRequest.topics`."""

    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


class DescribeLogDirsPartition(Struct):
    """One of `DescribeLogDirsTopic.partitions`."""

    partition_index: Int32 = 0
    partition_size: Int64 = 0
    """In bytes."""
    offset_lag: Int64 = 0
    """Records behind the high watermark; for a future replica, behind the current replica."""
    is_future_key: Bool = False


class DescribeLogDirsTopic(Struct):
    """One of `DescribeLogDirsResult.topics`."""

    name: String = ""
    partitions: list[DescribeLogDirsPartition] = field(default_factory=list)


class DescribeLogDirsResult(Struct):
    """One of `DescribeLogDirsResponse.results`."""

    error_code: Int16 = 0
    log_dir: String = ""
    topics: list[DescribeLogDirsTopic] = field(default_factory=list)
    total_bytes: Annotated[Int64, since(4)] = -1
    """-1 if unknown."""
    usable_bytes: Annotated[Int64, since(4)] = -1
    """-1 if unknown."""
    is_cordoned: Annotated[Bool, since(5)] = False


class DescribeLogDirsRequest(Message, api_key=35, versions=between(1, 5), flexible=since(2)):
    """Describe the log directories of a broker."""

    topics: list[DescribableLogDirTopic] | None = field(default_factory=list)
    """Null for all."""


class DescribeLogDirsResponse(Message, answers=DescribeLogDirsRequest):
    """Answer to `DescribeLogDirsRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(3)] = 0
    results: list[DescribeLogDirsResult] = field(default_factory=list)
