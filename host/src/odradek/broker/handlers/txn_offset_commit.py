"""TxnOffsetCommit v0-v6.

Behavior:
    * The offsets become the group's when the producer's transaction commits. They are stored before the
      answer, and survive kill -9.
    * The group must be part of the transaction, else INVALID_TXN_STATE. INVALID_PRODUCER_EPOCH for a fenced
      producer, INVALID_PRODUCER_ID_MAPPING for another one, and COORDINATOR_NOT_AVAILABLE, which clients
      retry, while the transaction is being ended.
    * The empty group id is INVALID_GROUP_ID. The first offsets of an unknown group create it, unless the
      request names a generation: GROUP_ID_NOT_FOUND. Membership is checked as in OffsetCommit, if the request
      names a member.
    * An unknown topic or partition is refused as such, whatever else is wrong with the request.
      OFFSET_METADATA_TOO_LARGE only affects its partition.
Versions:
    * v3: the request may name a member of the group (KIP-447). v5: it adds the group to the transaction
      (KIP-890), and CONCURRENT_TRANSACTIONS is answered as such. v6: topics by id.
    * Before v6, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH are ILLEGAL_GENERATION.
Differs from Kafka:
    * Every request must name the producer's transactional id. Kafka looks no further while the producer has
      offsets of the same group in an open transaction.
    * The first offsets of a new group beyond ``groups.max`` are POLICY_VIOLATION, and so are new offsets
      beyond ``offsets.max`` or ``offsets.metadata.max.bytes``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial

from odradek.broker.broker import Broker
from odradek.broker.commit_verdict import CommitVerdict
from odradek.broker.dispatch.routes import answers
from odradek.broker.transactions.transaction_errors import verification_error
from odradek.broker.transactions.transaction_participants import offsets_partition
from odradek.group.group import Committer, PartitionCheck
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.transaction.transaction_metadata import ProducerIdAndEpoch
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

IMPLICIT_VERSION = 5
TOPIC_ID_VERSION = 6


def refuse(request: TxnOffsetCommitRequest, code: ErrorCode, _message: str | None) -> TxnOffsetCommitResponse:
    """The same error for every partition: there is no room for one at the top."""
    every = answered(request, lambda _topic, _partition: code)
    return TxnOffsetCommitResponse(topics=[topic for topic in every if topic is not None])


def answered(
    request: TxnOffsetCommitRequest,
    code_of: Callable[[TxnOffsetCommitRequestTopic, TxnOffsetCommitRequestPartition], ErrorCode],
) -> Iterator[TxnOffsetCommitResponseTopic | None]:
    """An answer for each topic that has partitions, after None for each of them."""
    for topic in request.topics:
        result = TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        for partition in topic.partitions:
            result.partitions.append(
                TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code_of(topic, partition)
                )
            )
            yield None
        if result.partitions:
            yield result


@answers(TxnOffsetCommitRequest, refusal=refuse, each="topics")
def txn_offset_commit(
    request: TxnOffsetCommitRequest, context: RequestContext, broker: Broker
) -> Generator[TxnOffsetCommitResponseTopic | None, None, TxnOffsetCommitResponse]:
    broker.authorization.require(
        context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    )
    broker.authorization.require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    version = context.api_version
    committer = Committer(
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=request.generation_id_or_member_epoch,
        api_version=version,
        is_transactional=True,
    )
    ask = partial(admitted, broker, request, version, committer)
    verdict = CommitVerdict(
        broker,
        broker.groups.offsets.room(request.group_id, request.producer_id),
        ask,
        broker.authorization.rights(context, AclOperation.READ, ResourceType.TOPIC),
        by_id=version >= TOPIC_ID_VERSION,
    )

    def code_of(topic: TxnOffsetCommitRequestTopic, partition: TxnOffsetCommitRequestPartition) -> ErrorCode:
        code = verdict.take(topic, partition)
        if code is ErrorCode.STALE_MEMBER_EPOCH and not committer.knows_member_epochs:
            return ErrorCode.ILLEGAL_GENERATION
        return code

    begun = broker.steps.turns
    yield from answered(request, code_of)
    if verdict.offsets and broker.steps.turns != begun:
        ask()  # the group, the transaction and the topics may have changed in the meantime
        verdict.drop_deleted_topics()
    if verdict.offsets:
        broker.groups.offsets.add_pending(request.producer_id, request.group_id, verdict.offsets)
    return TxnOffsetCommitResponse()


def admitted(
    broker: Broker, request: TxnOffsetCommitRequest, version: int, committer: Committer
) -> PartitionCheck | None:
    """Check that the transaction and the group take offsets from this client. Returns a check for each
    partition, or None.

    Raises:
        ApiError: INVALID_GROUP_ID, or one of `join` and `GroupCoordinator.committing`.
    """
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    broker.check_new_group(request.group_id)
    join(request, version, broker)
    return broker.groups.committing(request.group_id, committer)


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
