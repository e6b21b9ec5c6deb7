"""Faults for one topic or partition; the rest of a request is served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from odradek.testing import RunningHost
from odradek.testing.topic_scope import TopicScope
from odradek.wire.codec import element_writer, reader, writer
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from odradek.wire.types import EncodedElements
from support.wire_client import WireClient

NONE, LEADERLESS, MOVED = 0, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER
BY_ID = 13


@pytest.fixture
def host(odradek_host: RunningHost) -> RunningHost:
    """A host with two topics of two partitions."""
    for name in ("one", "two"):
        odradek_host.topics.create(name, 2)
    return odradek_host


@pytest.fixture
def client(host: RunningHost) -> Iterator[WireClient]:
    with WireClient(host.address) as client:
        yield client


def topic_id(host: RunningHost, name: str) -> bytes:
    topic = host.host.broker.topics.named(name)
    assert topic is not None
    return topic.id


def produce_everywhere(host: RunningHost, acks: int = -1) -> ProduceRequest:
    """One record to each of the four partitions, by name and by id."""
    records = build_batch([Record(None, b"x")])
    partitions = [PartitionProduceData(index=index, records=records) for index in (0, 1)]
    topics = [
        TopicProduceData(name=name, topic_id=topic_id(host, name), partition_data=partitions)
        for name in ("one", "two")
    ]
    return ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=topics)


def outcomes(host: RunningHost, response: ProduceResponse) -> dict[tuple[str, int], int]:
    names = {topic_id(host, name): name for name in ("one", "two")}
    return {
        (row.name or names[row.topic_id], part.index): part.error_code
        for row in response.responses
        for part in row.partition_responses
    }


def stored(host: RunningHost) -> list[tuple[str, int]]:
    return [(name, record.partition) for name in ("one", "two") for record in host.topics.records(name)]


@pytest.mark.parametrize("version", [9, BY_ID])
def test_an_error_for_a_partition_leaves_the_others(
    host: RunningHost, client: WireClient, version: int
) -> None:
    fault = host.fault("Produce", topic="two", partition=1, error=MOVED)

    first = client.send(produce_everywhere(host), version)
    again = client.send(produce_everywhere(host), version)

    good = {("one", 0): NONE, ("one", 1): NONE, ("two", 0): NONE}
    assert outcomes(host, first) == good | {("two", 1): MOVED}
    assert outcomes(host, again) == good | {("two", 1): NONE}
    assert stored(host).count(("two", 1)) == 1
    assert len(stored(host)) == 7
    assert (fault.used, str(fault)) == (
        1,
        "Produce topic=two partition=1 error=NOT_LEADER_OR_FOLLOWER (1 of 1)",
    )


def test_an_error_for_a_topic_hits_all_its_partitions(host: RunningHost, client: WireClient) -> None:
    host.fault("Produce", topic="t*", error=MOVED)

    response = client.send(produce_everywhere(host), 9)

    assert outcomes(host, response) == {
        ("one", 0): NONE, ("one", 1): NONE, ("two", 0): MOVED, ("two", 1): MOVED
    }  # fmt: skip
    assert stored(host) == [("one", 0), ("one", 1)]


def test_a_request_with_only_affected_partitions_is_refused(host: RunningHost, client: WireClient) -> None:
    host.fault("Produce", topic="*", error=MOVED)

    response = client.send(produce_everywhere(host), 9)

    assert set(outcomes(host, response).values()) == {MOVED}
    assert stored(host) == []


def test_a_request_without_the_topic_is_not_hit(host: RunningHost, client: WireClient) -> None:
    faults = [
        host.fault("Produce", topic="three", drop="before", optional=True),
        host.fault("Produce", topic="one", partition=2, drop="before", optional=True),
    ]

    client.send(produce_everywhere(host), 9)

    assert [fault.used for fault in faults] == [0, 0]


def test_other_effects_hit_the_whole_request(host: RunningHost, client: WireClient) -> None:
    host.fault("Produce", topic="two", partition=0, drop="before")

    client.send_bytes(client.frame(produce_everywhere(host), 9))

    assert client.closed_by_peer()
    assert stored(host) == []


def test_a_produce_without_acks_loses_its_connection(host: RunningHost, client: WireClient) -> None:
    host.fault("Produce", topic="two", error=MOVED)

    client.send_bytes(client.frame(produce_everywhere(host, acks=0), 9))

    assert client.closed_by_peer()


def fetch(
    host: RunningHost, *names: str, session_id: int = 0, epoch: int = -1, wait_ms: int = 0
) -> FetchRequest:
    partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1_000) for index in (0, 1)
    ]
    topics = [FetchTopic(topic=name, topic_id=topic_id(host, name), partitions=partitions) for name in names]
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, session_id=session_id, session_epoch=epoch, topics=topics
    )


def fetched(host: RunningHost, response: FetchResponse) -> dict[tuple[str, int], tuple[int, bool]]:
    """Error and whether there are records, by topic and partition."""
    names = {topic_id(host, name): name for name in ("one", "two")}
    return {
        (row.topic or names[row.topic_id], part.partition_index): (part.error_code, bool(part.records))
        for row in response.responses
        for part in row.partitions
    }


@pytest.mark.parametrize("version", [12, BY_ID])
def test_a_partition_of_a_fetch_fails(host: RunningHost, client: WireClient, version: int) -> None:
    client.send(produce_everywhere(host), 9)
    host.fault("Fetch", topic="one", partition=0, error=MOVED)

    response = client.send(fetch(host, "one", "two"), version)

    good = (NONE, True)
    assert response.error_code == NONE
    assert fetched(host, response) == {
        ("one", 0): (MOVED, False), ("one", 1): good, ("two", 0): good, ("two", 1): good
    }  # fmt: skip


@pytest.mark.parametrize("version", [12, BY_ID])
def test_a_partition_of_a_fetch_session_fails_and_recovers(
    host: RunningHost, client: WireClient, version: int
) -> None:
    opened = client.send(fetch(host, "one", epoch=0), version)
    host.fault("Fetch", topic="one", partition=1, error=MOVED)

    def goes_on(epoch: int, wait_ms: int) -> dict[tuple[str, int], tuple[int, bool]]:
        request = fetch(host, session_id=opened.session_id, epoch=epoch, wait_ms=wait_ms)
        return fetched(host, client.send(request, version))

    assert opened.session_id
    assert goes_on(1, 60_000) == {("one", 1): (MOVED, False)}  # at once, although there are no records
    assert goes_on(2, 0) == {("one", 1): (NONE, False)}
    client.send(produce_everywhere(host), 9)
    assert goes_on(3, 0) == {("one", 0): (NONE, True), ("one", 1): (NONE, True)}


def test_a_partition_fails_while_quotas_are_set(host: RunningHost, client: WireClient) -> None:
    host.quota(client_id=None, consumer_byte_rate=1_000_000)
    client.send(produce_everywhere(host), 9)
    host.fault("Fetch", topic="one", partition=0, error=MOVED)

    response = client.send(fetch(host, "one"), 12)

    assert fetched(host, response) == {("one", 0): (MOVED, False), ("one", 1): (NONE, True)}


@pytest.mark.parametrize("asked", [["one", "two"], None], ids=["by name", "all"])
def test_a_topic_of_the_metadata_fails(
    host: RunningHost, client: WireClient, asked: list[str] | None
) -> None:
    host.fault("Metadata", topic="one", error=LEADERLESS)
    topics = None if asked is None else [MetadataRequestTopic(name=name) for name in asked]

    response = client.send(MetadataRequest(topics=topics), 12)

    found = {topic.name: (topic.error_code, len(topic.partitions)) for topic in response.topics}
    assert found == {"one": (LEADERLESS, 0), "two": (NONE, 2)}
    assert len(response.brokers) == 1


def test_a_partition_of_an_offset_commit_fails(host: RunningHost, client: WireClient) -> None:
    host.fault("OffsetCommit", topic="one", partition=0, error="UNSTABLE_OFFSET_COMMIT")
    partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=0) for index in (0, 1)]
    topics = [OffsetCommitRequestTopic(name="one", partitions=partitions)]

    response = client.send(OffsetCommitRequest(group_id="g", topics=topics), 8)

    parts = [part for topic in response.topics for part in topic.partitions]
    errors = {part.partition_index: part.error_code for part in parts}
    assert errors == {0: ErrorCode.UNSTABLE_OFFSET_COMMIT, 1: NONE}


def test_a_partition_of_a_search_for_offsets_fails(host: RunningHost, client: WireClient) -> None:
    host.fault("ListOffsets", topic="two", partition=1, error=MOVED)
    topics = [
        ListOffsetsTopic(
            name=name,
            partitions=[ListOffsetsPartition(partition_index=each, timestamp=-1) for each in (0, 1)],
        )
        for name in ("one", "two")
    ]

    response = client.send(ListOffsetsRequest(topics=topics), 7)

    errors = {
        (topic.name, part.partition_index): part.error_code
        for topic in response.topics
        for part in topic.partitions
    }
    assert errors == {("one", 0): NONE, ("one", 1): NONE, ("two", 0): NONE, ("two", 1): MOVED}


def test_the_creation_of_one_topic_fails(host: RunningHost, client: WireClient) -> None:
    host.fault("CreateTopics", topic="bad-*", error="POLICY_VIOLATION")
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("bad-1", "good")]

    response = client.send(CreateTopicsRequest(topics=topics, timeout_ms=5_000), 5)

    assert {topic.name: topic.error_code for topic in response.topics} == {
        "bad-1": ErrorCode.POLICY_VIOLATION, "good": NONE
    }  # fmt: skip
    assert host.topics.names() == ["good", "one", "two"]


@pytest.mark.parametrize(
    ("api", "where", "complaint"),
    [
        ("Produce", {"partition": 0}, "partition=0 without a topic"),
        (
            "PushTelemetry",
            {"topic": "t"},
            "a fault of PushTelemetry cannot be limited to a topic, only one of",
        ),
        ("Metadata", {"topic": "t", "partition": 0}, "a fault of Metadata cannot be limited to a partition"),
    ],
)
def test_an_impossible_scope_is_refused(
    host: RunningHost, api: str, where: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        host.fault(api, drop="before", **where)  # type: ignore[arg-type]


def test_a_row_can_be_added_to_a_response_that_is_already_encoded() -> None:
    topics = [ListOffsetsTopicResponse(name="one", partitions=[ListOffsetsPartitionResponse(offset=7)])]
    make_writer: Any = element_writer  # mypy doubts that classes are hashable
    write = make_writer(ListOffsetsResponse, 7, "topics")
    encoded: Any = EncodedElements([write(row) for row in topics])
    response = ListOffsetsResponse(topics=encoded)
    missing = ListOffsetsPartitionResponse(partition_index=1, error_code=MOVED)
    refused = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="one", partitions=[missing])])

    TopicScope("ListOffsets", "one", 1).merge(response, refused, 7)

    sent = writer(ListOffsetsResponse, 7)(response)
    assert isinstance(sent, bytes)
    read, _ = reader(ListOffsetsResponse, 7)(sent, 0)
    found = [
        (row.name, part.partition_index, part.error_code) for row in read.topics for part in row.partitions
    ]
    assert found == [("one", 0, NONE), ("one", 1, MOVED)]
