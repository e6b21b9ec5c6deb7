"""Requests that create, delete, extend and describe topics, and the error codes of their responses."""

from __future__ import annotations

from typing import Any

from odradek.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def new_topics(*names: str, partitions: int = 1, timeout_ms: int = 60_000) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms)


def deleting(*names: str, timeout_ms: int = 60_000) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=timeout_ms)


def growing(count: int, *names: str, timeout_ms: int = 60_000) -> CreatePartitionsRequest:
    topics = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name in names]
    return CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms)


def asking(*names: str) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=True
    )


def codes(response: Any) -> list[int]:
    rows = getattr(response, "topics", None) or getattr(response, "responses", None) or response.results
    return [row.error_code for row in rows]
