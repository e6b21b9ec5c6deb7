"""AddOffsetsToTxn v0-v4.

Behavior:
    * Adds the offsets of a group to the producer's transaction, as a partition of ``__consumer_offsets``.
      This begins the transaction if it has not begun.
    * INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED and CONCURRENT_TRANSACTIONS as in AddPartitionsToTxn.
Versions:
    * v2: PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.transactions.transaction_errors import older_code
from odradek.broker.transactions.transaction_participants import offsets_partition
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.transaction.transaction_metadata import ProducerIdAndEpoch
from odradek.wire.api_error import ApiError
from odradek.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FENCED_VERSION = 2


@answers(AddOffsetsToTxnRequest)
def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, context: RequestContext, broker: Broker
) -> AddOffsetsToTxnResponse:
    broker.authorization.require(
        context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    )
    broker.authorization.require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    partition = offsets_partition(request.group_id)
    try:
        broker.transactions.add_partitions(request.transactional_id, producer, frozenset({partition}))
    except ApiError as error:
        raise older_code(error, context, FENCED_VERSION) from None
    return AddOffsetsToTxnResponse()
