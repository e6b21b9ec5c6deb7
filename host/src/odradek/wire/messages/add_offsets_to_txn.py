"""AddOffsetsToTxn, API key 25 (KIP-98).

Source: AddOffsetsToTxnRequest.json and AddOffsetsToTxnResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from odradek.wire.types import Int16, Int32, Int64, Message, String, between, since


class AddOffsetsToTxnRequest(Message, api_key=25, versions=between(0, 4), flexible=since(3)):
    """Add a group's offsets to a transaction."""

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: String = ""


class AddOffsetsToTxnResponse(Message, answers=AddOffsetsToTxnRequest):
    """Answer to `AddOffsetsToTxnRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
