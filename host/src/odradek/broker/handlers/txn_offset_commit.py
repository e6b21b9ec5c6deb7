"""TxnOffsetCommit v0-v5.

Behavior:
    * The offsets become the group's when the producer's transaction commits. They are stored before the
      answer, and survive kill -9.
    * The group must be part of the transaction, else INVALID_TXN_STATE. INVALID_PRODUCER_EPOCH for a fenced
      producer, INVALID_PRODUCER_ID_MAPPING for another one, and COORDINATOR_NOT_AVAILABLE, which clients
      retry, while the transaction is being ended.
    * The empty group id is INVALID_GROUP_ID. The first offsets of an unknown group create it, unless the
      request names a generation: ILLEGAL_GENERATION. Membership is checked as in OffsetCommit, if the request
      names a member.
    * An unknown topic or partition is UNKNOWN_TOPIC_OR_PARTITION, whatever else is wrong with the request.
      OFFSET_METADATA_TOO_LARGE only affects its partition.
Versions:
    * v3: the request may name a member of the group (KIP-447). v5: it adds the group to the transaction
      (KIP-890), and CONCURRENT_TRANSACTIONS is answered as such.
Differs from Kafka:
    * The first offsets of a new group beyond ``groups.max`` are POLICY_VIOLATION, and so are new offsets
      beyond ``offsets.max`` or ``offsets.metadata.max.bytes``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from odradek.broker.broker import Broker
from odradek.broker.commit_verdict import CommitVerdict
from odradek.broker.dispatch.routes import answers
from odradek.broker.transactions.transaction_errors import verification_error
from odradek.broker.transactions.transaction_participants import offsets_partition
from odradek.group.committed_offset import CommittedOffset, TopicPartition
from odradek.group.group import Committer, PartitionCheck
from odradek.plugin.context import RequestContext
from odradek.transaction.transaction_metadata import ProducerIdAndEpoch
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

IMPLICIT_VERSION = 5


def refuse(request: TxnOffsetCommitRequest, code: ErrorCode, _message: str | None) -> TxnOffsetCommitResponse:
    """The same error for every partition: there is no room for one at the top."""
    every = answered(request, lambda _topic, _partition: code)
    return TxnOffsetCommitResponse(topics=[topic for topic in every if topic is not None])


def answered(
    request: TxnOffsetCommitRequest, code_of: Callable[[str, TxnOffsetCommitRequestPartition], ErrorCode]
) -> Iterator[TxnOffsetCommitResponseTopic | None]:
    """An answer for each topic, after None for each of its partitions."""
    for topic in request.topics:
        result = TxnOffsetCommitResponseTopic(name=topic.name)
        for partition in topic.partitions:
            result.partitions.append(
                TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code_of(topic.name, partition)
                )
            )
            yield None
        yield result


@answers(TxnOffsetCommitRequest, TxnOffsetCommitResponse, refusal=refuse, each="topics")
def txn_offset_commit(
    request: TxnOffsetCommitRequest, context: RequestContext, broker: Broker
) -> Generator[TxnOffsetCommitResponseTopic | None, None, TxnOffsetCommitResponse]:
    verdict = CommitVerdict(lambda: admitted(request, context.api_version, broker))
    offsets: dict[TopicPartition, CommittedOffset] = {}
    room = broker.groups.offsets.room(request.group_id, request.producer_id)

    def accept(topic: str, partition: TxnOffsetCommitRequestPartition) -> ErrorCode:
        try:
            key, offset = checked(topic, partition, verdict, broker)
            room.take(key, offset.metadata)
        except ApiError as error:
            return error.code
        offsets[key] = offset
        return ErrorCode.NONE

    begun = broker.steps.turns
    yield from answered(request, accept)
    if offsets and broker.steps.turns != begun:
        # The group, the transaction and the topics may have changed in the meantime.
        admitted(request, context.api_version, broker)
        offsets = {key: offset for key, offset in offsets.items() if key[0] in broker.topics.by_id}
    if offsets:
        broker.groups.offsets.add_pending(request.producer_id, request.group_id, offsets)
    return TxnOffsetCommitResponse()


def admitted(request: TxnOffsetCommitRequest, version: int, broker: Broker) -> PartitionCheck | None:
    """Check that the transaction and the group take offsets from this client. Returns a check for each
    partition, or None.

    Raises:
        ApiError: INVALID_GROUP_ID, or one of `join` and `check_group`.
    """
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    broker.check_new_group(request.group_id)
    join(request, version, broker)
    return check_group(request, version, broker)


def check_group(request: TxnOffsetCommitRequest, version: int, broker: Broker) -> PartitionCheck | None:
    """Check that the group takes offsets from this client. Returns a check for each partition, or None.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    committer = Committer(
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=request.generation_id,
        api_version=version,
        is_transactional=True,
    )
    try:
        return broker.groups.committing(request.group_id, committer)
    except ApiError as error:
        raise known_to_producers(error) from None


def known_to_producers(error: ApiError) -> ApiError:
    """Producers do not know STALE_MEMBER_EPOCH."""
    if error.code is ErrorCode.STALE_MEMBER_EPOCH:
        return ApiError(ErrorCode.ILLEGAL_GENERATION, error.message)
    return error


def join(request: TxnOffsetCommitRequest, version: int, broker: Broker) -> None:
    """Check that the group is part of the transaction. A newer client adds it by this request.

    Raises:
        ApiError: What the coordinator of the transaction says, as clients know it.
    """
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    partition = offsets_partition(request.group_id)
    implicit = version >= IMPLICIT_VERSION
    try:
        if implicit:
            broker.transactions.add_partitions(request.transactional_id, producer, frozenset({partition}))
        else:
            broker.transactions.verify_partition(request.transactional_id, producer, partition)
    except ApiError as error:
        known = verification_error(error, implicit=implicit, generic_error=implicit)
        if known.code is ErrorCode.NOT_ENOUGH_REPLICAS:
            known = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
        raise known from None


def checked(
    topic: str,
    partition: TxnOffsetCommitRequestPartition,
    verdict: CommitVerdict,
    broker: Broker,
) -> tuple[TopicPartition, CommittedOffset]:
    """One offset and its partition.

    Raises:
        ApiError: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE, ILLEGAL_GENERATION, or one of
            `admitted`.
    """
    broker.topics.log(topic, partition.partition_index)
    check_partition = verdict.partition_check()
    topic_id = broker.topics.by_name[topic].id
    metadata = partition.committed_metadata or ""
    if len(metadata) > broker.groups.config.offset_metadata_max_bytes:
        raise ApiError(ErrorCode.OFFSET_METADATA_TOO_LARGE)
    if check_partition is not None:
        try:
            check_partition(topic_id, partition.partition_index)
        except ApiError as error:
            raise known_to_producers(error) from None
    offset = CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=metadata,
        commit_timestamp_ms=broker.clock.now_ms(),
    )
    return (topic_id, partition.partition_index), offset
