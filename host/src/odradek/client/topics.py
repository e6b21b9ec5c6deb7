"""CreateTopics, CreatePartitions and DeleteTopics, sent to the controller. Each topic has its own result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from odradek.client.cluster import Cluster
from odradek.client.errors import RequestFailed, failure
from odradek.client.resources import NewPartitions, NewTopic
from odradek.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

DEFAULTS_VERSION = 4
"""The first version in which -1 selects the broker's default (KIP-464)."""


def create_topics(
    cluster: Cluster, topics: Sequence[NewTopic], validate_only: bool, timeout_ms: int
) -> dict[str, RequestFailed | None]:
    """Send the request and return the result of each topic, by name."""
    request = CreateTopicsRequest(
        topics=[creatable(topic) for topic in topics], timeout_ms=timeout_ms, validate_only=validate_only
    )
    response: CreateTopicsResponse = cluster.controller().send(request, DEFAULTS_VERSION)
    return outcomes(response.topics, response.throttle_time_ms)


def creatable(topic: NewTopic) -> CreatableTopic:
    """A topic to create as a message."""
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(topic.assignments)
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()],
    )


def create_partitions(
    cluster: Cluster, totals: Mapping[str, NewPartitions], validate_only: bool, timeout_ms: int
) -> dict[str, RequestFailed | None]:
    """Send the request and return the result of each topic, by name."""
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name=name, count=new.total, assignments=assignments(new))
            for name, new in totals.items()
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    response: CreatePartitionsResponse = cluster.controller().send(request)
    return outcomes(response.results, response.throttle_time_ms)


def assignments(new: NewPartitions) -> list[CreatePartitionsAssignment] | None:
    """The brokers of the new partitions; None lets the broker choose."""
    if new.assignments is None:
        return None
    return [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in new.assignments]


def delete_topics(cluster: Cluster, names: Sequence[str], timeout_ms: int) -> dict[str, RequestFailed | None]:
    """Send the request and return the result of each topic, by name."""
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in names], topic_names=list(names), timeout_ms=timeout_ms
    )
    response: DeleteTopicsResponse = cluster.controller().send(request)
    return outcomes(response.responses, response.throttle_time_ms)


def outcomes(rows: Iterable[Any], throttle_ms: int) -> dict[str, RequestFailed | None]:
    """The result of each topic, by name."""
    return {row.name or "": failure(row.error_code, row.error_message, row.name, throttle_ms) for row in rows}
