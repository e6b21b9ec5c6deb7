"""ShareAcknowledge v1-v2 (KIP-932).

Behavior:
    * The acknowledgements of a partition are taken all or none. They are stored before the answer: those that
      were answered survive kill -9. A renewed lock is not stored.
    * Epoch -1 closes the session and releases everything that the member holds.
    * A request uses up an epoch of its session; it need not name partitions of the session.
    * Ranges before the start offset are ignored.
    * Rejected records, and those that were delivered too often, are written to the dead-letter topic of the
      group (KIP-1191) if it has one, then archived; the answer does not wait for that. A topic that does not
      exist, that no group may use or that does not take the records leaves them out: they are archived all
      the same. With ``errors.deadletterqueue.auto.create.topics.enable`` the host makes it. A dead letter
      that is too large with the copy of its record is written without it.
Versions:
    * v2: renewed locks (KIP-1222), and the lock duration in the answer.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.share.acknowledging import Acknowledging
from odradek.broker.share_member import require_member
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.share.deliveries import PartitionKey
from odradek.share.share_sessions import FINAL_EPOCH, INITIAL_EPOCH
from odradek.waiting.deferred import Deferred
from odradek.waiting.steps import Step
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
) -> ShareAcknowledgeResponse | Deferred[ShareAcknowledgeResponse]:
    key = require_member(request, context, broker)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session = broker.shares.sessions.continued(key, request.share_session_epoch)
    acknowledging = Acknowledging(
        broker.shares,
        broker.topics,
        broker.authorization.rights(context, AclOperation.READ, ResourceType.TOPIC),
        *key,
        broker.clock.monotonic_ms(),
        may_renew=request.is_renew_ack,
    )

    def work() -> Generator[Step, Any, ShareAcknowledgeResponse]:
        results = yield from acknowledging.all(request.topics)
        if request.share_session_epoch == FINAL_EPOCH:
            broker.shares.close(session)
        return response_of(results, broker.shares.config(key[0]).record_lock_duration_ms)

    return broker.steps.answer(work())


def response_of(results: dict[PartitionKey, ApiError | None], lock_ms: int) -> ShareAcknowledgeResponse:
    """The response with the results of all partitions."""
    topics: dict[bytes, AcknowledgedTopic] = {}
    for (topic_id, index), error in results.items():
        topic = topics.setdefault(topic_id, AcknowledgedTopic(topic_id=topic_id))
        answer = AcknowledgedPartition(partition_index=index)
        if error is not None:
            answer.error_code, answer.error_message = error.code, error.message or None
        topic.partitions.append(answer)
    return ShareAcknowledgeResponse(acquisition_lock_timeout_ms=lock_ms, responses=list(topics.values()))
