"""DescribeLogDirs, sent to each broker about its own directories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from odradek.client.cluster import Cluster
from odradek.client.errors import RequestFailed, check, failure
from odradek.client.leaders import Partition
from odradek.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A replica of a partition in a directory."""

    size_bytes: int
    offset_lag: int
    """Number of records by which it trails the high watermark or, if future, the replica it will replace."""
    is_future: bool
    """Whether it is being moved into this directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDir:
    """One directory of a broker."""

    path: str
    error: RequestFailed | None
    """The reason why the directory is offline, such as KAFKA_STORAGE_ERROR; None if it is online."""
    total_bytes: int | None
    """Size of the volume; None from brokers before 3.3, as is ``usable_bytes``."""
    usable_bytes: int | None
    replicas: Mapping[Partition, Replica]


def describe_log_dirs(cluster: Cluster, brokers: Sequence[int] | None) -> dict[int, list[LogDir]]:
    """Describe the directories, by broker; see `AdminClient.describe_log_dirs`."""
    metadata = cluster.metadata([])
    wanted = [row.node_id for row in metadata.brokers] if brokers is None else brokers
    found: dict[int, list[LogDir]] = {}
    for broker in wanted:
        response: DescribeLogDirsResponse = cluster.node(broker, metadata).send(
            DescribeLogDirsRequest(topics=None)
        )
        check(response.error_code, subject=f"broker {broker}")
        found[broker] = [log_dir(row) for row in response.results]
    return found


def log_dir(row: DescribeLogDirsResult) -> LogDir:
    """Convert one directory from the wire."""
    return LogDir(
        path=row.log_dir,
        error=failure(row.error_code, subject=row.log_dir),
        total_bytes=row.total_bytes if row.total_bytes >= 0 else None,
        usable_bytes=row.usable_bytes if row.usable_bytes >= 0 else None,
        replicas={
            (topic.name, replica.partition_index): Replica(
                size_bytes=replica.partition_size,
                offset_lag=replica.offset_lag,
                is_future=replica.is_future_key,
            )
            for topic in row.topics
            for replica in topic.partitions
        },
    )
