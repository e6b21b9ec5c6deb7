"""Metadata v0-v13.

Behavior:
    * Null topics ask for all, an empty list for none (v0: for all).
    * A topic that is named twice is answered once.
    * A topic that the client may not see is TOPIC_AUTHORIZATION_FAILED whether it exists or not, and comes
      last; a request for all topics leaves it out. So is a topic that the client may not create.
    * An unknown topic is created if the request and ``auto.create.topics.enable`` allow it and the name is
      legal. The answer is UNKNOWN_TOPIC_OR_PARTITION all the same: the client asks again, and then the topic
      exists with all its partitions.
    * Unknown topics that would have more than 10 000 partitions together are not created.
    * The topics of telemetry are internal only if ``telemetry.topic.internal`` is true.
    * An unknown id is UNKNOWN_TOPIC_ID, with a null name.
    * This node is the only broker, the controller, and the leader of everything, in leader epoch 0. A
      partition whose log directory is offline has no leader: LEADER_NOT_AVAILABLE, with this node as an
      offline replica.
Versions:
    * v12: topics by id; if an id is given, entries with only a name are ignored. v10 and v11 refuse ids with
      INVALID_REQUEST. v8-v10: authorized operations of the cluster. v13: an error at the top.
Differs from Kafka:
    * ``__consumer_offsets``, ``__transaction_state`` and ``__share_group_state`` do not exist, are not listed
      and not created: the host keeps this state in its own files. A client that would create one gets
      INVALID_TOPIC_EXCEPTION.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable
from functools import partial

from odradek.broker.authorization import Rights
from odradek.broker.authorized_operations import NOT_ASKED_FOR
from odradek.broker.broker import Broker
from odradek.broker.dispatch.response_elements import gathered
from odradek.broker.dispatch.routes import answers
from odradek.broker.nodes import Nodes
from odradek.broker.topic_changes import NewTopics
from odradek.broker.topics import (
    CLUSTER_METADATA_TOPIC,
    INTERNAL_TOPICS,
    LEADER_EPOCH,
    MAX_PARTITIONS_OF_REQUEST,
    NO_LEADER,
    Topic,
    check_name,
)
from odradek.log.partition_log import PartitionLog
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.telemetry.topic_errors import UNKNOWN
from odradek.waiting.deferred import Deferred
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
from odradek.wire.uuid_text import uuid_text

MANY_PARTITIONS = 500
"""A host with more of them encodes the topics of a response one by one."""
TOPIC_ID_VERSION = 12
"""v10 and v11 have the field, but their answers could not say that an id is unknown."""


def refuse(request: MetadataRequest, code: ErrorCode, _message: str | None) -> MetadataResponse:
    """The same error for every topic, and at the top for versions that have room for it."""
    topics = [
        MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in request.topics or ()
    ]
    return MetadataResponse(topics=topics, error_code=code)


@answers(MetadataRequest, refusal=refuse)
def metadata(
    request: MetadataRequest, context: RequestContext, broker: Broker
) -> MetadataResponse | Deferred[MetadataResponse]:
    may_create = request.allow_auto_topic_creation and broker.settings.auto_create_topics_enable
    wants_all = request.topics is None or (context.api_version == 0 and not request.topics)
    work = (
        describe_all(request, context, broker)
        if wants_all
        else describe(request, context, broker, may_create)
    )
    changes = may_create and not wants_all
    one = not wants_all and len(request.topics or ()) <= 1
    response: MetadataResponse | Deferred[MetadataResponse] = gathered(
        work,
        MetadataResponse,
        "topics",
        context.api_version,
        broker,
        droppable=not changes,
        large=not one and len(broker.logs) > MANY_PARTITIONS,
    )
    return response


Described = Generator[MetadataResponseTopic | None, None, MetadataResponse]
"""Yields the topics one by one."""


def describe_all(request: MetadataRequest, context: RequestContext, broker: Broker) -> Described:
    """Describe all topics."""
    operations = operations_of(request, context, broker)
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC, logs=False)
    for topic in list(broker.topics):
        seen = rights.allows(topic.name)
        yield description(topic, broker.nodes, operations(topic.name)) if seen else None
    return cluster(request, context, broker)


def describe(
    request: MetadataRequest, context: RequestContext, broker: Broker, may_create: bool
) -> Described:
    """Describe some topics, after unknown ones are created if that is allowed."""
    operations = operations_of(request, context, broker)
    topics: Collection[MetadataRequestTopic] = yield from wanted(request, context.api_version)
    if broker.authorization.is_enabled:
        topics, before, after = yield from sorted_by_rights(topics, context, broker, may_create)
    else:
        before, after = [], []
    unknown = 0
    for topic in topics if may_create else ():
        unknown += topic.topic_id == NIL_UUID and topic.name not in broker.topics.by_name
        yield None
    may_create = 0 < unknown * broker.settings.num_partitions <= MAX_PARTITIONS_OF_REQUEST
    found: list[Topic | MetadataResponseTopic] = []
    with NewTopics(broker.topics) as new:
        for topic in topics:
            found.append((yield from look_up(topic, new if may_create else None, broker)))
            yield None
        yield from new.store()
    for refusal in (*before, *after):
        tell(refusal, context, broker)
    yield from before
    for each in found:
        if isinstance(each, MetadataResponseTopic):
            if each.name in new.failed:
                each.error_code = new.failed[each.name].code
            tell(each, context, broker)
            yield missing(each, operations)
        else:
            yield description(each, broker.nodes, operations(each.name))
    yield from after
    return cluster(request, context, broker)


def tell(row: MetadataResponseTopic, context: RequestContext, broker: Broker) -> None:
    """Tell the error of a topic, unless it has just been created."""
    if row.name is None or broker.topics.named(row.name) is None or row.error_code not in UNKNOWN:
        broker.tell_topic_error(context, row.error_code, row.name or uuid_text(row.topic_id))


def missing(row: MetadataResponseTopic, operations: Callable[[str], int]) -> MetadataResponseTopic:
    """The error of a topic; if it has a name, with the operations that the client could perform on it."""
    if row.name is not None:
        row.topic_authorized_operations = operations(row.name)
    return row


def operations_of(request: MetadataRequest, context: RequestContext, broker: Broker) -> Callable[[str], int]:
    """The operations that the client may perform on each topic, if it asks for them."""
    if request.include_topic_authorized_operations:
        return partial(broker.authorization.operations, context, ResourceType.TOPIC)
    return lambda _: NOT_ASKED_FOR


def sorted_by_rights(
    topics: Iterable[MetadataRequestTopic], context: RequestContext, broker: Broker, may_create: bool
) -> Generator[
    None,
    None,
    tuple[list[MetadataRequestTopic], list[MetadataResponseTopic], list[MetadataResponseTopic]],
]:
    """The topics that the client may see or create, and the errors to answer before and after them."""
    rights, topic_type = broker.authorization, ResourceType.TOPIC
    sees = rights.rights(context, AclOperation.DESCRIBE, topic_type)
    creates: Rights | None = None
    allowed, unknown, uncreated, unseen = [], [], [], []
    for each in topics:
        yield
        name: str | None = each.name
        if each.topic_id != NIL_UUID:
            known = broker.topics.by_id.get(each.topic_id)
            name = None if known is None else known.name
        if name is None:
            unknown.append(refused(ErrorCode.UNKNOWN_TOPIC_ID, each))
        elif not sees.allows(name):
            unseen.append(refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, each))
        elif may_create and name not in broker.topics.by_name:
            creates = creates or rights.rights(
                context, AclOperation.CREATE, topic_type, or_on_cluster=AclOperation.CREATE
            )
            if creates.allows(name):
                allowed.append(each)
            else:
                uncreated.append(refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, each))
        else:
            allowed.append(each)
    return allowed, unknown, uncreated + unseen


def refused(code: ErrorCode, wanted: MetadataRequestTopic) -> MetadataResponseTopic:
    """The error of a topic, in the words of the request."""
    name = wanted.name if wanted.topic_id == NIL_UUID else None
    return MetadataResponseTopic(error_code=code, name=name, topic_id=wanted.topic_id)


def cluster(request: MetadataRequest, context: RequestContext, broker: Broker) -> MetadataResponse:
    """The description of the cluster, without topics."""
    nodes = broker.nodes.all(context.connection)
    operations = NOT_ASKED_FOR
    if request.include_cluster_authorized_operations:
        operations = broker.authorization.cluster_operations(context)
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=each.id, host=each.host, port=each.port) for each in nodes],
        cluster_id=broker.cluster_id,
        controller_id=nodes[0].id,
        cluster_authorized_operations=operations,
    )


def wanted(request: MetadataRequest, version: int) -> Generator[None, None, Collection[MetadataRequestTopic]]:
    """Each topic once.

    Raises:
        ApiError: INVALID_REQUEST: ids, or no names, in a version that cannot answer them.
            UNKNOWN_SERVER_ERROR, as from Kafka: neither a name nor an id.
    """
    topics = request.topics or ()
    if version < TOPIC_ID_VERSION and any(
        topic.name is None or topic.topic_id != NIL_UUID for topic in topics
    ):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    yield  # each pass over all topics takes milliseconds
    by_id = {topic.topic_id: topic for topic in topics if topic.topic_id != NIL_UUID}
    yield
    by_name = {topic.name: topic for topic in topics}
    if not by_id and None in by_name:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return by_id.values() or by_name.values()


def look_up(
    wanted: MetadataRequestTopic, new: NewTopics | None, broker: Broker
) -> Generator[None, None, Topic | MetadataResponseTopic]:
    """One topic, or its error."""
    if wanted.topic_id != NIL_UUID:
        return broker.topics.by_id.get(wanted.topic_id) or MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id
        )
    name = wanted.name or ""
    topic = broker.topics.named(name)
    if topic is not None:
        return topic
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # even if it is created: the client asks again
    try:
        yield from create(name, new, broker)
    except ApiError as error:
        code = error.code
    return MetadataResponseTopic(error_code=code, name=name)


def create(name: str, new: NewTopics | None, broker: Broker) -> Generator[None, None, None]:
    """Create an unknown topic if that is allowed.

    Raises:
        ApiError: It cannot be created.
    """
    check_name(name)
    if new is not None and name not in broker.topics.names and name != CLUSTER_METADATA_TOPIC:
        if name in INTERNAL_TOPICS:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        yield from new.add(name, broker.settings.num_partitions, {})


def description(topic: Topic, nodes: Nodes, operations: int) -> MetadataResponseTopic:
    """A topic and its partitions."""
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[
            partition_row(index, log, nodes.leader(topic.name, index))
            for index, log in enumerate(topic.partitions)
        ],
        topic_authorized_operations=operations,
    )


def partition_row(index: int, log: PartitionLog, node_id: int) -> MetadataResponsePartition:
    """A partition. One whose log directory is offline has no leader."""
    return MetadataResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if log.offline else ErrorCode.NONE,
        partition_index=index,
        leader_id=NO_LEADER if log.offline else node_id,
        leader_epoch=LEADER_EPOCH,
        replica_nodes=[node_id],
        isr_nodes=[node_id],
        offline_replicas=[node_id] if log.offline else [],
    )
