"""DescribeTransactions, API key 65 (KIP-664).

Source: DescribeTransactionsRequest.json and DescribeTransactionsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import Int16, Int32, Int64, String, Versions, only, since


@dataclass(slots=True, kw_only=True)
class TopicData:
    """One of `TransactionState.topics`."""

    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class TransactionState:
    """One of `DescribeTransactionsResponse.transaction_states`."""

    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[TopicData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeTransactionsRequest:
    """Describe transactions."""

    API_KEY: ClassVar[int] = 65
    VERSIONS: ClassVar[Versions] = only(0)
    FLEXIBLE: ClassVar[Versions] = since(0)

    transactional_ids: list[String] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeTransactionsResponse:
    """Answer to `DescribeTransactionsRequest`."""

    API_KEY: ClassVar[int] = 65
    VERSIONS: ClassVar[Versions] = only(0)
    FLEXIBLE: ClassVar[Versions] = since(0)

    throttle_time_ms: Int32 = 0
    transaction_states: list[TransactionState] = field(default_factory=list)
