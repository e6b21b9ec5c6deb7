"""InitProducerId, API key 22 (KIP-98).

Source: InitProducerIdRequest.json and InitProducerIdResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from odradek.wire.types import Bool, Int16, Int32, Int64, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class InitProducerIdRequest:
    """Obtain a producer id and epoch."""

    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[Versions] = between(0, 6)
    FLEXIBLE: ClassVar[Versions] = since(2)

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


@dataclass(slots=True, kw_only=True)
class InitProducerIdResponse:
    """Answer to `InitProducerIdRequest`."""

    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[Versions] = between(0, 6)
    FLEXIBLE: ClassVar[Versions] = since(2)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Annotated[Int64, since(6)] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, since(6)] = -1
