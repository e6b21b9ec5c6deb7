"""AddOffsetsToTxn v0-v4.

Behavior:
    * The offsets of a group take part in the producer's transaction, as a partition of
      ``__consumer_offsets``, which begins it if nothing else has.
    * INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS as AddPartitionsToTxn.
Versions:
    * v2: PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.transactions.transaction_errors import older_code
from odradek.broker.transactions.transaction_participants import offsets_partition
from odradek.plugin.context import RequestContext
from odradek.transaction.transaction_metadata import ProducerIdAndEpoch
from odradek.wire.api_error import ApiError
from odradek.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FENCED_VERSION = 2


@answers(AddOffsetsToTxnRequest, AddOffsetsToTxnResponse)
def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, context: RequestContext, broker: Broker
) -> AddOffsetsToTxnResponse:
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    partition = offsets_partition(request.group_id)
    try:
        broker.transactions.add_partitions(request.transactional_id, producer, frozenset({partition}))
    except ApiError as error:
        raise older_code(error, context, FENCED_VERSION) from None
    return AddOffsetsToTxnResponse()
