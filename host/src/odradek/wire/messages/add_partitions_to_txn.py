"""AddPartitionsToTxn, API key 24 (KIP-98).

Source: AddPartitionsToTxnRequest.json and AddPartitionsToTxnResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Bool, Int16, Int32, Int64, Message, String, Struct, between, since


class AddPartitionsToTxnTopic(Struct):
    """A topic of the request, in all versions."""

    name: String = ""
    partitions: list[Int32] = field(default_factory=list)


class AddPartitionsToTxnTransaction(Struct):
    """One of `AddPartitionsToTxnRequest.transactions`."""

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    verify_only: Bool = False
    topics: list[AddPartitionsToTxnTopic] = field(default_factory=list)


class AddPartitionsToTxnPartitionResult(Struct):
    """One of `AddPartitionsToTxnTopicResult.results_by_partition`."""

    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


class AddPartitionsToTxnTopicResult(Struct):
    """A topic of the response, in all versions."""

    name: String = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(default_factory=list)


class AddPartitionsToTxnResult(Struct):
    """One of `AddPartitionsToTxnResponse.results_by_transaction`."""

    transactional_id: String = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = field(default_factory=list)


class AddPartitionsToTxnRequest(Message, api_key=24, versions=between(0, 5), flexible=since(3)):
    """Add partitions to a transaction."""

    transactions: Annotated[list[AddPartitionsToTxnTransaction], since(4)] = field(default_factory=list)
    v3_and_below_transactional_id: Annotated[String, between(0, 3)] = ""
    v3_and_below_producer_id: Annotated[Int64, between(0, 3)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, between(0, 3)] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], between(0, 3)] = field(default_factory=list)


class AddPartitionsToTxnResponse(Message, answers=AddPartitionsToTxnRequest):
    """Answer to `AddPartitionsToTxnRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(4)] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], since(4)] = field(default_factory=list)
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], between(0, 3)] = field(
        default_factory=list
    )
