"""DescribeLogDirs, API key 35 (KIP-113).

Source: DescribeLogDirsRequest.json and DescribeLogDirsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Bool, Int16, Int32, Int64, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class DescribableLogDirTopic:
    """One of `DescribeLogDirsRequest.topics`."""

    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsPartition:
    """One of `DescribeLogDirsTopic.partitions`."""

    partition_index: Int32 = 0
    partition_size: Int64 = 0
    """In bytes."""
    offset_lag: Int64 = 0
    """Records behind the high watermark; for a future replica, behind the current replica."""
    is_future_key: Bool = False


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsTopic:
    """One of `DescribeLogDirsResult.topics`."""

    name: String = ""
    partitions: list[DescribeLogDirsPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsResult:
    """One of `DescribeLogDirsResponse.results`."""

    error_code: Int16 = 0
    log_dir: String = ""
    topics: list[DescribeLogDirsTopic] = field(default_factory=list)
    total_bytes: Annotated[Int64, since(4)] = -1
    """-1 if unknown."""
    usable_bytes: Annotated[Int64, since(4)] = -1
    """-1 if unknown."""
    is_cordoned: Annotated[Bool, since(5)] = False


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsRequest:
    """Describe the log directories of a broker."""

    API_KEY: ClassVar[int] = 35
    VERSIONS: ClassVar[Versions] = between(1, 5)
    FLEXIBLE: ClassVar[Versions] = since(2)

    topics: list[DescribableLogDirTopic] | None = field(default_factory=list)
    """Null for all."""


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsResponse:
    """Answer to `DescribeLogDirsRequest`."""

    API_KEY: ClassVar[int] = 35
    VERSIONS: ClassVar[Versions] = between(1, 5)
    FLEXIBLE: ClassVar[Versions] = since(2)

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(3)] = 0
    results: list[DescribeLogDirsResult] = field(default_factory=list)
