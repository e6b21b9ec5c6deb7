"""EndTxn, API key 26 (KIP-98).

Source: EndTxnRequest.json and EndTxnResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from typing import Annotated

from odradek.wire.types import Bool, Int16, Int32, Int64, Message, String, between, since


class EndTxnRequest(Message, api_key=26, versions=between(0, 5), flexible=since(3)):
    """Commit or abort a transaction."""

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Bool = False


class EndTxnResponse(Message, answers=EndTxnRequest):
    """Answer to `EndTxnRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, since(5)] = -1
    producer_epoch: Annotated[Int16, since(5)] = -1
