"""ListTransactions, API key 66 (KIP-664).

Source: ListTransactionsRequest.json and ListTransactionsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Int16, Int32, Int64, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class TransactionState:
    """One of `ListTransactionsResponse.transaction_states`."""

    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


@dataclass(slots=True, kw_only=True)
class ListTransactionsRequest:
    """List transactions."""

    API_KEY: ClassVar[int] = 66
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(0)

    state_filters: list[String] = field(default_factory=list)
    producer_id_filters: list[Int64] = field(default_factory=list)
    duration_filter: Annotated[Int64, since(1)] = -1
    """In ms: only transactions open for longer; -1 for all."""
    transactional_id_pattern: Annotated[String | None, since(2)] = None


@dataclass(slots=True, kw_only=True)
class ListTransactionsResponse:
    """Answer to `ListTransactionsRequest`."""

    API_KEY: ClassVar[int] = 66
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(0)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[String] = field(default_factory=list)
    transaction_states: list[TransactionState] = field(default_factory=list)
