"""Fetch v4-v18.

Behavior:
    * Whole batches as stored, from the one that contains the offset. The first batch of an answer is sent
      even if it is larger than every limit (KIP-74).
    * Rights are checked once per request: one that is withdrawn takes effect with the next request, also
      within a session.
    * If there are fewer bytes than ``min_bytes`` (or than the limit, if that is smaller) the answer waits for
      appends or for ``max_wait_ms``. An error of a partition is answered at once, and so is a request without
      any known partition.
    * Isolation level 1 stops before the first open transaction, and lists the aborted ones.
    * A partition that is named twice is answered once.
    * Session epoch 0 opens a fetch session (KIP-227) if there is room; from then on an answer only has the
      partitions that changed. Partitions that had records move to the end, so that none starves under
      ``max_bytes``.
    * A consumer gets no more bytes at once than its quota grants in all windows. While it is throttled its
      answer is empty, and its session does not change.
    * A replica (replica id 0 or higher) is only subject to the replication quota, for partitions that are
      marked as throttled.
Versions:
    * v7: sessions. v9: leader epochs are checked. v12: so is the epoch of the last fetched record; it cannot
      diverge, because there is only one. v13: topics by id; a session cannot switch between names and ids.
Ignored fields:
    * RackId; the epoch in ReplicaState: there are no replicas.
Differs from Kafka:
    * A negative limit means no limit; Kafka answers UNKNOWN_SERVER_ERROR.
    * One answer has records of at most 500 partitions.
    * The sessions of all clients together hold 500 000 partitions; beyond that a client gets no session. One
      session has 20 000 at most, then it is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from odradek.broker.authorization import EVERYTHING, NOTHING, Rights
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.dispatch.throttling import (
    Draft,
    Exchange,
    Throttle,
    charge_exempt,
    charge_fetch,
    fetch_limit_bytes,
)
from odradek.broker.fetch.fetch_context import FetchContext, Partitions, open_context
from odradek.broker.fetch.fetch_read import READ_COMMITTED, Read, ReadParams, unread
from odradek.broker.fetch.long_poll import LongPoll
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.quota.quota_managers import QuotaManagers
from odradek.waiting.deferred import Deferred
from odradek.waiting.steps import Step
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse

REPLICA_STATE_VERSION = 15
AT_A_TIME = 500
"""The most partitions that are read in one turn of the loop: one to two milliseconds of work."""


def refuse(request: FetchRequest, code: ErrorCode, _message: str | None) -> FetchResponse:
    """The same error at the top for versions that have room for it, and for every partition in versions that
    name topics. Later versions have it only at the top, as in Kafka.
    """
    responses = [
        FetchableTopicResponse(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[unread(partition.partition, code) for partition in topic.partitions],
        )
        for topic in request.topics
        if topic.topic
    ]
    return FetchResponse(error_code=code, responses=responses)


def is_replica(request: FetchRequest, version: int) -> bool:
    """Whether the request comes from another broker."""
    return (request.replica_id if version < REPLICA_STATE_VERSION else request.replica_state.replica_id) >= 0


def charge(exchange: Exchange, quotas: QuotaManagers) -> Throttle:
    """Charge a consumer. Replicas have their own quota."""
    replica = is_replica(exchange.request, exchange.context.api_version)
    return (charge_exempt if replica else charge_fetch)(exchange, quotas)


def read_params(request: FetchRequest, context: RequestContext, broker: Broker, replica: bool) -> ReadParams:
    """The limits of a request, within the host's own, and the quota that it is subject to.

    Raises:
        ApiError: UNKNOWN_SERVER_ERROR for an unknown isolation level, as in Kafka.
    """
    if request.isolation_level not in (0, READ_COMMITTED):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    limit_bytes = broker.settings.fetch_max_bytes if replica else fetch_limit_bytes(context, broker)
    return ReadParams(
        context.api_version,
        min(request.max_bytes, limit_bytes),
        request.isolation_level == READ_COMMITTED,
        broker.quotas.leader if replica else None,
    )


def read_rights(context: RequestContext, broker: Broker, replica: bool) -> Rights:
    """The topics that the caller may read; another broker needs a right to the cluster."""
    if not replica:
        return broker.authorization.rights(context, AclOperation.READ, ResourceType.TOPIC)
    allowed = broker.authorization.allows_on_cluster(context, AclOperation.CLUSTER_ACTION)
    return EVERYTHING if allowed else NOTHING


def note(
    request: FetchRequest, context: RequestContext, broker: Broker, asked: FetchContext, rights: Rights
) -> None:
    """Tell those that want to know who reads what."""
    if broker.fetch_reads is not None:
        broker.fetch_reads.note(request, context, asked)
    if broker.uses is not None:
        broker.uses.fetched(request, context, asked, rights)


@answers(FetchRequest, refusal=refuse, charge=charge)
def fetch(
    request: FetchRequest, context: RequestContext, broker: Broker
) -> FetchResponse | Draft | Deferred[FetchResponse | Draft]:
    version, topics, now_ms = context.api_version, broker.topics, broker.clock.monotonic_ms()
    replica = is_replica(request, version)
    params = read_params(request, context, broker, replica)
    try:
        asked = open_context(request, version, topics, broker.fetch_sessions, now_ms)
    except ApiError as error:
        return FetchResponse(error_code=error.code)
    rights = read_rights(context, broker, replica)
    note(request, context, broker, asked, rights)
    drafts = broker.quotas.is_enabled and not replica

    def read() -> Read:
        return Read(params, topics, rights).all(asked.partitions)

    def respond(found: Read) -> FetchResponse | Draft:
        rows = found.answers()
        if drafts:
            return Draft(
                asked.draft(rows), lambda: asked.respond(rows, broker.clock.monotonic_ms()), asked.throttled
            )
        if params.replication is not None:
            params.replication.record(found.replicated_bytes(params.replication))
        return asked.respond(rows, broker.clock.monotonic_ms())

    min_bytes = min(request.min_bytes, params.max_bytes)
    if len(asked.partitions) > AT_A_TIME:
        work = in_steps(
            asked.partitions, Read(params, topics, rights), min_bytes, request.max_wait_ms, broker
        )
        return broker.steps.answer(answered(work, respond), droppable=True)
    found = read()
    if request.max_wait_ms <= 0 or found.is_enough(min_bytes):
        return respond(found)
    poll = LongPoll(
        broker.clock,
        broker.timer,
        min_bytes,
        missing_bytes=min_bytes - found.bytes_read,
        logs=found.logs,
        read_committed=params.read_committed,
        again=read,
        respond=respond,
    )
    return poll.start(request.max_wait_ms)


def answered(
    work: Generator[Step, Any, Read], respond: Callable[[Read], FetchResponse | Draft]
) -> Generator[Step, Any, FetchResponse | Draft]:
    """The response to a fetch that is read in steps."""
    return respond((yield from work))


def in_steps(
    partitions: Partitions, found: Read, min_bytes: int, max_wait_ms: int, broker: Broker
) -> Generator[Step, Any, Read]:
    """Read many partitions; wait for more bytes, like a smaller fetch, if there are too few."""
    yield from found.in_steps(partitions)
    if max_wait_ms <= 0 or found.is_enough(min_bytes):
        return found
    params, topics, rights = found.params, found.topics, found.rights
    # The poll only wakes this work, which then reads again.
    poll = LongPoll(
        broker.clock,
        broker.timer,
        min_bytes,
        missing_bytes=min_bytes - found.bytes_read,
        logs=found.logs,
        read_committed=params.read_committed,
        again=lambda: Read(params, topics, rights, failed=True),
        respond=lambda _: None,
    )
    del found  # a waiting fetch keeps no records
    try:
        yield poll.start(max_wait_ms)
    finally:
        poll.stop()
    found = Read(params, topics, rights)
    yield from found.in_steps(partitions)
    return found
