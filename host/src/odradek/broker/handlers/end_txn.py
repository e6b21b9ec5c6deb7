"""EndTxn v0-v5.

Behavior:
    * The outcome is stored before the answer. The markers are in the logs by then too, except for
      transactions with very many partitions, whose markers follow at once.
    * The same outcome again is NONE, or CONCURRENT_TRANSACTIONS while markers are missing; the opposite
      outcome is INVALID_TXN_STATE, and so is ending a transaction that never began.
    * INVALID_PRODUCER_ID_MAPPING for another producer id, PRODUCER_FENCED for another epoch.
Versions:
    * v2: PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH.
    * v5 (KIP-890): the epoch is bumped, and the producer continues with the epoch in the answer. An abort is
      accepted even if there is nothing to abort, and bumps the epoch. A repeated request is recognized by the
      previous epoch.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.transactions.transaction_errors import older_code
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.transaction.transaction_metadata import ProducerIdAndEpoch
from odradek.wire.api_error import ApiError
from odradek.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FENCED_VERSION = 2
EPOCH_BUMP_VERSION = 5


@answers(EndTxnRequest)
def end_txn(request: EndTxnRequest, context: RequestContext, broker: Broker) -> EndTxnResponse:
    broker.authorization.require(
        context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    )
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
