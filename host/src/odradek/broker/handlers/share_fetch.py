"""ShareFetch v1-v2 (KIP-932).

Behavior:
    * Acknowledgements are taken and stored before records are acquired. Epoch -1 takes the last ones, then
      releases what the member still holds and ends the session; so does the end of the connection that opened
      it.
    * Session epoch 0 opens a session; what the member holds from an older one stays its own. A member need
      not have joined the group, but the group must know the partition.
    * Whole batches as stored, of which the member has got the acquired records only. ``max_bytes`` is shared
      out evenly; the first batch of a partition always comes. ``max_records`` is for all partitions together,
      and those that had records come last the next time.
    * If there are fewer bytes than ``min_bytes`` the answer waits, for ``max_wait_ms`` at most.
    * At epoch 0 the answer names every partition, else those with records, an error, or acknowledgements.
    * The first fetch of a partition decides where the group begins, by ``share.auto.offset.reset``.
Versions:
    * v2: ``share_acquire_mode`` 1 never gives more than ``max_records`` (KIP-1206); renewed locks (KIP-1222).
Differs from Kafka:
    * Records that are released, or whose member has lost its connection, wake waiting fetches. In Kafka they
      come when the wait ends.
    * An unknown acquire mode is INVALID_REQUEST; Kafka answers UNKNOWN_SERVER_ERROR.
    * Where a group begins to read is stored with its first fetch. In Kafka a group that begins at the end
      begins at the new end, if it acknowledges nothing before the broker fails.
    * The sessions of all members together have as many partitions as ``fetch.session.partitions.max`` allows;
      beyond that SHARE_SESSION_LIMIT_REACHED.
    * A throttled client still gets the records that it has acquired.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from odradek.broker.authorization import Rights
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.dispatch.throttling import (
    RESPONSE_SIZE_BYTES,
    Exchange,
    Throttle,
    charge_time,
    fetch_limit_bytes,
    longer,
)
from odradek.broker.share.acknowledging import Acknowledging
from odradek.broker.share.share_look import LookParams, ShareLook
from odradek.broker.share.share_wait import ShareWait
from odradek.broker.share_member import require_member
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.quota.quota_managers import QuotaManagers
from odradek.share.acquisition import Wanted
from odradek.share.deliveries import PartitionKey
from odradek.share.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey, ShareSession
from odradek.waiting.deferred import Deferred
from odradek.waiting.steps import Step
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.share_fetch import (
    ShareFetchRequest,
    ShareFetchResponse,
    SharePartition,
    ShareTopic,
)

READ_COMMITTED = "read_committed"
Begun = ShareFetchResponse | ShareLook
"""The answer, or what a fetch waits for."""
RECORD_LIMIT = 1
"""The acquire mode in which ``max_records`` is never exceeded."""


def charge(exchange: Exchange, quotas: QuotaManagers) -> Throttle:
    """Charge for the time, and for the bytes of the response."""
    time = charge_time(exchange, quotas)
    if exchange.response is None or not quotas.fetch.is_enabled:
        return time  # None: the client has left before there was one
    exchange.body = exchange.write(exchange.response)
    size = len(exchange.body) + RESPONSE_SIZE_BYTES
    time_ms = quotas.fetch.record_and_throttle_ms(*exchange.client, size, exchange.now_ms)
    return longer(Throttle(quotas.fetch, time_ms), time)


def check(request: ShareFetchRequest) -> None:
    """Check what does not depend on the session.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    limits = request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms
    if request.is_renew_ack and any(limits):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a request that renews locks fetches nothing")
    acknowledges = any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions)
    if request.share_session_epoch == INITIAL_EPOCH and acknowledges:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a new session has nothing to acknowledge")


def session_of(
    request: ShareFetchRequest, key: SessionKey, context: RequestContext, broker: Broker
) -> ShareSession:
    """The session of a request, with the partitions that it names.

    Raises:
        ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED.
    """
    sessions = broker.shares.sessions
    if request.share_session_epoch == INITIAL_EPOCH:
        session = sessions.opened(key, context.connection.connection_id)
    else:
        session = sessions.continued(key, request.share_session_epoch)
    if request.share_session_epoch == FINAL_EPOCH:
        return session
    for topic in request.topics:
        known = broker.topics.by_id.get(topic.topic_id)
        for partition in topic.partitions:
            name = None if known is None else known.name
            sessions.add(session, (topic.topic_id, partition.partition_index), name)
    for forgotten in request.forgotten_topics_data:
        for index in forgotten.partitions:
            sessions.forget(session, (forgotten.topic_id, index))
    return session


