from __future__ import annotations

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from support.batches import batch_of
from support.broker import BrokerClient


@pytest.fixture
def client() -> BrokerClient:
    """Ten records in the first partition of ``a``; ``compacted`` and ``both`` have one each."""
    client = BrokerClient()
    client.broker.topics.create("a", 2, {})
    client.broker.topics.create("compacted", 1, {"cleanup.policy": "compact"})
    client.broker.topics.create("both", 1, {"cleanup.policy": "compact,delete"})
    client.broker.topics.create("neither", 1, {"cleanup.policy": ""})
    for _ in range(10):
        client.broker.topics.log("a", 0).append(batch_of(b"x"), client.broker.clock.now_ms())
    for name in ("compacted", "both", "neither"):
        client.broker.topics.log(name, 0).append(batch_of(b"x"), client.broker.clock.now_ms())
    return client


def delete(
    client: BrokerClient, topic: str, *wanted: tuple[int, int], version: int | None = None
) -> list[tuple[int, int, int]]:
    partitions = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in wanted]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=partitions)])
    [answer] = client.send(request, version).topics
    assert answer.name == topic
    return [(each.partition_index, each.low_watermark, each.error_code) for each in answer.partitions]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_before_an_offset_are_deleted(client: BrokerClient, version: int) -> None:
    log = client.broker.topics.log("a", 0)

    answer = delete(client, "a", (0, 4), version=version)

    assert answer == [(0, 4, ErrorCode.NONE)]
    assert (log.log_start_offset, log.log_end_offset) == (4, 10)


def test_minus_one_deletes_every_record(client: BrokerClient) -> None:
    log = client.broker.topics.log("a", 0)

    answer = delete(client, "a", (0, -1), (1, -1))

    assert answer == [(0, 10, ErrorCode.NONE), (1, 0, ErrorCode.NONE)]
    assert log.log_start_offset == 10


@pytest.mark.parametrize("offset", [-2, 11])
def test_an_offset_outside_is_out_of_range(client: BrokerClient, offset: int) -> None:
    wanted = (0, offset)

    answer = delete(client, "a", wanted)

    assert answer == [(0, -1, ErrorCode.OFFSET_OUT_OF_RANGE)]


def test_deleting_to_an_earlier_offset_is_no_error(client: BrokerClient) -> None:
    delete(client, "a", (0, 4))

    answer = delete(client, "a", (0, 2))

    assert answer == [(0, 4, ErrorCode.NONE)]


def test_of_a_repeated_partition_the_last_counts(client: BrokerClient) -> None:
    wanted = [(0, 4), (1, 0), (0, 2)]

    answer = delete(client, "a", *wanted)

    assert answer == [(0, 2, ErrorCode.NONE), (1, 0, ErrorCode.NONE)]


@pytest.mark.parametrize(("topic", "index"), [("a", 2), ("a", -1), ("nowhere", 0)])
def test_an_unknown_partition_is_refused(client: BrokerClient, topic: str, index: int) -> None:
    wanted = (index, 0)

    answer = delete(client, topic, wanted)

    assert answer == [(index, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


@pytest.mark.parametrize(
    ("topic", "code"),
    [("compacted", ErrorCode.POLICY_VIOLATION), ("both", ErrorCode.NONE), ("neither", ErrorCode.NONE)],
)
def test_a_compacted_topic_keeps_its_records(client: BrokerClient, topic: str, code: ErrorCode) -> None:
    everything = (0, -1)

    [(_, _, found)] = delete(client, topic, everything)

    assert found == code


def test_an_internal_topic_keeps_its_records(client: BrokerClient) -> None:
    topic = "__consumer_offsets"

    answer = delete(client, topic, (0, 0))

    assert answer == [(0, -1, ErrorCode.INVALID_TOPIC_EXCEPTION)]
