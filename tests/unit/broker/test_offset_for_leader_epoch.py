from __future__ import annotations

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, make_broker

VERSIONS = range(OffsetForLeaderEpochRequest.VERSIONS.first, OffsetForLeaderEpochRequest.VERSIONS.last + 1)


@pytest.fixture
def client() -> BrokerClient:
    client = BrokerClient(make_broker())
    client.broker.topics.create("t", 2, {})
    client.broker.topics.log("t", 0).append(batch_of(b"a", b"b"), now_ms=NOW_MS)
    return client


def ask(
    client: BrokerClient, *partitions: OffsetForLeaderPartition, topic: str = "t", version: int = 4
) -> list[tuple[int, int, int]]:
    """Error code, epoch and end offset of each answer."""
    topics = [OffsetForLeaderTopic(topic=topic, partitions=list(partitions))]
    response = client.send(OffsetForLeaderEpochRequest(topics=topics), version)
    assert isinstance(response, OffsetForLeaderEpochResponse)
    return [
        (row.error_code, row.leader_epoch, row.end_offset)
        for topic_result in response.topics
        for row in topic_result.partitions
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_only_epoch_ends_at_the_log_end(client: BrokerClient, version: int) -> None:
    answers = ask(
        client, OffsetForLeaderPartition(partition=0), OffsetForLeaderPartition(partition=1), version=version
    )

    assert answers == [(0, 0, 2), (0, 0, 0)]


@pytest.mark.parametrize(("epoch", "answer"), [(1, (0, -1, -1)), (-1, (0, -1, -1)), (-5, (0, -5, 0))])
def test_an_unknown_epoch_has_no_end(client: BrokerClient, epoch: int, answer: tuple[int, int, int]) -> None:
    assert ask(client, OffsetForLeaderPartition(partition=0, leader_epoch=epoch)) == [answer]


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(0, 0), (-1, 0), (3, ErrorCode.UNKNOWN_LEADER_EPOCH), (-7, ErrorCode.FENCED_LEADER_EPOCH)],
)
def test_the_clients_own_epoch_is_checked(client: BrokerClient, epoch: int, code: int) -> None:
    answers = ask(client, OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch))

    assert answers == [(code, 0, 2) if code == 0 else (code, -1, -1)]


@pytest.mark.parametrize(("topic", "partition"), [("t", 2), ("t", -1), ("no", 0)])
def test_an_unknown_partition_is_refused(client: BrokerClient, topic: str, partition: int) -> None:
    answers = ask(client, OffsetForLeaderPartition(partition=partition), topic=topic)

    assert answers == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)]
