"""The state of the world of `support.authorization.case`; each step is requests of a super user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from odradek.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

Send = Callable[..., Any]
TOPICS = ("open", "shut")


def make_topics(send: Send) -> None:
    send(
        CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in TOPICS]
        )
    )


def find_coordinators(send: Send) -> None:
    """A real cluster makes its internal topics, which takes a moment."""
    for kind, key in ((0, "club"), (1, "tx")):
        while send(FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])).coordinators[0].error_code:
            pass


def commit(send: Send) -> None:
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="m")]
    topics = [OffsetCommitRequestTopic(name=name, partitions=partitions) for name in TOPICS]
    request = OffsetCommitRequest(group_id="club", topics=topics)
    until_done(lambda: send(request, most_version=9).topics[0].partitions[0].error_code)


def begin_transaction(send: Send) -> None:
    init = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=600_000)
    producers: list[Any] = []

    def attempt() -> int:
        producers.append(send(init))
        return int(producers[-1].error_code)

    until_done(attempt)
    added = send(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=producers[-1].producer_id,
            v3_and_below_producer_epoch=producers[-1].producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in TOPICS],
        ),
        most_version=3,
    )
    assert not added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code


def join_crew(send: Send) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="crew",
        member_id="member",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=list(TOPICS),
        topic_partitions=[],
    )
    until_done(lambda: send(request).error_code)


def until_done(attempt: Callable[[], int]) -> None:
    for _ in range(1_000):
        if not attempt():
            return
    raise AssertionError("a request was refused a thousand times")


WORLD: tuple[Callable[[Send], None], ...] = (
    make_topics,
    find_coordinators,
    commit,
    begin_transaction,
    join_crew,
)
