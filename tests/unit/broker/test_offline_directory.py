"""Requests about partitions whose log directory is offline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from odradek.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from odradek.wire.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from odradek.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from support.batches import batch_of, values_from
from support.broker import BrokerClient, make_broker
from support.data_requests import fetch_request, produce_request
from support.failing_disk import FailingDisk, disk

__all__ = ["disk"]
STORAGE, NONE = ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE


@pytest.fixture
def client(tmp_path: Path, disk: FailingDisk) -> BrokerClient:
    """``a-0`` is in ``one``, whose disk fails, and ``a-1`` in ``two``."""
    client = BrokerClient(make_broker(tmp_path / "one", more_log_dirs=[tmp_path / "two"]))
    client.broker.topics.create("a", 2, {})
    for index in range(2):
        client.broker.topics.log("a", index).append(batch_of(b"x"), client.broker.clock.now_ms())
    disk.fail(tmp_path / "one")
    with pytest.raises(ApiError):
        client.broker.topics.log("a", 0).flush()
    return client


def produced(client: BrokerClient) -> list[int]:
    request = produce_request("a", batch_of(b"y"), batch_of(b"y"))
    return [row.error_code for row in client.send(request, 9).responses[0].partition_responses]


def fetched(client: BrokerClient) -> list[int]:
    request = fetch_request("a", 1, 1)
    return [row.error_code for row in client.send(request, 12).responses[0].partitions]


def listed(client: BrokerClient) -> list[int]:
    rows = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(2)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="a", partitions=rows)])
    return [row.error_code for row in client.send(request, 7).topics[0].partitions]


def ended(client: BrokerClient) -> list[int]:
    rows = [OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in range(2)]
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="a", partitions=rows)])
    return [row.error_code for row in client.send(request, 4).topics[0].partitions]


def deleted(client: BrokerClient) -> list[int]:
    rows = [DeleteRecordsPartition(partition_index=index, offset=1) for index in range(2)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="a", partitions=rows)])
    return [row.error_code for row in client.send(request, 2).topics[0].partitions]


def with_producers(client: BrokerClient) -> list[int]:
    request = DescribeProducersRequest(topics=[TopicRequest(name="a", partition_indexes=[0, 1])])
    return [row.error_code for row in client.send(request).topics[0].partitions]


@pytest.mark.parametrize("ask", [produced, fetched, listed, ended, deleted, with_producers])
def test_an_offline_partition_is_a_storage_error_and_the_other_works(
    client: BrokerClient, disk: FailingDisk, ask: Callable[[BrokerClient], list[int]]
) -> None:
    disk.failed.clear()

    assert ask(client) == [STORAGE, NONE]
    assert not disk.failed


def test_metadata_shows_no_leader_and_an_offline_replica(client: BrokerClient) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])

    (topic,) = client.send(request).topics

    assert topic.error_code == NONE
    assert [
        (
            row.error_code,
            row.leader_id,
            row.leader_epoch,
            row.replica_nodes,
            row.isr_nodes,
            row.offline_replicas,
        )
        for row in topic.partitions
    ] == [(ErrorCode.LEADER_NOT_AVAILABLE, -1, 0, [1], [1], [1]), (NONE, 1, 0, [1], [1], [])]


def test_a_described_topic_shows_the_same(client: BrokerClient) -> None:
    (topic,) = client.send(DescribeTopicPartitionsRequest(topics=[DescribedTopic(name="a")])).topics

    shown = [(row.leader_id, row.replica_nodes, row.offline_replicas) for row in topic.partitions]
    assert shown == [(-1, [1], [1]), (1, [1], [])]


@pytest.mark.parametrize(
    ("kind", "code"),
    [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE), (1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)],
)
def test_no_leader_can_be_elected(client: BrokerClient, kind: int, code: ErrorCode) -> None:
    wanted = [TopicPartitions(topic="a", partitions=[0, 1])]

    (topic,) = client.send(
        ElectLeadersRequest(election_type=kind, topic_partitions=wanted)
    ).replica_election_results

    codes = [row.error_code for row in topic.partition_result]
    assert codes == [code, ErrorCode.ELECTION_NOT_NEEDED]


def test_the_directory_is_described_as_failed(client: BrokerClient, tmp_path: Path) -> None:
    one, two = client.send(DescribeLogDirsRequest(topics=None)).results

    assert (one.log_dir, one.error_code, one.topics) == (str(tmp_path / "one"), STORAGE, [])
    assert (two.error_code, [topic.name for topic in two.topics]) == (NONE, ["a"])


@pytest.mark.parametrize(("name", "index"), [("one", 1), ("two", 0)])
def test_nothing_moves_from_or_to_an_offline_directory(
    client: BrokerClient, tmp_path: Path, name: str, index: int
) -> None:
    topics = [AlterReplicaLogDirTopic(name="a", partitions=[index])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(tmp_path / name), topics=topics)])

    (row,) = client.send(request).results[0].partitions

    assert row.error_code == STORAGE
    assert not client.broker.logs.moves


def codes(response: Any) -> list[int]:
    return [row.error_code for row in getattr(response, "topics", None) or response.responses]


def test_topics_are_created_and_deleted_nevertheless(client: BrokerClient, tmp_path: Path) -> None:
    new = CreatableTopic(name="new", num_partitions=2, replication_factor=1)

    made = codes(client.send(CreateTopicsRequest(topics=[new])))
    gone = codes(client.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=1_000)))

    assert (made, gone) == ([NONE], [NONE])
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == ["new-0", "new-1"]
    assert client.broker.topics.named("a") is None


def test_a_long_poll_is_answered_when_the_directory_fails(tmp_path: Path, disk: FailingDisk) -> None:
    client = BrokerClient(make_broker(tmp_path / "one", more_log_dirs=[tmp_path / "two"]))
    client.broker.topics.create("a", 2, {})
    waiting = client.defer(fetch_request("a", max_wait_ms=60_000), 12)
    disk.fail(tmp_path / "one")

    with pytest.raises(ApiError):
        client.broker.topics.log("a", 0).flush()

    assert [row.error_code for row in waiting().responses[0].partitions] == [STORAGE]


def test_nothing_is_read_from_a_disk_that_has_just_failed(tmp_path: Path, disk: FailingDisk) -> None:
    client = BrokerClient(make_broker(tmp_path / "one", more_log_dirs=[tmp_path / "two"]))
    client.broker.topics.create("a", 4, {})
    here = [index for index in range(4) if directory_of(client, index) == tmp_path / "one"]
    for index in here:
        client.broker.topics.log("a", index).append(batch_of(b"x"), client.broker.clock.now_ms())
    rows = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1_000) for index in here]
    request = FetchRequest(
        max_wait_ms=60_000, min_bytes=900, max_bytes=1_000, topics=[FetchTopic(topic="a", partitions=rows)]
    )
    waiting = client.defer(request, 12)
    disk.fail(tmp_path / "one")

    with pytest.raises(ApiError):
        client.broker.topics.log("a", here[0]).flush()

    assert [row.error_code for row in waiting().responses[0].partitions] == [STORAGE, STORAGE]
    assert set(disk.failed) == {"fsync"}


def directory_of(client: BrokerClient, index: int) -> Path:
    return client.broker.topics.log("a", index).directory.parent


def test_a_topic_created_again_while_its_old_folder_is_offline(tmp_path: Path, disk: FailingDisk) -> None:
    first = BrokerClient(make_broker(tmp_path / "one", more_log_dirs=[tmp_path / "two"]))
    metadata, topics = first.broker.metadata, first.broker.topics
    old = topics.create("a", 1, {})
    old_log = topics.log("a", 0)
    old_log.append(batch_of(b"old"), first.broker.clock.now_ms())
    disk.fail(tmp_path / "one")
    with pytest.raises(ApiError):
        old_log.flush()
    topics.delete(old)
    new = topics.create("a", 1, {})
    topics.log("a", 0).append(batch_of(b"new"), first.broker.clock.now_ms())
    first.broker.logs.close()
    disk.recover()

    again = make_broker(tmp_path / "one", more_log_dirs=[tmp_path / "two"], metadata=metadata)

    assert old_log.directory.parent != new.partitions[0].directory.parent
    assert values_from(again.topics.log("a", 0)) == [(0, b"new")]
    assert [path.name[:4] for path in (tmp_path / "one").glob("*-stray")] == ["a-0."]
