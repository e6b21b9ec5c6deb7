"""StreamsGroupHeartbeat v0-v1 (KIP-1071).

Behavior:
    * Epoch 0 joins with a topology, -1 leaves, -2 leaves as a static member that will return; other epochs
      are heartbeats. A field that a request leaves out (null, -1) keeps its last value.
    * The first member gives the group its topology. Another one of the same or a newer topology epoch is
      INVALID_REQUEST; a member with an older one is told so, and may stay.
    * The answer has the tasks if they changed, or if the member joins. A topology that does not fit the
      topics is a status, and its members get no tasks.
    * Repartition and changelog topics that are missing are created after the answer, with the rights and the
      mutation quota of the member. Why that failed is told for two heartbeat intervals, then it is tried
      again.
    * A new group waits ``streams.initial.rebalance.delay.ms`` for more members; later tasks are assigned at
      most once per ``streams.assignment.interval.ms``.
    * A standby that becomes active, or the other way round, keeps its state.
    * A member that asks for a shutdown is repeated to all members until the group is empty; the first one, if
      several ask.
    * The group, its topology and its members are stored before the answer: after kill -9 of the host they go
      on with their epochs and tasks. As in Kafka, a shutdown that was asked for, endpoint epochs and the
      offsets of tasks are forgotten; members send the offsets again.
    * An empty classic group becomes a streams group. Any other group of another kind is GROUP_ID_NOT_FOUND.
    * With ``streams.version`` 0 the answer is UNSUPPORTED_VERSION.
Versions:
    * v1: the acceptable recovery lag has 64 bits.
Ignored fields:
    * RackId and ClientTags are stored and described; no assignor uses them, as in Kafka.
    * WarmupTasks: nobody gets such tasks, as in Kafka.
Differs from Kafka:
    * More than 1 MiB of topology is INVALID_REQUEST; Kafka fails when it stores the group. Copartition groups
      that name no topic of their subtopology, and subtopologies with the same id, are
      STREAMS_INVALID_TOPOLOGY.
    * An endpoint in the first request of a new group is taken; Kafka 4.4.0 answers UNKNOWN_SERVER_ERROR.
    * A new group beyond ``groups.max``, a new member beyond ``group.members.max`` and a topology beyond
      ``group.members.max.bytes`` are POLICY_VIOLATION.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import chain

from odradek.broker.authorization import Rights
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.dispatch.throttling import mutation_quota
from odradek.broker.features import STREAMS_VERSION
from odradek.broker.handlers.create_topics import DEFAULT, create
from odradek.broker.topic_changes import NewTopics
from odradek.broker.topics import INTERNAL_TOPICS, fault_of
from odradek.group.consumer_heartbeat import Client
from odradek.group.streams_group import StreamsGroup
from odradek.group.streams_protocol import answer_heartbeat
from odradek.group.streams_topics import StatusCode, required_topics
from odradek.group.streams_topics import invalid as invalid_topology
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.quota.controller_mutation_quota import ControllerMutationQuota
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode, error_name
from odradek.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from odradek.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)

Answer = StreamsGroupHeartbeatResponse | Deferred[StreamsGroupHeartbeatResponse]


@answers(StreamsGroupHeartbeatRequest)
def streams_group_heartbeat(
    request: StreamsGroupHeartbeatRequest, context: RequestContext, broker: Broker
) -> Answer:
    broker.features.require(STREAMS_VERSION)
    if not broker.authorization.allows(context, AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.topology is None:
        return beat(request, context, broker)
    names = named_topics(request.topology)
    check_names(names)
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC)
    return broker.steps.answer(beat_if_seen(request, names, rights, context, broker))


def named_topics(topology: Topology) -> set[str]:
    """All topics of a topology."""
    sinks = (each.repartition_sink_topics for each in topology.subtopologies)
    return required_topics(topology) | set(chain.from_iterable(sinks))


def check_names(names: Iterable[str]) -> None:
    """Check that topics may have these names, and that none is one of Kafka's own.

    Raises:
        ApiError: STREAMS_INVALID_TOPOLOGY.
    """
    own = sorted(INTERNAL_TOPICS.intersection(names))
    if own:
        raise invalid_topology(
            f"Use of Kafka internal topics {','.join(own)} in a Kafka Streams topology is prohibited."
        )
    wrong = sorted(name for name in names if fault_of(name) is not None)
    if wrong:
        raise invalid_topology(f"Topic names {','.join(wrong)} are not valid topic names.")


def beat_if_seen(
    request: StreamsGroupHeartbeatRequest,
    names: Iterable[str],
    rights: Rights,
    context: RequestContext,
    broker: Broker,
) -> Generator[None, None, StreamsGroupHeartbeatResponse]:
    """Answer a member that brings a topology, all of whose topics it must be allowed to see.

    Raises:
        ApiError: TOPIC_AUTHORIZATION_FAILED, or one of `beat`.
    """
    for name in names:
        if not rights.allows(name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        yield
    return beat(request, context, broker)


def beat(
    request: StreamsGroupHeartbeatRequest, context: RequestContext, broker: Broker
) -> StreamsGroupHeartbeatResponse:
    """Answer a member, and create the internal topics that are missing.

    Raises:
        ApiError: The request was refused.
    """
    broker.check_new_group(request.group_id)
    broker.names.check("member id", request.member_id)
    broker.names.check("group instance id", request.instance_id)
    broker.names.check("rack", request.rack_id)
    broker.names.check("process id", request.process_id)
    client = Client(context.client_id or "", f"/{context.connection.client_address}")
    response = answer_heartbeat(broker.groups, request, client)
    for status in response.status or ():
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            group = broker.groups.group(request.group_id)
            assert isinstance(group, StreamsGroup)
            status.status_detail += create_missing(group, context, broker)
    return response


def create_missing(group: StreamsGroup, context: RequestContext, broker: Broker) -> str:
    """Begin to create the internal topics that a group needs; return why that failed, in Kafka's words."""
    creates = broker.authorization.rights(
        context, AclOperation.CREATE, ResourceType.TOPIC, or_on_cluster=AclOperation.CREATE
    )
    missing = group.configured.missing
    denied = sorted(name for name in missing if not creates.allows(name))
    if denied:
        return f"; Unauthorized to CREATE on topics {', '.join(denied)}."
    failures = group.creation_failures(broker.clock.monotonic_ms())
    wanted = [topic_of(group, name) for name in missing.keys() - failures.keys() - group.creating]
    if wanted:
        group.creating.update(topic.name for topic in wanted)
        broker.steps.run(created(group, wanted, mutation_quota(context, broker, 0), broker))
    told = ", ".join(f"{name} ({failures[name]})" for name in sorted(missing.keys() & failures.keys()))
    return f"; Creation failed: {told}." if told else ""


def topic_of(group: StreamsGroup, name: str) -> CreatableTopic:
    """The request for one internal topic."""
    declared = group.configured.missing[name]
    return CreatableTopic(
        name=name,
        num_partitions=group.configured.counts[name],
        replication_factor=declared.replication_factor or DEFAULT,
        configs=[CreatableTopicConfig(name=each.key, value=each.value) for each in declared.topic_configs],
    )


def created(
    group: StreamsGroup, wanted: list[CreatableTopic], quota: ControllerMutationQuota, broker: Broker
) -> Generator[None, None, None]:
    """Create topics, and note at the group which could not be created."""
    failed: dict[str, ApiError] = {}
    with NewTopics(broker.topics) as new:
        for topic in wanted:
            try:
                yield from create(topic, False, new, quota, broker)
            except ApiError as error:
                failed[topic.name] = error.kept()
            yield
        yield from new.store()
    until_ms = broker.clock.monotonic_ms() + 2 * group.config.streams.heartbeat_interval_ms
    for topic in wanted:
        group.creating.discard(topic.name)
        refusal = failed.get(topic.name) or new.failed.get(topic.name)
        if refusal is not None:
            group.failed_topics[topic.name] = (refusal.message or error_name(refusal.code), until_ms)
