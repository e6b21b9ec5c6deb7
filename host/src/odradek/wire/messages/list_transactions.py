"""ListTransactions, API key 66 (KIP-664).

Source: ListTransactionsRequest.json and ListTransactionsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Int16, Int32, Int64, Message, String, Struct, between, since


class TransactionState(Struct):
    """One of `ListTransactionsResponse.transaction_states`."""

    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


class ListTransactionsRequest(Message, api_key=66, versions=between(0, 2), flexible=since(0)):
    """List transactions."""

    state_filters: list[String] = field(default_factory=list)
    producer_id_filters: list[Int64] = field(default_factory=list)
    duration_filter: Annotated[Int64, since(1)] = -1
    """In ms: only transactions open for longer; -1 for all."""
    transactional_id_pattern: Annotated[String | None, since(2)] = None


class ListTransactionsResponse(Message, answers=ListTransactionsRequest):
    """Answer to `ListTransactionsRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[String] = field(default_factory=list)
    transaction_states: list[TransactionState] = field(default_factory=list)
