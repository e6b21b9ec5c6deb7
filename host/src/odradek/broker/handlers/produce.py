"""Produce v3-v13.

Behavior:
    * Each partition's batch is checked and appended separately (``log/``) and is in the page cache before the
      answer. If ``flush.messages`` of the topic is reached, the answer waits for the disk.
    * All records are validated, as in Kafka. A request that is more than a few milliseconds of work waits for
      a worker process. More records in a batch than ``produce.batch.max.records`` are MESSAGE_TOO_LARGE.
    * A batch with invalid records is refused completely; from v8 on the answer lists the first thousand of
      them (RecordErrors, KIP-467).
    * The last mention of a partition counts.
    * With acks=0 there is no answer: if a partition is refused the connection is closed, the only possible
      signal.
    * A transactional batch needs its producer's transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED). Its
      partition must be in the producer's transaction, which is checked for the first batch: otherwise
      INVALID_TXN_STATE up to v10, TRANSACTION_ABORTABLE from v11 on. A fenced producer gets
      INVALID_PRODUCER_EPOCH. A batch outside its producer's open transaction is INVALID_TXN_STATE.
    * The bytes of a request are charged to the producer quota, even if it fails.
Versions:
    * v12: the first batch adds the partition to the transaction (KIP-890), and a producer that is new to the
      partition must begin with sequence 0, else OUT_OF_ORDER_SEQUENCE_NUMBER.
    * v0-v2 are advertised for librdkafka (see ApiVersions) and refused by closing. v13: topics by id.
    * zstd needs v7.
Ignored fields:
    * TimeoutMs: there are no replicas to wait for.
Differs from Kafka:
    * The first batch of a producer id beyond ``producer.ids.max`` is POLICY_VIOLATION.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from odradek.broker.authorization import Rights
from odradek.broker.broker import Broker
from odradek.broker.dispatch.refusals import refusal_of_each
from odradek.broker.dispatch.routes import CloseConnection, answers
from odradek.broker.dispatch.throttling import charge_produce
from odradek.broker.flush_wait import FlushWait
from odradek.broker.produce_batches import (
    TOPIC_ID_VERSION,
    ProduceBatches,
    is_transactional,
    last_of_each,
)
from odradek.broker.topics import INTERNAL_TOPICS, Topic
from odradek.broker.transactions.transaction_join import TransactionJoin
from odradek.log.batch_work import Prepared
from odradek.log.log_validator import InvalidRecords, OpeningBudget, PreparedBatch
from odradek.log.partition_log import PartitionLog
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred, after
from odradek.waiting.steps import Step
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from odradek.wire.uuid_text import uuid_text

ProduceAnswer = ProduceResponse | None
"""None with acks=0."""

WRITE, TOPIC = AclOperation.WRITE, ResourceType.TOPIC
THIS_LEADER = LeaderIdAndEpoch()
"""Clients are told of no other leader: there is none."""


refuse_each = refusal_of_each(ProduceRequest, "topic_data", "responses", base_offset=-1)


def refuse(request: ProduceRequest, code: ErrorCode, message: str | None) -> Any:
    """The same error for every partition: there is no room for one at the top.

    Raises:
        CloseConnection: Nobody waits for an answer, and one would be taken for that of the next request.
    """
    if request.acks == 0:
        raise CloseConnection(f"acks=0 and {code.name}")
    return refuse_each(request, code, message)


def refused(index: int, code: ErrorCode, message: str | None) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=code, base_offset=-1, error_message=message)


def refusal_of(index: int, error: ApiError, log: PartitionLog) -> PartitionProduceResponse:
    """The answer to a refused batch, with the errors of its records (KIP-467)."""
    response = refused(index, error.code, error.message)
    if isinstance(error, InvalidRecords):
        response.log_start_offset = log.log_start_offset
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=each.batch_index, batch_index_error_message=each.message)
            for each in error.record_errors
        ]
    return response


@answers(ProduceRequest, refusal=refuse, charge=charge_produce)
def produce(
    request: ProduceRequest, context: RequestContext, broker: Broker
) -> ProduceAnswer | Deferred[ProduceAnswer]:
    writes = broker.authorization.rights(context, WRITE, TOPIC)
    work = ProduceWork(request, context, broker, writes)
    # The request is not kept while the answer waits for the disk.
    return after(broker.steps.answer(produce_all(work)), work.flushes.before)


@dataclass(slots=True)
class ProduceWork:
    """The work of one request."""

    request: ProduceRequest
    context: RequestContext
    broker: Broker
    writes: Rights
    flushes: FlushWait = field(default_factory=FlushWait)

    def budget(self) -> OpeningBudget:
        """The bounds of the work that validates the batches on the event loop."""
        settings = self.broker.settings
        return OpeningBudget(
            settings.produce_inline_bytes,
            settings.produce_batch_max_records,
            settings.produce_decompressed_max_bytes,
        )

    def find(self, data: TopicProduceData) -> tuple[Topic | None, ErrorCode]:
        """The topic, and the error if there is none that the caller may write to."""
        topics = self.broker.topics
        if self.context.api_version >= TOPIC_ID_VERSION:
            topic = topics.by_id.get(data.topic_id)
            if topic is not None and not self.writes.allows(topic.name):
                return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return topic, ErrorCode.UNKNOWN_TOPIC_ID
        if not self.writes.allows(data.name):
            return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topic = topics.by_name.get(data.name)
        if topic is None and data.name in INTERNAL_TOPICS:
            return None, ErrorCode.INVALID_TOPIC_EXCEPTION
        return topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def produce_all(work: ProduceWork) -> Generator[Step, Any, ProduceAnswer]:
    """Validate all batches, then append them, partition by partition."""
    batches = ProduceBatches(work.broker.offload, work.budget())
    if work.broker.authorization.is_enabled:
        for data in work.request.topic_data:
            if check_transactional(work, data):
                break
            yield None
    yield from batches.prepare(work.request, work.context, work.find)
    return (yield from append_all(work, batches))


def append_all(work: ProduceWork, batches: ProduceBatches) -> Generator[Step, Any, ProduceAnswer]:
    """Append all batches, after those that are validated elsewhere."""
    if batches.waiting:
        yield batches.finish()
    response = ProduceResponse()
    for number, data in enumerate(work.request.topic_data):
        answered = TopicProduceResponse(name=data.name, topic_id=data.topic_id)
        for place, partition in enumerate(last_of_each(data)):
            if place or number:
                yield None
            topic, unknown = work.find(data)
            answer = (
                refused(partition.index, unknown, None)
                if topic is None
                else append_outcome(work, topic, partition.index, batches.outcomes.get((number, place)))
            )
            if answer.error_code:
                work.broker.tell_topic_error(work.context, answer.error_code, topic_name(data, topic))
            answered.partition_responses.append(answer)
        response.responses.append(answered)
    return finished(work.request, response)


def topic_name(data: TopicProduceData, topic: Topic | None) -> str:
    """The name of a topic in a request; its id if there is no such topic."""
    return data.name or (uuid_text(data.topic_id) if topic is None else topic.name)


def append_outcome(
    work: ProduceWork, topic: Topic, index: int, outcome: Prepared | None
) -> PartitionProduceResponse:
    """Append one partition's batch, if it is valid and the partition still exists."""
    log = topic.partition(index)
    if log is None or outcome is None:
        return refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    if isinstance(outcome, ApiError):
        return refusal_of(index, outcome, log)
    try:
        return append_batch(work, topic, log, index, outcome)
    except ApiError as error:
        return refusal_of(index, error, log)


