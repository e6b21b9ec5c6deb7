"""Metadata, API key 3.

Source: MetadataRequest.json and MetadataResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import (
    NIL_UUID,
    Bool,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    Uuid,
    between,
    nullable,
    since,
)


class MetadataRequestTopic(Struct):
    """One of `MetadataRequest.topics`."""

    topic_id: Annotated[Uuid, since(10)] = NIL_UUID
    name: Annotated[String | None, nullable(since(10))] = ""
    """Null if the topic is named by its id."""


class MetadataResponseBroker(Struct):
    """One of `MetadataResponse.brokers`."""

    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: Annotated[String | None, since(1)] = None


class MetadataResponsePartition(Struct):
    """One of `MetadataResponseTopic.partitions`."""

    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    """-1 if there is none."""
    leader_epoch: Annotated[Int32, since(7)] = -1
    """-1 if unknown. Clients use it to detect truncation."""
    replica_nodes: list[Int32] = field(default_factory=list)
    isr_nodes: list[Int32] = field(default_factory=list)
    offline_replicas: Annotated[list[Int32], since(5)] = field(default_factory=list)


class MetadataResponseTopic(Struct):
    """One of `MetadataResponse.topics`."""

    error_code: Int16 = 0
    name: Annotated[String | None, nullable(since(12))] = ""
    """Null for an id that is unknown."""
    topic_id: Annotated[Uuid, since(10)] = NIL_UUID
    is_internal: Annotated[Bool, since(1)] = False
    partitions: list[MetadataResponsePartition] = field(default_factory=list)
    topic_authorized_operations: Annotated[Int32, since(8)] = -0x8000_0000
    """A bit per `AclOperation`; the default means that it was not asked for."""


class MetadataRequest(Message, api_key=3, versions=between(0, 13), flexible=since(9)):
    """Learn the brokers, and the leaders of topics."""

    topics: Annotated[list[MetadataRequestTopic] | None, nullable(since(1))] = field(default_factory=list)
    """Null asks for all; an empty list for none (in version 0: for all)."""
    allow_auto_topic_creation: Annotated[Bool, since(4)] = True
    include_cluster_authorized_operations: Annotated[Bool, between(8, 10)] = False
    include_topic_authorized_operations: Annotated[Bool, since(8)] = False


class MetadataResponse(Message, answers=MetadataRequest):
    """Answer to `MetadataRequest`."""

    throttle_time_ms: Annotated[Int32, since(3)] = 0
    brokers: list[MetadataResponseBroker] = field(default_factory=list)
    cluster_id: Annotated[String | None, since(2)] = None
    controller_id: Annotated[Int32, since(1)] = -1
    """-1 if unknown."""
    topics: list[MetadataResponseTopic] = field(default_factory=list)
    cluster_authorized_operations: Annotated[Int32, between(8, 10)] = -0x8000_0000
    """A bit per `AclOperation`; the default means that it was not asked for."""
    error_code: Annotated[Int16, since(13)] = 0
    """REBOOTSTRAP_REQUIRED or none."""
