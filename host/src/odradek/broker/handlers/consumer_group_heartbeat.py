"""ConsumerGroupHeartbeat v0-v1 (KIP-848).

Behavior:
    * Epoch 0 joins, -1 leaves, -2 leaves as a static member that will return; other epochs are heartbeats.
    * Assignors, session time-out and heartbeat interval are the host's. A field that a request leaves out
      (null, -1) keeps its last value.
    * The answer has the assignment if it changed, if the member joins, and if the request is full.
    * A member that takes longer than its rebalance time-out to give up partitions is removed, and so is one
      that is silent for ``group.consumer.session.timeout.ms``.
    * Targets are computed at most once per ``group.consumer.assignment.interval.ms`` and group; changes in
      between take effect with the next heartbeat after that. The target of a large group takes several turns
      of the loop; members keep the previous one until then.
    * Expressions match only topics that the client may see. A changed right takes effect when they are
      matched again, every ``group.consumer.regex.refresh.interval.ms``.
    * The topics of a new expression come with the next heartbeat, or a later one if to match them takes
      longer than a turn of the loop. After topics change only new ones are matched.
    * An empty group takes the protocol of the next member that joins.
    * A classic group of consumers is migrated to the consumer protocol when such a member joins, and back
      when the last one has left, if ``group.consumer.migration.policy`` allows; otherwise the answer is
      GROUP_ID_NOT_FOUND. It is also if a member's metadata cannot be read, or a partition is assigned twice.
    * With ``group.version`` 0 the answer is UNSUPPORTED_VERSION.
Versions:
    * v0: the broker makes the member id. v1: the client makes it (KIP-1082), and may subscribe by a regular
      expression of RE2; any other is INVALID_REGULAR_EXPRESSION.
Ignored fields:
    * RackId is stored and described; no assignor uses it, as in Kafka.
Differs from Kafka:
    * An expression does not match internal topics, so a member reads telemetry only if it names the topic.
    * More than 1 MiB of topic names is INVALID_REQUEST; Kafka fails when it stores the member.
    * A new group beyond ``groups.max``, a new member beyond ``group.members.max`` and topic names beyond
      ``group.members.max.bytes`` are POLICY_VIOLATION.
    * An expression beyond ``group.consumer.regex.max.length`` or ``group.consumer.regex.max.steps``, or with
      more than 100 Unicode classes and repetition counts, is INVALID_REGULAR_EXPRESSION.
    * Members are not stored: after a restart they get UNKNOWN_MEMBER_ID and join again.
    * A static member may join again under its current member id; Kafka answers UNRELEASED_INSTANCE_ID until
      its session ends.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.authorization import Rights
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import GROUP_VERSION
from odradek.group.consumer_heartbeat import Client
from odradek.group.consumer_protocol import answer_heartbeat
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

Answer = ConsumerGroupHeartbeatResponse | Deferred[ConsumerGroupHeartbeatResponse]


@answers(ConsumerGroupHeartbeatRequest)
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext, broker: Broker
) -> Answer:
    broker.features.require(GROUP_VERSION)
    if not broker.authorization.allows(context, AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC)
    if request.subscribed_topic_names and broker.authorization.is_enabled:
        return broker.steps.answer(beat_if_seen(request, context, rights, broker))
    return beat(request, context, rights, broker)


def beat_if_seen(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext, rights: Rights, broker: Broker
) -> Generator[None, None, ConsumerGroupHeartbeatResponse]:
    """Answer a member that names its topics, all of which it must be allowed to see.

    Raises:
        ApiError: TOPIC_AUTHORIZATION_FAILED, or one of `beat`.
    """
    for name in request.subscribed_topic_names or ():
        if not rights.allows(name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        yield
    return beat(request, context, rights, broker)


def beat(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext, rights: Rights, broker: Broker
) -> ConsumerGroupHeartbeatResponse:
    """Answer a member.

    Raises:
        ApiError: The request was refused.
    """
    broker.check_new_group(request.group_id)
    broker.names.check("member id", request.member_id)
    broker.names.check("group instance id", request.instance_id)
    broker.names.check("rack", request.rack_id)
    # InetAddress.toString: the name, which is not looked up, a slash, the address
    client = Client(context.client_id or "", f"/{context.connection.client_address}", rights.allows)
    return answer_heartbeat(broker.groups, request, context.api_version, client)
