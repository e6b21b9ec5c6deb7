"""CreateTopics, API key 19 (KIP-4).

Source: CreateTopicsRequest.json and CreateTopicsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import (
    NIL_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    Uuid,
    between,
    since,
    tag,
)


class CreatableReplicaAssignment(Struct):
    """One of `CreatableTopic.assignments`."""

    partition_index: Int32 = 0
    broker_ids: list[Int32] = field(default_factory=list)


class CreatableTopicConfig(Struct):
    """One of `CreatableTopic.configs`."""

    name: String = ""
    value: String | None = ""
    """Null for the default."""


class CreatableTopic(Struct):
    """One of `CreateTopicsRequest.topics`."""

    name: String = ""
    num_partitions: Int32 = 0
    """-1 for the default, or for the number of ``assignments``."""
    replication_factor: Int16 = 0
    """-1 for the default, or for the length of each of ``assignments``."""
    assignments: list[CreatableReplicaAssignment] = field(default_factory=list)
    """Replicas chosen by the client; empty lets the broker choose."""
    configs: list[CreatableTopicConfig] = field(default_factory=list)


class CreatableTopicConfigs(Struct):
    """One of `CreatableTopicResult.configs`."""

    name: String = ""
    value: String | None = ""
    read_only: Bool = False
    config_source: Int8 = -1
    """See `DescribeConfigsResourceResult.config_source`."""
    is_sensitive: Bool = False


class CreatableTopicResult(Struct):
    """One of `CreateTopicsResponse.topics`."""

    name: String = ""
    topic_id: Annotated[Uuid, since(7)] = NIL_UUID
    error_code: Int16 = 0
    error_message: String | None = ""
    topic_config_error_code: Annotated[Int16, tag(0, since(5))] = 0
    """Why ``configs`` is null, unless the topic itself has an error."""
    num_partitions: Annotated[Int32, since(5)] = -1
    replication_factor: Annotated[Int16, since(5)] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, since(5)] = field(default_factory=list)
    """Null if the client may not see them."""


class CreateTopicsRequest(Message, api_key=19, versions=between(2, 7), flexible=since(5)):
    """Create topics."""

    topics: list[CreatableTopic] = field(default_factory=list)
    timeout_ms: Int32 = 60000
    validate_only: Bool = False
    """True checks and creates nothing."""


class CreateTopicsResponse(Message, answers=CreateTopicsRequest):
    """Answer to `CreateTopicsRequest`."""

    throttle_time_ms: Int32 = 0
    topics: list[CreatableTopicResult] = field(default_factory=list)
