"""EndTxn v0-v5.

Behavior:
    * The outcome is stored before the answer; markers are in the logs when it is given, but for transactions
      with very many partitions, which follow at once.
    * The same outcome again is NONE, or CONCURRENT_TRANSACTIONS as long as markers are missing; the opposite
      one is INVALID_TXN_STATE, and so is the end of a transaction that never began.
    * INVALID_PRODUCER_ID_MAPPING for another producer id, PRODUCER_FENCED for another epoch.
Versions:
    * v2: PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH.
    * v5 (KIP-890): the epoch is bumped, and the producer goes on with the answer's. An abort is taken even if
      there is nothing to abort, and bumps the epoch. A repetition is known by the epoch before.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.transactions.transaction_errors import older_code
from odradek.plugin.context import RequestContext
from odradek.transaction.transaction_metadata import ProducerIdAndEpoch
from odradek.wire.api_error import ApiError
from odradek.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FENCED_VERSION = 2
EPOCH_BUMP_VERSION = 5


@answers(EndTxnRequest, EndTxnResponse)
def end_txn(request: EndTxnRequest, context: RequestContext, broker: Broker) -> EndTxnResponse:
    try:
        producer = broker.transactions.end(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            committed=request.committed,
            version_2=context.api_version >= EPOCH_BUMP_VERSION,
        )
    except ApiError as error:
        raise older_code(error, context, FENCED_VERSION) from None
    return EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)
