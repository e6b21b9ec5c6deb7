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
from functools import partial
from typing import Any

from odradek.broker.authorization import Rights
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import CloseConnection, answers
from odradek.broker.dispatch.throttling import charge_produce
from odradek.broker.flush_wait import FlushWait
from odradek.broker.produce_batches import TOPIC_ID_VERSION, ProduceBatches, is_transactional, last_of_each
from odradek.broker.topics import INTERNAL_TOPICS, Topic, Topics
from odradek.broker.transactions.transaction_join import TransactionJoin
from odradek.deferred import Deferred
from odradek.log.batch_work import Prepared
from odradek.log.log_validator import InvalidRecords, OpeningBudget
from odradek.log.partition_log import PartitionLog
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.steps import Step
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from odradek.wire.types import between

ProduceAnswer = ProduceResponse | None
"""None with acks=0."""

ALL_ACKS = (-1, 0, 1)


def refuse(request: ProduceRequest, code: ErrorCode, message: str | None) -> ProduceResponse:
    """The same error for every partition: there is no room for one at the top.

    Raises:
        CloseConnection: Nobody waits for an answer, and one would be taken for that of the next request.
    """
    if request.acks == 0:
        raise CloseConnection(f"acks=0 and {code.name}")
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    refused(partition.index, code, message) for partition in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def refused(index: int, code: ErrorCode, message: str | None) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=code, base_offset=-1, error_message=message)


def blamed(index: int, error: InvalidRecords, log: PartitionLog) -> PartitionProduceResponse:
    """The errors of a refused batch, record by record (KIP-467)."""
    response = refused(index, error.code, error.message)
    response.log_start_offset = log.log_start_offset
    response.record_errors = [
        BatchIndexAndErrorMessage(batch_index=record.batch_index, batch_index_error_message=record.message)
        for record in error.record_errors
    ]
    return response


@answers(ProduceRequest, ProduceResponse, advertised=between(0, 13), refusal=refuse, charge=charge_produce)
def produce(
    request: ProduceRequest, context: RequestContext, broker: Broker
) -> ProduceAnswer | Deferred[ProduceAnswer]:
    if request.acks not in ALL_ACKS:
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
    flushes = FlushWait()
    return broker.steps.answer(flushed(produce_all(request, context, broker, flushes), flushes))


def flushed(
    work: Generator[Step, Any, ProduceAnswer], flushes: FlushWait
) -> Generator[Step, Any, ProduceAnswer]:
    """Append, then wait until the records are on the disk. The request is not kept while waiting."""
    response = yield from work
    if response is not None and flushes.waiting:
        yield flushes.finish()
    return response


def produce_all(
    request: ProduceRequest, context: RequestContext, broker: Broker, flushes: FlushWait
) -> Generator[Step, Any, ProduceAnswer]:
    """Validate all batches, then append them, partition by partition."""
    settings = broker.settings
    budget = OpeningBudget(
        settings.produce_inline_records,
        settings.produce_inline_bytes,
        settings.produce_batch_max_records,
        settings.produce_decompressed_max_bytes,
    )
    batches = ProduceBatches(broker.offload, budget)
    writes = broker.authorization.rights(context, AclOperation.WRITE, ResourceType.TOPIC)
    found = partial(find, context.api_version, writes, broker.topics)
    if broker.authorization.is_enabled:
        yield from check_transactional(request, context, broker)
    yield from batches.prepare(request, context, found)
    if batches.waiting:
        yield batches.finish()
    transaction = TransactionJoin(request.transactional_id, context.api_version, broker.transactions)
    response = ProduceResponse()
    for number, data in enumerate(request.topic_data):
        answered = TopicProduceResponse(name=data.name, topic_id=data.topic_id)
        for place, partition in enumerate(last_of_each(data)):
            if place or number:
                yield None
            topic, unknown = found(data)
            answered.partition_responses.append(
                refused(partition.index, unknown, None)
                if topic is None
                else append_batch(
                    topic, partition, batches.outcomes.get((number, place)), transaction, flushes, context
                )
            )
        response.responses.append(answered)
    if request.acks == 0:
        check_appended(response)
        return None
    return response


def check_appended(response: ProduceResponse) -> None:
    """Check that no partition was refused, where the client gets no answer.

    Raises:
        CloseConnection: One was.
    """
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise CloseConnection(f"acks=0 and {ErrorCode(partition.error_code).name}")


def check_transactional(
    request: ProduceRequest, context: RequestContext, broker: Broker
) -> Generator[None, None, None]:
    """Check that the caller may write with its transactional id, if one of the batches is transactional.

    Raises:
        ApiError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
    """
    for data in request.topic_data:
        for partition in data.partition_data:
            if is_transactional(partition.records or b""):
                name = request.transactional_id
                kind = ResourceType.TRANSACTIONAL_ID
                if name is None or not broker.authorization.allows(context, AclOperation.WRITE, kind, name):
                    raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
                return
        yield


def find(
    version: int, writes: Rights, topics: Topics, data: TopicProduceData
) -> tuple[Topic | None, ErrorCode]:
    """The topic, and the error if there is none that the caller may write to."""
    if version >= TOPIC_ID_VERSION:
        topic = topics.by_id.get(data.topic_id)
        if topic is not None and not writes.allows(topic.name):
            return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return topic, ErrorCode.UNKNOWN_TOPIC_ID
    if not writes.allows(data.name):
        return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = topics.named(data.name)
    if topic is None and data.name in INTERNAL_TOPICS:
        return None, ErrorCode.INVALID_TOPIC_EXCEPTION
    return topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def append_batch(
    topic: Topic,
    data: PartitionProduceData,
    batch: Prepared | None,
    transaction: TransactionJoin,
    flushes: FlushWait,
    context: RequestContext,
) -> PartitionProduceResponse:
    """Append one partition's batch."""
    log = topic.partition(data.index)
    if log is None or batch is None:
        return refused(data.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    if isinstance(batch, InvalidRecords):
        return blamed(data.index, batch, log)
    if isinstance(batch, ApiError):
        return refused(data.index, batch.code, batch.message)
    try:
        appended = log.append_prepared(
            batch, context.received_ms, partial(transaction.join, (topic.name, data.index), log)
        )
    except ApiError as error:
        return refused(data.index, error.code, error.message)
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )
    flushes.appended(log, answer)
    return answer
