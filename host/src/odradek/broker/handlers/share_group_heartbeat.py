"""ShareGroupHeartbeat v1 (KIP-932).

Behavior:
    * Epoch 0 joins, -1 leaves; other epochs are heartbeats. The client makes its member id.
    * The assignor is ``simple``: each member gets partitions of every topic that it subscribes to, and
      several members may have the same partition. Session timeout and heartbeat interval are the group's.
    * A partition is assigned once its delivery state is made, after the first heartbeat that names its topic;
      targets are computed at most once per ``share.assignment.interval.ms`` and group.
    * The answer has the assignment if it changed, if the member joins, and if the request names topics.
    * A heartbeat with the previous epoch is answered with the present one.
    * A member that is silent for ``share.session.timeout.ms`` is removed. A group without members stays.
    * Members, their epochs and their assignments survive a restart.
    * A group of another type is GROUP_ID_NOT_FOUND. With ``share.version`` 0 the answer is
      UNSUPPORTED_VERSION.
Versions:
    * v1: the only one.
Ignored fields:
    * RackId is stored and described; the assignor does not use it, as in Kafka.
Differs from Kafka:
    * More than 1 MiB of topic names is INVALID_REQUEST; Kafka fails when it stores the member.
    * A new group beyond ``groups.max``, a new member beyond ``group.members.max`` and topic names beyond
      ``group.members.max.bytes`` are POLICY_VIOLATION.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import SHARE_VERSION
from odradek.group.consumer_heartbeat import Client
from odradek.group.share_heartbeat import check_member_id
from odradek.group.share_protocol import answer_heartbeat
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

Answer = ShareGroupHeartbeatResponse | Deferred[ShareGroupHeartbeatResponse]


@answers(ShareGroupHeartbeatRequest)
def share_group_heartbeat(
    request: ShareGroupHeartbeatRequest, context: RequestContext, broker: Broker
) -> Answer:
    broker.features.require(SHARE_VERSION)
    if not broker.authorization.allows(context, AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    check_member_id(request.member_id)
    if request.subscribed_topic_names and broker.authorization.is_enabled:
        return broker.steps.answer(beat_if_seen(request, context, broker))
    return beat(request, context, broker)


def beat_if_seen(
    request: ShareGroupHeartbeatRequest, context: RequestContext, broker: Broker
) -> Generator[None, None, ShareGroupHeartbeatResponse]:
    """Answer a member that names its topics, all of which it must be allowed to see.

    Raises:
        ApiError: TOPIC_AUTHORIZATION_FAILED, or one of `beat`.
    """
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC)
    for name in request.subscribed_topic_names or ():
        if not rights.allows(name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        yield
    return beat(request, context, broker)


def beat(
    request: ShareGroupHeartbeatRequest, context: RequestContext, broker: Broker
) -> ShareGroupHeartbeatResponse:
    """Answer a member.

    Raises:
        ApiError: The request was refused.
    """
    broker.check_new_group(request.group_id)
    broker.names.check("rack", request.rack_id)
    client = Client(context.client_id or "", f"/{context.connection.client_address}")
    return answer_heartbeat(broker.groups, request, client)