def append_batch(
    work: ProduceWork, topic: Topic, log: PartitionLog, index: int, batch: PreparedBatch
) -> PartitionProduceResponse:
    """Append a valid batch.

    Raises:
        ApiError: The producer may not append it, or the disk failed.
    """
    join = None
    if batch.header.is_transactional:
        request, transactions = work.request, work.broker.transactions
        transaction = TransactionJoin(request.transactional_id, work.context.api_version, transactions)
        join = partial(transaction.join, (topic.name, index), log)
    appended = log.append_prepared(batch, work.context.received_ms, join)
    answer = PartitionProduceResponse(
        index=index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
        current_leader=THIS_LEADER,
    )
    if log.config.flushes:
        work.flushes.appended(log, answer)
    if work.broker.uses is not None:
        work.broker.uses.written(work.context, topic.name)
    return answer


def finished(request: ProduceRequest, response: ProduceResponse) -> ProduceAnswer:
    """The answer to the client; None if it wants none.

    Raises:
        CloseConnection: A partition was refused, and the client gets no answer.
    """
    if request.acks:
        return response
    check_appended(response)
    return None


def check_appended(response: ProduceResponse) -> None:
    """Check that no partition was refused, where the client gets no answer.

    Raises:
        CloseConnection: One was.
    """
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise CloseConnection(f"acks=0 and {ErrorCode(partition.error_code).name}")


def check_transactional(work: ProduceWork, data: TopicProduceData) -> bool:
    """Check that the caller may write with its transactional id, if a batch of a topic is transactional.

    Returns:
        Whether one is.

    Raises:
        ApiError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
    """
    if not any(is_transactional(partition.records or b"") for partition in data.partition_data):
        return False
    name, kind = work.request.transactional_id, ResourceType.TRANSACTIONAL_ID
    authorization = work.broker.authorization
    if name is None or not authorization.allows(work.context, WRITE, kind, name):
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return True
