from __future__ import annotations

from typing import Any

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.broker import BrokerClient

VERSIONS = range(ListOffsetsRequest.VERSIONS.first, ListOffsetsRequest.VERSIONS.last + 1)
LATEST = ListOffsetsRequest.VERSIONS.last
T = 1_700_000_000_000
NONE = (ErrorCode.NONE, -1, -1, -1)
"""Error code, timestamp, offset and leader epoch if there is no such record."""


def refused(code: ErrorCode) -> tuple[int, int, int, int]:
    return (code, -1, -1, -1)


@pytest.fixture
def client() -> BrokerClient:
    """Topic ``t``: partition 0 has records at T, T+20, T+10; partition 1 is empty."""
    client = BrokerClient()
    topic = client.broker.topics.create("t", 2, {})
    for time in (T, T + 20, T + 10):
        topic.partitions[0].append(build_batch([Record(b"k", b"v", time)]), now_ms=T)
    return client


def ask(
    client: BrokerClient, *partitions: ListOffsetsPartition, topic: str = "t", version: int = LATEST
) -> Any:
    wanted = ListOffsetsTopic(name=topic, partitions=list(partitions))
    return client.send(ListOffsetsRequest(replica_id=-1, topics=[wanted]), version)


def found(response: Any) -> list[tuple[int, int, int, int]]:
    return [
        (partition.error_code, partition.timestamp, partition.offset, partition.leader_epoch)
        for topic in response.topics
        for partition in topic.partitions
    ]


def at(timestamp: int, index: int = 0, epoch: int = -1) -> ListOffsetsPartition:
    return ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (-1, (0, -1, 3, 0)),
        (-2, (0, -1, 0, 0)),
        (-3, (0, T + 20, 1, 0)),
        (-4, (0, -1, 0, 0)),
        (-5, NONE),
        (-6, NONE),
        (0, (0, T, 0, 0)),
        (T, (0, T, 0, 0)),
        (T + 1, (0, T + 20, 1, 0)),
        (T + 20, (0, T + 20, 1, 0)),
        (T + 21, NONE),
        (2**63 - 1, NONE),
        (-7, refused(ErrorCode.UNSUPPORTED_VERSION)),
        (-(2**63), refused(ErrorCode.UNSUPPORTED_VERSION)),
    ],
)
def test_a_timestamp_selects_an_offset(
    client: BrokerClient, timestamp: int, expected: tuple[int, int, int, int]
) -> None:
    response = ask(client, at(timestamp))

    assert found(response) == [expected]


@pytest.mark.parametrize(
    ("timestamp", "expected"), [(-1, (0, -1, 0, 0)), (-2, (0, -1, 0, 0)), (-3, NONE), (0, NONE), (T, NONE)]
)
def test_an_empty_partition_has_both_ends_and_no_timestamp(
    client: BrokerClient, timestamp: int, expected: tuple[int, int, int, int]
) -> None:
    response = ask(client, at(timestamp, 1))

    assert found(response) == [expected]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 99)])
def test_a_special_timestamp_unknown_to_the_version_is_refused(
    client: BrokerClient, version: int, timestamp: int, since: int
) -> None:
    response = ask(client, at(timestamp), version=version)

    ((code, _, _, _),) = found(response)
    assert code == (ErrorCode.NONE if version >= since else ErrorCode.UNSUPPORTED_VERSION)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_leader_epoch_is_returned_from_version_4_on(client: BrokerClient, version: int) -> None:
    response = ask(client, at(-1), version=version)

    assert found(response) == [(0, -1, 3, 0 if version >= 4 else -1)]


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH), (-5, ErrorCode.FENCED_LEADER_EPOCH)],
)
def test_the_leader_epoch_is_checked(client: BrokerClient, epoch: int, code: int) -> None:
    response = ask(client, at(-1, epoch=epoch))

    assert found(response)[0][0] == code


@pytest.mark.parametrize("index", [2, -1, 2**31 - 1, -(2**31)])
def test_an_unknown_partition_does_not_affect_the_others(client: BrokerClient, index: int) -> None:
    response = ask(client, at(-1), at(-1, index))

    assert found(response) == [(0, -1, 3, 0), refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_an_unknown_topic_is_refused(client: BrokerClient) -> None:
    response = ask(client, at(-1), topic="nowhere")

    assert found(response) == [refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_a_partition_named_twice_is_refused_once(client: BrokerClient) -> None:
    response = ask(client, at(-1), at(-2), at(-2, 1))

    assert found(response) == [refused(ErrorCode.INVALID_REQUEST), (0, -1, 0, 0)]


def test_a_partition_named_in_two_topics_of_the_request_is_refused(client: BrokerClient) -> None:
    topics = [ListOffsetsTopic(name="t", partitions=[at(-1)]) for _ in range(2)]

    response = client.send(ListOffsetsRequest(replica_id=-1, topics=topics))

    assert found(response) == [refused(ErrorCode.INVALID_REQUEST)] * 2


def test_an_empty_request_has_an_empty_answer(client: BrokerClient) -> None:
    response = client.send(ListOffsetsRequest(replica_id=-1))

    assert response.topics == []
