"""Records: producing, fetching, and where they are."""

from __future__ import annotations

from odradek.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.wire.messages.describe_producers import DescribeProducersRequest
from odradek.wire.messages.describe_producers import TopicRequest as ProducersOf
from odradek.wire.messages.describe_transactions import DescribeTransactionsRequest
from odradek.wire.messages.end_txn import EndTxnRequest
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.wire.messages.list_transactions import ListTransactionsRequest
from odradek.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from support.authorization.case import (
    ALL,
    Case,
)
from support.authorization.requests import (
    add_partitions,
    fetch,
    fixed,
    produce,
    txn_offset_commit,
)

CASES = [
    # Produce
    Case("produce without rights", [], produce, 12, unordered=True),
    Case("produce with WRITE to one topic", ["WRITE TOPIC open"], produce, 12, unordered=True),
    Case("produce to a missing topic with WRITE", ["WRITE TOPIC gone"], produce, 12, unordered=True),
    Case("produce by id", ["WRITE TOPIC open"], lambda ids: produce(ids, by_id=True), 13, unordered=True),
    Case(
        "produce in a transaction without rights",
        ["WRITE TOPIC open"],
        lambda ids: produce(ids, transactional=True, transactional_id="tx"),
        12,
        unordered=True,
    ),
    Case(
        "produce a transactional batch without an id",
        ["WRITE TOPIC open", "WRITE TRANSACTIONAL_ID tx"],
        lambda ids: produce(ids, transactional=True),
        12,
        unordered=True,
    ),
    Case(
        "produce a plain batch with a transactional id",
        ["WRITE TOPIC open"],
        lambda ids: produce(ids, transactional_id="tx"),
        12,
        unordered=True,
    ),
    # Fetch
    Case("fetch without rights", [], fetch, 12),
    Case("fetch with READ of one topic", ["READ TOPIC open"], fetch, 12),
    Case("fetch with DESCRIBE only", ["DESCRIBE TOPIC open"], fetch, 12),
    Case("fetch by id", ["READ TOPIC open"], lambda ids: fetch(ids, by_id=True), 17),
    Case("fetch as a replica", ["READ TOPIC open"], lambda ids: fetch(ids, replica_id=2), 12),
    Case(
        "fetch by id as a replica", ["READ TOPIC open"], lambda ids: fetch(ids, by_id=True, replica_id=2), 17
    ),
    # ListOffsets, OffsetForLeaderEpoch
    *(
        Case(
            f"list offsets{label}",
            grants,
            fixed(
                ListOffsetsRequest(
                    replica_id=-1,
                    topics=[
                        ListOffsetsTopic(
                            name=name,
                            partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)],
                        )
                        for name in ALL
                    ],
                )
            ),
            version,
        )
        for label, grants, version in (
            (" without rights", [], 7),
            (" with DESCRIBE of one topic", ["DESCRIBE TOPIC open"], 7),
            (" in version 1", ["READ TOPIC open"], 1),
        )
    ),
    *(
        Case(
            f"offsets of epochs{label}",
            grants,
            fixed(
                OffsetForLeaderEpochRequest(
                    replica_id=-1,
                    topics=[
                        OffsetForLeaderTopic(topic=name, partitions=[OffsetForLeaderPartition(partition=0)])
                        for name in ALL
                    ],
                )
            ),
            4,
        )
        for label, grants in (
            (" without rights", []),
            (" with DESCRIBE", ["DESCRIBE TOPIC open"]),
            (" with CLUSTER_ACTION", ["CLUSTER_ACTION CLUSTER"]),
        )
    ),
    # Producers and transactions
    Case(
        "idempotent producer without rights",
        ["READ TOPIC open"],
        fixed(InitProducerIdRequest(transactional_id=None)),
        4,
    ),
    *(
        Case(
            f"idempotent producer with {right}",
            [right],
            fixed(InitProducerIdRequest(transactional_id=None)),
            4,
            masked=("producer_id",),
        )
        for right in ("IDEMPOTENT_WRITE CLUSTER", "WRITE TOPIC any")
    ),
    Case(
        "transactional producer without rights",
        ["IDEMPOTENT_WRITE CLUSTER"],
        fixed(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=-1)),
        4,
    ),
    Case("add partitions without rights", [], fixed(add_partitions(*ALL)), 3, unordered=True),
    Case(
        "add partitions of one topic",
        ["WRITE TRANSACTIONAL_ID tx", "WRITE TOPIC open", "WRITE TOPIC gone"],
        fixed(add_partitions(*ALL)),
        3,
        unordered=True,
    ),
    Case(
        "add partitions of an internal topic",
        ["WRITE TRANSACTIONAL_ID tx", "WRITE TOPIC open", "WRITE TOPIC __consumer_offsets"],
        fixed(add_partitions("open", "__consumer_offsets")),
        3,
        unordered=True,
    ),
    Case(
        "add partitions of version 4",
        ["WRITE TRANSACTIONAL_ID tx", "WRITE TOPIC open"],
        fixed(
            AddPartitionsToTxnRequest(
                transactions=[
                    AddPartitionsToTxnTransaction(
                        transactional_id="tx", topics=[AddPartitionsToTxnTopic(name="open", partitions=[0])]
                    )
                ]
            )
        ),
        4,
    ),
    Case(
        "add offsets without WRITE",
        ["READ GROUP club"],
        fixed(AddOffsetsToTxnRequest(transactional_id="tx", group_id="club")),
        3,
    ),
    Case(
        "add offsets without READ",
        ["WRITE TRANSACTIONAL_ID tx"],
        fixed(AddOffsetsToTxnRequest(transactional_id="tx", group_id="club")),
        3,
    ),
    Case(
        "end a transaction without rights",
        ["DESCRIBE TRANSACTIONAL_ID tx"],
        fixed(EndTxnRequest(transactional_id="tx")),
        4,
    ),
    Case(
        "commit in a transaction without rights",
        ["READ GROUP club"],
        fixed(txn_offset_commit()),
        4,
        unordered=True,
    ),
    Case(
        "commit in a transaction without READ of the group",
        ["WRITE TRANSACTIONAL_ID tx"],
        fixed(txn_offset_commit()),
        4,
        unordered=True,
    ),
    Case(
        "commit one topic in a transaction",
        ["WRITE TRANSACTIONAL_ID tx", "READ GROUP club", "READ TOPIC open"],
        fixed(txn_offset_commit()),
        4,
        unordered=True,
    ),
    Case(
        "describe producers",
        ["READ TOPIC open", "DESCRIBE TOPIC shut"],
        fixed(
            DescribeProducersRequest(
                topics=[ProducersOf(name=name, partition_indexes=[9]) for name in (*ALL, "bad name")]
            )
        ),
        0,
        unordered=True,
    ),
    Case(
        "describe transactions",
        ["DESCRIBE TRANSACTIONAL_ID tx", "DESCRIBE TOPIC open"],
        fixed(DescribeTransactionsRequest(transactional_ids=["gone", "tx"])),
        0,
        masked=("transaction_start_time_ms", "producer_id"),
    ),
    Case(
        "describe transactions without rights",
        [],
        fixed(DescribeTransactionsRequest(transactional_ids=["gone", "tx"])),
        0,
    ),
    Case(
        "list transactions",
        ["DESCRIBE TRANSACTIONAL_ID tx"],
        fixed(ListTransactionsRequest()),
        0,
        masked=("producer_id",),
    ),
    Case("list transactions without rights", [], fixed(ListTransactionsRequest()), 0),
]
