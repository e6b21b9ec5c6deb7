"""DescribeLogDirs v1-v5.

Behavior:
    * Every directory of ``log.dirs`` with the requested partitions; null requests all.
    * A partition that is being moved is listed twice: in its current directory and, marked as future and with
      its lag, in the new one.
    * An offline directory is KAFKA_STORAGE_ERROR, without partitions.
    * v4: size and free space of the file system. v5: no directory is ever cordoned.
Differs from Kafka:
    * A full directory stays online: appends are KAFKA_STORAGE_ERROR until there is room.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Container, Generator
from functools import partial
from pathlib import Path

from odradek.broker.broker import Broker
from odradek.broker.dispatch.response_elements import Composed, composed
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


class Everything:
    """Contains everything."""

    def __contains__(self, _item: object) -> bool:
        return True


def refuse(
    _request: DescribeLogDirsRequest, code: ErrorCode, _message: str | None
) -> DescribeLogDirsResponse:
    """At the top from v3 on. Older versions have error codes only in directories, so there is one without a
    name.
    """
    return DescribeLogDirsResponse(error_code=code, results=[DescribeLogDirsResult(error_code=code)])


@answers(DescribeLogDirsRequest, refusal=refuse, each="results", droppable=True)
def describe_log_dirs(
    request: DescribeLogDirsRequest, context: RequestContext, broker: Broker
) -> Generator[DescribeLogDirsResult | Composed | None, None, DescribeLogDirsResponse]:
    if not broker.authorization.allows_on_cluster(context, AclOperation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted: Container[tuple[str, int]] = Everything()
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    found = yield from partitions_by_directory(wanted, broker)
    for directory in broker.logs.directories:
        offline = directory in broker.logs.offline
        yield failed(directory) if offline else described(directory, found[directory])
    return DescribeLogDirsResponse()


def partitions_by_directory(
    wanted: Container[tuple[str, int]], broker: Broker
) -> Generator[None, None, dict[Path, dict[str, list[DescribeLogDirsPartition]]]]:
    """The logs, and the copies being made, of each directory; a step for each log."""
    found: dict[Path, dict[str, list[DescribeLogDirsPartition]]] = defaultdict(lambda: defaultdict(list))
    for (topic, index), log in list(broker.logs.items()):
        yield
        if (topic, index) in wanted:
            found[log.directory.parent][topic].append(
                DescribeLogDirsPartition(partition_index=index, partition_size=log.size_bytes)
            )
    for (topic, index), move in broker.logs.moves.items():
        if (topic, index) in wanted:
            found[move.directory][topic].append(
                DescribeLogDirsPartition(
                    partition_index=index,
                    partition_size=move.size_bytes,
                    offset_lag=move.offset_lag,
                    is_future_key=True,
                )
            )
    return found


def failed(directory: Path) -> DescribeLogDirsResult:
    """A directory that cannot be used."""
    return DescribeLogDirsResult(log_dir=str(directory), error_code=ErrorCode.KAFKA_STORAGE_ERROR)


def described(
    directory: Path, topics: dict[str, list[DescribeLogDirsPartition]]
) -> DescribeLogDirsResult | Composed:
    try:
        space = os.statvfs(directory)
    except OSError:
        return failed(directory)
    result = DescribeLogDirsResult(
        log_dir=str(directory),
        total_bytes=space.f_blocks * space.f_frsize,
        usable_bytes=space.f_bavail * space.f_frsize,
    )
    parts = [partial(DescribeLogDirsTopic, name=name, partitions=each) for name, each in topics.items()]
    return composed(result, "topics", parts)
