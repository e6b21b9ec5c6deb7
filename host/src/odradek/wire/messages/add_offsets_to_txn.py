"""AddOffsetsToTxn, API key 25 (KIP-98).

Source: AddOffsetsToTxnRequest.json and AddOffsetsToTxnResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from odradek.wire.types import Int16, Int32, Int64, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class AddOffsetsToTxnRequest:
    """Add a group's offsets to a transaction."""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[Versions] = between(0, 4)
    FLEXIBLE: ClassVar[Versions] = since(3)

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: String = ""


@dataclass(slots=True, kw_only=True)
class AddOffsetsToTxnResponse:
    """Answer to `AddOffsetsToTxnRequest`."""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[Versions] = between(0, 4)
    FLEXIBLE: ClassVar[Versions] = since(3)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
