"""AlterReplicaLogDirs v1-v2.

Behavior:
    * Moves a partition to another directory of ``log.dirs`` while it is in use. The answer comes before the
      move ends; DescribeLogDirs shows its progress. A move continues after a restart.
    * Naming the partition's current directory cancels its move; naming a third directory restarts it.
    * A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION, and will be created in this directory.
    * A directory outside ``log.dirs`` is LOG_DIR_NOT_FOUND; one that cannot be used is KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def refuse(
    request: AlterReplicaLogDirsRequest, code: ErrorCode, _message: str | None
) -> AlterReplicaLogDirsResponse:
    """The same error for every partition."""
    codes = dict.fromkeys(wanted_partitions(request), code)
    return AlterReplicaLogDirsResponse(results=list(by_topic(codes).values()))


def wanted_partitions(request: AlterReplicaLogDirsRequest) -> dict[tuple[str, int], Path]:
    """The new directory of each partition; the last mention counts."""
    return {
        (topic.name, index): path
        for path, topics in ((Path(each.path), each.topics) for each in request.dirs)
        for topic in topics
        for index in topic.partitions
    }


def by_topic(codes: dict[tuple[str, int], ErrorCode]) -> dict[str, AlterReplicaLogDirTopicResult]:
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (name, index), code in codes.items():
        topic = topics.setdefault(name, AlterReplicaLogDirTopicResult(topic_name=name))
        topic.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return topics


@answers(AlterReplicaLogDirsRequest, refusal=refuse, each="results")
def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, context: RequestContext, broker: Broker
) -> Generator[AlterReplicaLogDirTopicResult | None, None, AlterReplicaLogDirsResponse]:
    broker.authorization.require_on_cluster(context, AclOperation.ALTER)
    codes = {}
    for (name, index), path in wanted_partitions(request).items():
        codes[name, index] = moved(name, index, path, broker)
        yield None
    yield from by_topic(codes).values()
    return AlterReplicaLogDirsResponse()


def moved(topic: str, index: int, directory: Path, broker: Broker) -> ErrorCode:
    """Begin to move one partition."""
    try:
        if directory in broker.logs.directories and not os.access(directory, os.W_OK | os.X_OK):
            return ErrorCode.KAFKA_STORAGE_ERROR
        broker.logs.move(topic, index, directory, broker.clock)
        broker.topics.log(topic, index)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE
