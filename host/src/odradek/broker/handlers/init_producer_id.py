"""InitProducerId v0-v5.

Behavior:
    * An idempotent producer gets an id that was never given out, in epoch 0; what it was before does not
      matter, but an id without an epoch, or an epoch without an id, is INVALID_REQUEST.
    * A transactional id is INVALID_REQUEST: transactions are not served, their APIs are not advertised.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.routing import answers
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.wire.types import between

UNKNOWN = -1


def refuse(_request: InitProducerIdRequest, code: ErrorCode, _message: str | None) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


@answers(InitProducerIdRequest, InitProducerIdResponse, versions=between(0, 5), refusal=refuse)
def init_producer_id(
    request: InitProducerIdRequest, context: RequestContext, broker: Broker
) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if (request.producer_id == UNKNOWN) != (request.producer_epoch == UNKNOWN):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    return InitProducerIdResponse(producer_id=broker.metadata.allocate_producer_id(), producer_epoch=0)