def response_of(
    rows: dict[PartitionKey, SharePartition], acknowledged: dict[PartitionKey, ApiError | None], lock_ms: int
) -> ShareFetchResponse:
    """The response with all rows, and the results of acknowledgements."""
    for key, error in acknowledged.items():
        row = rows.setdefault(key, SharePartition(partition_index=key[1]))
        if error is not None:
            row.acknowledge_error_code, row.acknowledge_error_message = error.code, error.message or None
    topics: dict[bytes, ShareTopic] = {}
    for (topic_id, _), row in rows.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ShareTopic(topic_id=topic_id)
        topic.partitions.append(row)
    return ShareFetchResponse(acquisition_lock_timeout_ms=lock_ms, responses=list(topics.values()))


def look_params(request: ShareFetchRequest, context: RequestContext, broker: Broker) -> LookParams:
    """The limits of a request, within those of its group."""
    config = broker.shares.config(request.group_id or "")
    return LookParams(
        Wanted(request.max_records, request.batch_size, request.share_acquire_mode == RECORD_LIMIT),
        min(request.max_bytes, fetch_limit_bytes(context, broker)),
        min(request.min_bytes, request.max_bytes),
        broker.shares.limits(request.group_id or ""),
        config.auto_offset_reset,
        config.isolation_level == READ_COMMITTED,
    )


@answers(ShareFetchRequest, charge=charge)
def share_fetch(
    request: ShareFetchRequest, context: RequestContext, broker: Broker
) -> ShareFetchResponse | Deferred[ShareFetchResponse]:
    key = require_member(request, context, broker)
    check(request)
    try:
        session = session_of(request, key, context, broker)
    except ApiError as error:
        if error.code is not ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            raise
        return refused_later(error, request.max_wait_ms, broker)
    if request.share_acquire_mode not in (0, RECORD_LIMIT):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"unknown acquire mode {request.share_acquire_mode}")
    rights = broker.authorization.rights(context, AclOperation.READ, ResourceType.TOPIC)
    fetching = ShareFetching(request, broker, session, rights, look_params(request, context, broker))
    begun: Begun | Deferred[Begun] = broker.steps.answer(fetching.begin(), droppable=True)
    return begun.then(fetching.go_on) if isinstance(begun, Deferred) else fetching.go_on(begun)


@dataclass(slots=True, eq=False)
class ShareFetching:
    """One fetch of a session."""

    request: ShareFetchRequest
    broker: Broker
    session: ShareSession
    rights: Rights
    params: LookParams
    acknowledged: dict[PartitionKey, ApiError | None] = field(default_factory=dict)

    def begin(self) -> Generator[Step, Any, Begun]:
        """Take the acknowledgements. Answer, or find out what to wait for."""
        request, shares, topics = self.request, self.broker.shares, self.broker.topics
        now_ms = self.broker.clock.monotonic_ms()
        self.acknowledged = yield from Acknowledging(
            shares, topics, self.rights, *self.session.key, now_ms, may_renew=request.is_renew_ack
        ).all(request.topics)
        if request.share_session_epoch == FINAL_EPOCH:
            shares.close(self.session)
        if request.share_session_epoch == FINAL_EPOCH or request.is_renew_ack:
            return self.response({})
        look = yield from self.look()
        if request.max_wait_ms > 0 and not look.is_enough:
            return look
        return self.response((yield from look.acquire()))

    def go_on(self, found: Begun) -> ShareFetchResponse | Deferred[ShareFetchResponse]:
        """Wait, if there was not enough."""
        if isinstance(found, ShareFetchResponse):
            return found
        broker = self.broker
        waiting = ShareWait(broker.clock, broker.timer).start(found, self.request.max_wait_ms)
        return waiting.then(lambda _: broker.steps.answer(self.again(), droppable=True))

    def again(self) -> Generator[Step, Any, ShareFetchResponse]:
        """Answer with what is there after the wait."""
        look = yield from self.look()
        return self.response((yield from look.acquire()))

    def look(self) -> Generator[Step, Any, ShareLook]:
        """Look at all partitions."""
        broker = self.broker
        look = ShareLook(broker.shares, broker.topics, broker.clock, self.rights, self.session, self.params)
        yield from look.all()
        return look

    def response(self, rows: dict[PartitionKey, SharePartition]) -> ShareFetchResponse:
        """The response with what the member gets. At epoch 0 it names every partition."""
        if self.request.share_session_epoch == INITIAL_EPOCH:
            for each in self.session.partitions:
                rows.setdefault(each, SharePartition(partition_index=each[1]))
        return response_of(rows, self.acknowledged, self.params.limits.lock_ms)


def refused_later(error: ApiError, wait_ms: int, broker: Broker) -> Deferred[ShareFetchResponse]:
    """An error that the client gets after the wait, so that it does not come again at once."""
    deferred = Deferred[ShareFetchResponse]()
    task = broker.timer.schedule(broker.clock.monotonic_ms() + wait_ms, lambda: deferred.complete(error))
    deferred.abandon = task.cancel
    return deferred
