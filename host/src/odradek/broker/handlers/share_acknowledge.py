"""ShareAcknowledge v1-v2 (KIP-932).

Behavior:
    * The acknowledgements of a partition are taken all or none. They are stored before the answer: those that
      were answered survive kill -9. A renewed lock is not stored.
    * Epoch -1 closes the session and releases everything that the member holds.
    * A request uses up an epoch of its session; it need not name partitions of the session.
    * Ranges before the start offset are ignored.
Versions:
    * v2: renewed locks (KIP-1222), and the lock duration in the answer.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.share.acknowledging import Acknowledging
from odradek.broker.share_member import require_member
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.share.share_sessions import FINAL_EPOCH, INITIAL_EPOCH
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.share_acknowledge import (
    AcknowledgedPartition,
    AcknowledgedTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)


@answers(ShareAcknowledgeRequest)
def share_acknowledge(
    request: ShareAcknowledgeRequest, context: RequestContext, broker: Broker
) -> ShareAcknowledgeResponse:
    group_id, member_id = require_member(request, context, broker)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session = broker.shares.sessions.continued((group_id, member_id), request.share_session_epoch)
    results = Acknowledging(
        broker.shares,
        broker.topics,
        broker.authorization.rights(context, AclOperation.READ, ResourceType.TOPIC),
        group_id,
        member_id,
        broker.clock.monotonic_ms(),
        may_renew=request.is_renew_ack,
    ).all(request.topics)
    if request.share_session_epoch == FINAL_EPOCH:
        broker.shares.close(session)
    topics: dict[bytes, AcknowledgedTopic] = {}
    for (topic_id, index), error in results.items():
        topic = topics.setdefault(topic_id, AcknowledgedTopic(topic_id=topic_id))
        answer = AcknowledgedPartition(partition_index=index)
        if error is not None:
            answer.error_code, answer.error_message = error.code, error.message or None
        topic.partitions.append(answer)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=broker.shares.config(group_id).record_lock_duration_ms,
        responses=list(topics.values()),
    )
