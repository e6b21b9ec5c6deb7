"""DescribeProducers v0 (KIP-664).

Behavior:
    * The producers of each partition: epoch, last sequence, last timestamp, and the start of the open
      transaction (-1 if there is none). Idempotent producers are listed too.
    * UNKNOWN_TOPIC_OR_PARTITION for an unknown partition, with a message if the topic is unknown;
      INVALID_TOPIC_EXCEPTION for an illegal name.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.authorization import Rights, refusal
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.topics import check_name
from odradek.log.partition_log import PartitionLog
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.error_text import UNKNOWN_PARTITION
from odradek.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


@answers(DescribeProducersRequest, refuses="topics", each="topics", droppable=True)
def describe_producers(
    request: DescribeProducersRequest, context: RequestContext, broker: Broker
) -> Generator[TopicResponse | None, None, DescribeProducersResponse]:
    rights = broker.authorization.rights(context, AclOperation.READ, ResourceType.TOPIC)
    for topic in request.topics:
        answered = TopicResponse(name=topic.name)
        for index in topic.partition_indexes:
            answered.partitions.append(described(topic.name, index, rights, broker))
            yield None
        yield answered
    return DescribeProducersResponse()


def described(name: str, index: int, rights: Rights, broker: Broker) -> PartitionResponse:
    """The producers of one partition."""
    try:
        check_name(name)
        if not rights.allows(name):
            raise refusal(ResourceType.TOPIC)
        if broker.topics.named(name) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_PARTITION)
        log = broker.topics.online_log(name, index)
    except ApiError as error:
        return PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)
    return PartitionResponse(partition_index=index, active_producers=producers(log))


def producers(log: PartitionLog) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=state.producer_epoch,
            last_sequence=state.last_sequence,
            last_timestamp=state.last_timestamp_ms,
            coordinator_epoch=state.coordinator_epoch,
            current_txn_start_offset=state.current_txn_first_offset,
        )
        for producer_id, state in log.producers.producers.items()
    ]
