"""Metadata v0-v13.

Behavior:
    * Null topics ask for all, an empty list for none (v0: for all).
    * A topic that is named twice is answered once.
    * An unknown topic is created if the request and ``auto.create.topics.enable`` allow it and the name is
      legal.
    * Unknown topics that would have more than 10 000 partitions together are not created.
    * An unknown id is UNKNOWN_TOPIC_ID, with a null name.
    * This node is the only broker, the controller, and the leader of everything, in leader epoch 0.
Versions:
    * v12: topics by id; if an id is given, entries with only a name are ignored. v10 and v11 refuse ids with
      INVALID_REQUEST. v8-v10: authorized operations of the cluster. v13: an error at the top.
Differs from Kafka:
    * A created topic is in the same answer; Kafka first answers UNKNOWN_TOPIC_OR_PARTITION, and the client
      asks again.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext

from odradek.broker.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR, TOPIC_OPERATIONS
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.topics import LEADER_EPOCH, MAX_PARTITIONS_OF_REQUEST, Topic, check_name
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.wire.types import NIL_UUID

TOPIC_ID_VERSION = 12
"""v10 and v11 have the field, but their answers could not say that an id is unknown."""


def refuse(request: MetadataRequest, code: ErrorCode, _message: str | None) -> MetadataResponse:
    """The same error for every topic, and at the top for versions that have room for it."""
    topics = [
        MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in request.topics or ()
    ]
    return MetadataResponse(topics=topics, error_code=code)


@answers(MetadataRequest, MetadataResponse, refusal=refuse)
def metadata(request: MetadataRequest, context: RequestContext, broker: Broker) -> MetadataResponse:
    endpoint = broker.endpoint(context.connection)
    node_id = broker.settings.node_id
    wants_all = request.topics is None or (context.api_version == 0 and not request.topics)
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED_FOR
    if wants_all:
        topics = [description(topic, node_id) for topic in broker.topics]
    else:
        topics = look_up_all(wanted(request, context.api_version), request, broker)
    for topic in topics:
        topic.topic_authorized_operations = operations if topic.error_code == 0 else NOT_ASKED_FOR
    cluster_asked = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node_id, host=endpoint.host, port=endpoint.port)],
        cluster_id=broker.cluster_id,
        controller_id=node_id,
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS if cluster_asked else NOT_ASKED_FOR,
    )


def wanted(request: MetadataRequest, version: int) -> Collection[MetadataRequestTopic]:
    """Each topic once.

    Raises:
        ApiError: INVALID_REQUEST: ids, or no names, in a version that cannot answer them.
    """
    topics = request.topics or ()
    if version < TOPIC_ID_VERSION and any(
        topic.name is None or topic.topic_id != NIL_UUID for topic in topics
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    by_id = {topic.topic_id: topic for topic in topics if topic.topic_id != NIL_UUID}
    return by_id.values() or {topic.name: topic for topic in topics}.values()


def look_up_all(
    topics: Collection[MetadataRequestTopic], request: MetadataRequest, broker: Broker
) -> list[MetadataResponseTopic]:
    """Each topic. Unknown ones are created, if that is allowed, with one write to the disk."""
    unknown = sum(topic.topic_id == NIL_UUID and topic.name not in broker.topics.by_name for topic in topics)
    allowed = request.allow_auto_topic_creation and broker.settings.auto_create_topics_enable
    may_create = allowed and 0 < unknown * broker.settings.num_partitions <= MAX_PARTITIONS_OF_REQUEST
    with broker.topics.creating() if may_create else nullcontext():
        return [look_up(topic, broker, may_create) for topic in topics]


def look_up(wanted: MetadataRequestTopic, broker: Broker, may_create: bool) -> MetadataResponseTopic:
    """One topic, or its error."""
    if wanted.topic_id != NIL_UUID:
        by_id = broker.topics.by_id.get(wanted.topic_id)
        if by_id is not None:
            return description(by_id, broker.settings.node_id)
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id
        )
    name = wanted.name or ""
    try:
        topic = broker.topics.named(name) or create(name, broker, may_create)
    except ApiError as error:
        return MetadataResponseTopic(error_code=error.code, name=name)
    return description(topic, broker.settings.node_id)


def create(name: str, broker: Broker, may_create: bool) -> Topic:
    """An unknown topic, created if that is allowed."""
    check_name(name)
    if not may_create:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return broker.topics.create(name, broker.settings.num_partitions, {})


def description(topic: Topic, node_id: int) -> MetadataResponseTopic:
    """A topic and its partitions."""
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                partition_index=index,
                leader_id=node_id,
                leader_epoch=LEADER_EPOCH,
                replica_nodes=[node_id],
                isr_nodes=[node_id],
            )
            for index in range(len(topic.partitions))
        ],
    )
