"""InitProducerId, API key 22 (KIP-98).

Source: InitProducerIdRequest.json and InitProducerIdResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from typing import Annotated

from odradek.wire.types import Bool, Int16, Int32, Int64, Message, String, between, since


class InitProducerIdRequest(Message, api_key=22, versions=between(0, 6), flexible=since(2)):
    """Obtain a producer id and epoch."""

    transactional_id: String | None = ""
    """Null for a producer that is idempotent only."""
    transaction_timeout_ms: Int32 = 0
    """Transactions open for longer are aborted."""
    producer_id: Annotated[Int64, since(3)] = -1
    """The producer id to keep; -1 for a new one."""
    producer_epoch: Annotated[Int16, since(3)] = -1
    enable_2pc: Annotated[Bool, since(6)] = False
    """The coordinator of the transactions is outside Kafka (KIP-939)."""
    keep_prepared_txn: Annotated[Bool, since(6)] = False
    """Leave a prepared transaction open (KIP-939)."""


class InitProducerIdResponse(Message, answers=InitProducerIdRequest):
    """Answer to `InitProducerIdRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Annotated[Int64, since(6)] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, since(6)] = -1
