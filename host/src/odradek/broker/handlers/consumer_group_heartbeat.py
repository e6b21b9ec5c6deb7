"""ConsumerGroupHeartbeat v0-v1 (KIP-848).

Behavior:
    * Epoch 0 joins, -1 leaves, -2 leaves as a static member that will be back; other epochs are heartbeats.
    * Assignors, session time-out and heartbeat interval are the host's. What a request leaves out (null, -1)
      is as it was in the one before.
    * The answer names the assignment when it has changed, to a member that joins, and to a full request.
    * A member that takes longer than its rebalance time-out to give up partitions is removed, and so is one
      that is not heard of for ``group.consumer.session.timeout.ms``.
    * Targets are computed at most once in ``group.consumer.assignment.interval.ms`` per group; what changes
      in between is answered by the next heartbeat after that.
    * A group without members changes its protocol with the next member that joins.
    * A classic group of consumers becomes one of the consumer protocol when such a member joins, and a
      classic one again when the last has gone, as far as ``group.consumer.migration.policy`` allows; else
      it is GROUP_ID_NOT_FOUND. So it is if a member's metadata cannot be read, or a partition is assigned
      twice.
    * With ``group.version`` 0 the answer is UNSUPPORTED_VERSION.
Versions:
    * v0: the broker makes the member id. v1: the client does (KIP-1082), and may subscribe by a regular
      expression, which RE2 compiles here, or else INVALID_REGULAR_EXPRESSION.
Ignored fields:
    * RackId is kept and described; no assignor looks at it, as in Kafka.
Differs from Kafka:
    * Names of topics that take more than 1 MiB are INVALID_REQUEST; Kafka fails when it stores the member.
    * An expression of more than 10 000 characters, or of more than 2000 steps when it is compiled, is
      INVALID_REGULAR_EXPRESSION.
    * Expressions are resolved at once, and again when topics have changed; Kafka does it in the background.
    * Members are not stored: after a restart they are told UNKNOWN_MEMBER_ID and join again.
    * A static member that joins again under the member id it has is let in; Kafka answers
      UNRELEASED_INSTANCE_ID until its session is over.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.features import GROUP_VERSION
from odradek.group.consumer_heartbeat import Client
from odradek.group.consumer_protocol import answer_heartbeat
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


@answers(ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse)
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext, broker: Broker
) -> ConsumerGroupHeartbeatResponse:
    if broker.features.level(GROUP_VERSION) < 1:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "the consumer protocol is off")
    # InetAddress.toString: the name, which is not looked up, a slash, the address
    client = Client(context.client_id or "", f"/{context.connection.client_address}")
    return answer_heartbeat(broker.groups, request, context.api_version, client)
