"""EndTxn, API key 26 (KIP-98).

Source: EndTxnRequest.json and EndTxnResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from odradek.wire.types import Bool, Int16, Int32, Int64, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class EndTxnRequest:
    """Commit or abort a transaction."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[Versions] = between(0, 5)
    FLEXIBLE: ClassVar[Versions] = since(3)

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Bool = False


@dataclass(slots=True, kw_only=True)
class EndTxnResponse:
    """Answer to `EndTxnRequest`."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[Versions] = between(0, 5)
    FLEXIBLE: ClassVar[Versions] = since(3)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, since(5)] = -1
    producer_epoch: Annotated[Int16, since(5)] = -1
