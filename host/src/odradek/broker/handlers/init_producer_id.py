"""InitProducerId v0-v5.

Behavior:
    * An idempotent producer gets an id that was never used, with epoch 0. Its former id is ignored, but an id
      without an epoch, or an epoch without an id, is INVALID_REQUEST.
    * A transactional id keeps its producer id. The epoch grows by one, which fences the former producer
      (PRODUCER_FENCED for its next requests). After the last epoch there is a new producer id.
    * An open transaction is aborted first: CONCURRENT_TRANSACTIONS until that is done.
    * A time-out above ``transaction.max.timeout.ms``, or below 1, is INVALID_TRANSACTION_TIMEOUT.
    * The empty transactional id is INVALID_REQUEST.
Versions:
    * v3: a producer may name its id and epoch, and continue with the next epoch after an error (KIP-360). v4:
      PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH.
    * v6 (KIP-939) is not served: it is not stable in Kafka 4.4 either.
Differs from Kafka:
    * A new transactional id beyond ``transactional.ids.max`` or ``name.max.length`` is POLICY_VIOLATION.
"""

from __future__ import annotations

from odradek.broker.authorization import refusal
from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.transactions.transaction_errors import older_code
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.transaction.transaction_metadata import ProducerIdAndEpoch
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

UNKNOWN = -1
FENCED_VERSION = 4


@answers(InitProducerIdRequest, producer_id=-1, producer_epoch=-1)
def init_producer_id(
    request: InitProducerIdRequest, context: RequestContext, broker: Broker
) -> InitProducerIdResponse:
    check_rights(request, context, broker)
    if (request.producer_id == UNKNOWN) != (request.producer_epoch == UNKNOWN):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return InitProducerIdResponse(producer_id=broker.metadata.allocate_producer_id(), producer_epoch=0)
    if request.transactional_id not in broker.transactions.transactions:
        broker.names.check("transactional id", request.transactional_id)
    try:
        producer = broker.transactions.init_producer_id(
            request.transactional_id, request.transaction_timeout_ms, expected(request)
        )
    except ApiError as error:
        raise older_code(error, context, FENCED_VERSION) from None
    return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)


def check_rights(request: InitProducerIdRequest, context: RequestContext, broker: Broker) -> None:
    """Check that the caller may write, with this transactional id or to any topic.

    Raises:
        ApiError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED or CLUSTER_AUTHORIZATION_FAILED.
    """
    rights = broker.authorization
    if request.transactional_id is not None:
        rights.require(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not (
        rights.allows_on_cluster(context, AclOperation.IDEMPOTENT_WRITE, logs=False)
        or rights.allows_on_any(context, AclOperation.WRITE, ResourceType.TOPIC)
    ):
        raise refusal(ResourceType.CLUSTER)


def expected(request: InitProducerIdRequest) -> ProducerIdAndEpoch | None:
    """The producer id and epoch that the request names."""
    if request.producer_id == UNKNOWN:
        return None
    return ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
