"""DescribeTransactions v0 (KIP-664).

Behavior:
    * State, producer, time-out, start (-1 before the first transaction) and partitions of each id; groups
      appear as partitions of ``__consumer_offsets``.
    * Partitions of topics that the client may not see are left out.
    * TRANSACTIONAL_ID_NOT_FOUND for an unknown id, INVALID_REQUEST for the empty one.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.authorization import Rights
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.transaction.transaction_metadata import TopicPartition
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


@answers(DescribeTransactionsRequest, refuses="transactional_ids", each="transaction_states", droppable=True)
def describe_transactions(
    request: DescribeTransactionsRequest, context: RequestContext, broker: Broker
) -> Generator[TransactionState, None, DescribeTransactionsResponse]:
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
    topics = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC)
    for each in request.transactional_ids:
        if rights.allows(each):
            yield described(each, topics, broker)
        else:
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            yield TransactionState(error_code=code, transactional_id=each)
    return DescribeTransactionsResponse()


def described(transactional_id: str, topics: Rights, broker: Broker) -> TransactionState:
    """The state of one id, or its error."""
    try:
        known = broker.transactions.transaction(transactional_id)
    except ApiError as error:
        return TransactionState(error_code=error.code, transactional_id=transactional_id)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=str(known.state),
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.start_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=by_topic(known.partitions, topics),
    )


def by_topic(partitions: frozenset[TopicPartition], rights: Rights) -> list[TopicData]:
    """The partitions of each topic that the client may see, in order."""
    topics: dict[str, TopicData] = {}
    for name, index in sorted(partitions):
        if rights.allows(name):
            topics.setdefault(name, TopicData(topic=name)).partitions.append(index)
    return list(topics.values())
