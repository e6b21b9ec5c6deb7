"""DescribeTransactions, API key 65 (KIP-664).

Source: DescribeTransactionsRequest.json and DescribeTransactionsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import Int16, Int32, Int64, Message, String, Struct, only, since


class TopicData(Struct):
    """One of `TransactionState.topics`."""

    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


class TransactionState(Struct):
    """One of `DescribeTransactionsResponse.transaction_states`."""

    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[TopicData] = field(default_factory=list)


class DescribeTransactionsRequest(Message, api_key=65, versions=only(0), flexible=since(0)):
    """Describe transactions."""

    transactional_ids: list[String] = field(default_factory=list)


class DescribeTransactionsResponse(Message, answers=DescribeTransactionsRequest):
    """Answer to `DescribeTransactionsRequest`."""

    throttle_time_ms: Int32 = 0
    transaction_states: list[TransactionState] = field(default_factory=list)
