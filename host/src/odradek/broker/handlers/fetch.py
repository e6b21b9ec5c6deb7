"""Fetch v4-v18.

Behavior:
    * Whole batches as stored, from the one that holds the offset; the first batch of an answer is sent even
      when it is larger than every limit (KIP-74).
    * When there is less than ``min_bytes`` (or than the limit, if that is smaller) the answer waits for an
      append or for ``max_wait_ms``.
    * An error in any partition answers at once; so does a request without partitions.
    * A partition that is named twice is answered once.
Versions:
    * v9: leader epochs are checked. v12: so is the epoch of the last fetched record; it cannot diverge,
      there is one. v13: topics by id.
Ignored fields:
    * RackId, ReplicaState, IsolationLevel (without transactions everything is stable).
Differs from Kafka:
    * No fetch session is opened: every answer has session id 0, so clients send whole requests (KIP-227
      lets the broker decide); a request that goes on with a session is FETCH_SESSION_ID_NOT_FOUND.
    * An unknown partition answers at once; Kafka lets the others wait first.
    * A negative limit is none at all; Kafka answers UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.broker.broker import Broker
from odradek.broker.deferred import Deferred
from odradek.broker.routing import answers
from odradek.broker.topics import LEADER_EPOCH, NO_EPOCH, check_leader_epoch
from odradek.clock import TimerTask
from odradek.log.partition_log import PartitionLog
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

TOPIC_ID_VERSION = 13
FULL_REQUESTS = (-1, 0)
"""Session epochs of a request that names all its partitions: without a session, or to open one."""
MAX_WAIT_MS = 300_000
"""Nobody waits longer: a larger ``max_wait_ms`` is cut."""


def refuse(request: FetchRequest, code: ErrorCode, _message: str | None) -> FetchResponse:
    """The same error for every partition, and at the top for versions that have room for it."""
    responses = [
        FetchableTopicResponse(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[refused(partition.partition, code) for partition in topic.partitions],
        )
        for topic in request.topics
    ]
    return FetchResponse(error_code=code, responses=responses)


def refused(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(partition_index=index, error_code=code, high_watermark=-1, aborted_transactions=None)


@answers(FetchRequest, FetchResponse, refusal=refuse)
def fetch(request: FetchRequest, context: RequestContext, broker: Broker) -> FetchResponse | Deferred:
    if request.session_epoch not in FULL_REQUESTS:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    read = Read(request, context.api_version, broker)
    response = read.response()
    missing_bytes = min(request.min_bytes, read.max_bytes) - read.bytes_read
    if read.failed or not read.logs or missing_bytes <= 0 or request.max_wait_ms <= 0:
        return response
    return LongPoll(request, context.api_version, broker, missing_bytes, read.logs).start()


@dataclass(slots=True)
class Read:
    """One pass over the partitions of a request."""

    request: FetchRequest
    version: int
    broker: Broker
    logs: list[PartitionLog] = field(default_factory=list)
    bytes_read: int = 0
    failed: bool = False

    @property
    def max_bytes(self) -> int:
        """Of the whole response; zero or less lets the first batch through."""
        return min(self.request.max_bytes, self.broker.settings.fetch_max_bytes)

    def response(self) -> FetchResponse:
        """What is there now."""
        responses = []
        for topic in self.request.topics:
            wanted = {partition.partition: partition for partition in topic.partitions}
            partitions = [
                self.partition(topic.topic, topic.topic_id, partition) for partition in wanted.values()
            ]
            responses.append(
                FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions)
            )
        return FetchResponse(responses=responses)

    def partition(self, name: str, topic_id: bytes, wanted: FetchPartition) -> PartitionData:
        """One partition's records, or its error."""
        try:
            log = self.log(name, topic_id, wanted)
            records = self.records(log, wanted)
        except ApiError as error:
            self.failed = True
            return refused(wanted.partition, error.code)
        self.logs.append(log)
        self.bytes_read += len(records)
        return PartitionData(
            partition_index=wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.high_watermark,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=records,
        )

    def log(self, name: str, topic_id: bytes, wanted: FetchPartition) -> PartitionLog:
        """The log that is meant."""
        if self.version >= TOPIC_ID_VERSION:
            log = self.broker.topics.log_of_id(topic_id, wanted.partition)
        else:
            log = self.broker.topics.log(name, wanted.partition)
        check_leader_epoch(max(wanted.current_leader_epoch, NO_EPOCH))
        return log

    def records(self, log: PartitionLog, wanted: FetchPartition) -> bytes:
        """Whole batches within what is left of the limits."""
        if not log.log_start_offset <= wanted.fetch_offset <= log.log_end_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if wanted.last_fetched_epoch > LEADER_EPOCH:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)  # an epoch that never was has no end to go back to
        max_bytes = max(min(self.max_bytes - self.bytes_read, wanted.partition_max_bytes), 0)
        return log.read(wanted.fetch_offset, max_bytes, min_one_message=self.bytes_read == 0)


@dataclass(slots=True, eq=False)
class LongPoll:
    """A fetch that waits: for enough bytes, or for its time to end. Kafka's DelayedFetch."""

    request: FetchRequest
    version: int
    broker: Broker
    missing_bytes: int
    logs: list[PartitionLog]
    deferred: Deferred = field(default_factory=Deferred)
    timeout: TimerTask | None = None

    def start(self) -> Deferred:
        """Wait for appends to ``logs``."""
        wait_ms = min(self.request.max_wait_ms, MAX_WAIT_MS)
        self.timeout = self.broker.timer.schedule(self.broker.clock.now_ms() + wait_ms, self.finish)
        for log in self.logs:
            log.listeners.add(self.appended)
        self.deferred.abandon = self.stop
        self.deferred.hurry = self.finish
        return self.deferred

    def appended(self, appended_bytes: int) -> None:
        """A log has grown, or was deleted (0 bytes)."""
        self.missing_bytes -= appended_bytes
        if self.missing_bytes <= 0 or appended_bytes == 0:
            self.finish()

    def finish(self) -> None:
        """Answer with what is there now."""
        self.stop()
        self.deferred.complete_by(Read(self.request, self.version, self.broker).response)

    def stop(self) -> None:
        """Wait no longer."""
        if self.timeout is not None:
            self.timeout.cancel()
        for log in self.logs:
            log.listeners.discard(self.appended)
