"""AddPartitionsToTxn v0-v5.

Behavior:
    * Adds partitions to the producer's transaction; the first ones begin it. All or none: if one does not
      exist it is UNKNOWN_TOPIC_OR_PARTITION and the others are OPERATION_NOT_ATTEMPTED.
    * INVALID_PRODUCER_ID_MAPPING for another producer id, PRODUCER_FENCED for another epoch,
      CONCURRENT_TRANSACTIONS while the previous transaction is being ended.
Versions:
    * v2: PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH.
    * v4 is for brokers: several transactions, and checks whether partitions are in them (VerifyOnly). v5:
      TRANSACTION_ABORTABLE for a partition that is not; before, INVALID_TXN_STATE.
Differs from Kafka:
    * Partitions beyond ``transaction.partitions.max`` are POLICY_VIOLATION.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from odradek.broker.authorization import Rights
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.topics import INTERNAL_TOPICS
from odradek.broker.transactions.transaction_errors import older_code
from odradek.broker.transactions.transaction_participants import OFFSETS_PARTITIONS, OFFSETS_TOPIC
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.transaction.transaction_metadata import ProducerIdAndEpoch, TopicPartition
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

FENCED_VERSION = 2
BATCHED_VERSION = 4
ABORTABLE_VERSION = 5

Outcome = Callable[[TopicPartition], ErrorCode]
"""The code of each partition."""


def refuse(
    request: AddPartitionsToTxnRequest, code: ErrorCode, _message: str | None
) -> AddPartitionsToTxnResponse:
    """The same error for every partition, and at the top for versions that have room for it."""
    return AddPartitionsToTxnResponse(
        error_code=code,
        results_by_topic_v3_and_below=results(request.v3_and_below_topics, lambda _: code),
    )


@answers(AddPartitionsToTxnRequest, refusal=refuse, each="results_by_transaction")
def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: RequestContext, broker: Broker
) -> Generator[AddPartitionsToTxnResult | None, None, AddPartitionsToTxnResponse]:
    if context.api_version >= BATCHED_VERSION:
        broker.authorization.require_on_cluster(context, AclOperation.CLUSTER_ACTION)
        for each in request.transactions:
            code_of = yield from outcome(each, context, broker)
            result = AddPartitionsToTxnResult(transactional_id=each.transactional_id)
            for topic in each.topics:
                result.topic_results += results([topic], code_of)
                yield None
            yield result
        return AddPartitionsToTxnResponse()
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    broker.authorization.require(
        context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, only.transactional_id
    )
    rights = broker.authorization.rights(context, AclOperation.WRITE, ResourceType.TOPIC)
    code_of = yield from outcome(only, context, broker, rights)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results(only.topics, code_of))


def results(topics: list[AddPartitionsToTxnTopic], code_of: Outcome) -> list[AddPartitionsToTxnTopicResult]:
    """The answer in the shape of the request."""
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=code_of((topic.name, index))
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def outcome(
    wanted: AddPartitionsToTxnTransaction,
    context: RequestContext,
    broker: Broker,
    rights: Rights | None = None,
) -> Generator[None, None, Outcome]:
    """Carry out one transaction's part of the request; a step for each topic.

    Args:
        wanted: The transaction.
        context: The caller.
        broker: The broker that coordinates it.
        rights: The topics that a client may write to; None for another broker.
    """
    producer = ProducerIdAndEpoch(wanted.producer_id, wanted.producer_epoch)
    if wanted.verify_only:
        return lambda partition: verified(wanted.transactional_id, producer, partition, context, broker)
    partitions = frozenset((topic.name, index) for topic in wanted.topics for index in topic.partitions)
    faults: dict[TopicPartition, ErrorCode] = {}
    for topic in wanted.topics:
        allowed = rights is None or (topic.name not in INTERNAL_TOPICS and rights.allows(topic.name))
        for index in topic.partitions:
            partition = topic.name, index
            if not allowed:
                faults[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not exists(partition, broker):
                faults[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        yield
    if faults:
        return lambda partition: faults.get(partition, ErrorCode.OPERATION_NOT_ATTEMPTED)
    code = ErrorCode.NONE
    try:
        broker.transactions.add_partitions(wanted.transactional_id, producer, partitions)
    except ApiError as error:
        code = older_code(error, context, FENCED_VERSION).code
    return lambda _: code


def exists(partition: TopicPartition, broker: Broker) -> bool:
    name, index = partition
    if name == OFFSETS_TOPIC:
        return 0 <= index < OFFSETS_PARTITIONS
    topic = broker.topics.named(name)
    return topic is not None and topic.partition(index) is not None


def verified(
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partition: TopicPartition,
    context: RequestContext,
    broker: Broker,
) -> ErrorCode:
    """Whether a partition is in the transaction."""
    try:
        broker.transactions.verify_partition(transactional_id, producer, partition)
    except ApiError as error:
        if error.code is ErrorCode.TRANSACTION_ABORTABLE and context.api_version < ABORTABLE_VERSION:
            return ErrorCode.INVALID_TXN_STATE
        return error.code
    return ErrorCode.NONE
