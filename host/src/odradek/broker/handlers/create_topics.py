"""CreateTopics v2-v7.

Behavior:
    * Each topic is created or refused on its own; a topic named twice is INVALID_REQUEST.
    * Partitions -1 and replication factor -1 mean the host's defaults; there is one replica, so a factor above 1 is
      INVALID_REPLICATION_FACTOR and an assignment to another node INVALID_REPLICA_ASSIGNMENT.
    * ``validate_only`` answers the same and creates nothing.
Versions:
    * v5 tells the outcome (partitions, factor, effective configuration), v7 the topic's id.
Ignored fields:
    * TimeoutMs: the topic is there when the answer is.
Differs from Kafka:
    * A topic has at most 1000 partitions: INVALID_PARTITIONS beyond.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.broker import Broker
from odradek.broker.routing import answers
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.wire.types import NIL_UUID


@answers(CreateTopicsRequest, CreateTopicsResponse)
def create_topics(
    request: CreateTopicsRequest, context: RequestContext, broker: Broker
) -> CreateTopicsResponse:
    times = Counter(topic.name for topic in request.topics)
    wanted = {topic.name: topic for topic in request.topics}
    results = []
    for name, topic in wanted.items():
        try:
            if times[name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the topic is named more than once")
            results.append(create(topic, request.validate_only, broker))
        except ApiError as error:
            results.append(
                CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)
            )
    return CreateTopicsResponse(topics=results)


def create(wanted: CreatableTopic, validate_only: bool, broker: Broker) -> CreatableTopicResult:
    """Create one topic, or check that it could be."""
    partitions = partition_count(wanted, broker)
    properties = {config.name: config.value for config in wanted.configs if config.value is not None}
    if len(properties) < len(wanted.configs):
        raise ApiError(ErrorCode.INVALID_CONFIG, "a configuration is null or given more than once")
    if validate_only:
        broker.topics.check_new(wanted.name, partitions, properties)
        topic_id = NIL_UUID
    else:
        topic_id = broker.topics.create(wanted.name, partitions, properties).id
    return CreatableTopicResult(
        name=wanted.name, topic_id=topic_id, num_partitions=partitions, replication_factor=1
    )


def partition_count(wanted: CreatableTopic, broker: Broker) -> int:
    """How many partitions, from the number or from the assignment."""
    if wanted.assignments:
        if wanted.num_partitions != -1 or wanted.replication_factor != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "an assignment excludes the numbers of partitions and replicas"
            )
        check_assignments(wanted.assignments, broker.settings.node_id)
        return len(wanted.assignments)
    if wanted.replication_factor not in (-1, 1):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {wanted.replication_factor}: there is one broker",
        )
    return broker.settings.num_partitions if wanted.num_partitions == -1 else wanted.num_partitions


def check_assignments(assignments: list[CreatableReplicaAssignment], node_id: int) -> None:
    """Partitions from 0 on, each on this node alone."""
    indexes = sorted(assignment.partition_index for assignment in assignments)
    elsewhere = any(assignment.broker_ids != [node_id] for assignment in assignments)
    if indexes != list(range(len(indexes))) or elsewhere:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"expected partitions from 0 on, each assigned to broker {node_id}",
        )
