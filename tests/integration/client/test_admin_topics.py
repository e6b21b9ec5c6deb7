from __future__ import annotations

from typing import Any

import pytest

from odradek.client.elections import ElectionType
from odradek.client.errors import ConnectFailed, RequestFailed, UnsupportedVersion
from odradek.client.resources import LATEST, NewPartitions, NewTopic, Offset
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from odradek.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from odradek.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from odradek.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from odradek.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from odradek.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.wire.types import between, only
from support.scripted_cluster import scripted_cluster

TOPIC_ID = bytes(range(16))


def page(*topics: tuple[str, list[int]], following: Cursor | None = None) -> DescribeTopicPartitionsResponse:
    """Some partitions of some topics."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=TOPIC_ID,
                partitions=[
                    DescribeTopicPartitionsResponsePartition(
                        partition_index=index,
                        leader_id=index - 1,
                        replica_nodes=[1],
                        isr_nodes=[1],
                        last_known_elr=[2],
                    )
                    for index in indexes
                ],
            )
            for name, indexes in topics
        ],
        next_cursor=following,
    )


def test_topics_are_described_page_by_page_in_the_requested_order() -> None:
    pages = [
        page(("a", [0, 1]), ("b", [0]), following=Cursor(topic_name="b", partition_index=1)),
        page(("b", [1]), ("c", [0])),
    ]

    with scripted_cluster({DescribeTopicPartitionsRequest: lambda _: pages.pop(0)}) as (broker, admin):
        described = admin.describe_topics(["c", "b", "a"], page=3)

        first, second = broker.of(DescribeTopicPartitionsRequest)
    assert [(topic.name, [row.index for row in topic.partitions]) for topic in described] == [
        ("c", [0]),
        ("b", [0, 1]),
        ("a", [0, 1]),
    ]
    assert [row.name for row in first.topics] == ["a", "b", "c"]
    assert [row.name for row in second.topics] == ["b", "c"]
    assert (first.cursor, first.response_partition_limit) == (None, 3)
    assert (second.cursor.topic_name, second.cursor.partition_index) == ("b", 1)


def test_a_partition_has_its_leader_and_eligible_leaders() -> None:
    with scripted_cluster({DescribeTopicPartitionsRequest: lambda _: page(("t", [0, 1]))}) as (_, admin):
        (topic,) = admin.describe_topics(["t"])

    without, with_leader = topic.partitions
    assert topic.topic_id == TOPIC_ID
    assert (without.leader, with_leader.leader) == (None, 0)
    assert (with_leader.replicas, with_leader.in_sync) == ([1], [1])
    assert (with_leader.eligible_leader_replicas, with_leader.last_known_eligible) == ((), [2])


def test_pages_without_progress_end_the_request() -> None:
    stuck = page(("a", [0]), following=Cursor(topic_name="a", partition_index=0))

    with (
        scripted_cluster({DescribeTopicPartitionsRequest: lambda _: stuck}) as (_, admin),
        pytest.raises(ConnectFailed, match="a cursor that does not advance"),
    ):
        admin.describe_topics(["a"])


def test_an_older_broker_describes_topics_by_metadata() -> None:
    with scripted_cluster({}, {"t": 2}) as (_, admin):
        (topic,) = admin.describe_topics(["t"])

    assert [(row.index, row.leader) for row in topic.partitions] == [(0, 1), (1, 1)]
    assert topic.partitions[0].eligible_leader_replicas is None


def test_an_unknown_topic_is_reported_at_once() -> None:
    with scripted_cluster({}, {}) as (broker, admin):
        with pytest.raises(RequestFailed) as refused:
            admin.describe_topics(["nope"])

        assert str(refused.value) == "nope: UNKNOWN_TOPIC_OR_PARTITION"
        assert len(broker.asked) == 2


def test_an_empty_list_of_topics_sends_no_request() -> None:
    with scripted_cluster({}) as (broker, admin):
        described = admin.describe_topics([])

        assert (described, broker.asked) == ([], [])


def test_partitions_are_added_up_to_a_total() -> None:
    def answer(request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        return CreatePartitionsResponse(
            results=[CreatePartitionsTopicResult(name=row.name) for row in request.topics]
        )

    with scripted_cluster({CreatePartitionsRequest: answer}) as (broker, admin):
        admin.create_partitions({"a": NewPartitions(3), "b": NewPartitions(2, [[1]])}, validate_only=True)

        (request,) = broker.of(CreatePartitionsRequest)
    chosen, given = request.topics
    assert (chosen.name, chosen.count, chosen.assignments) == ("a", 3, None)
    assert [row.broker_ids for row in given.assignments] == [[1]]
    assert request.validate_only


def test_only_retriable_topics_are_created_again() -> None:
    busy = {"b": 1}

    def answer(request: CreateTopicsRequest) -> CreateTopicsResponse:
        rows = []
        for topic in request.topics:
            again = busy.pop(topic.name, 0)
            code = ErrorCode.NOT_CONTROLLER if again else ErrorCode.NONE
            rows.append(CreatableTopicResult(name=topic.name, error_code=code))
        return CreateTopicsResponse(topics=rows)

    with scripted_cluster({CreateTopicsRequest: answer}) as (broker, admin):
        admin.create_topics([NewTopic(name="a"), NewTopic(name="b", assignments=[[1], [1]])])

        first, second = broker.of(CreateTopicsRequest)
    assert [row.name for row in first.topics] == ["a", "b"]
    assert [row.name for row in second.topics] == ["b"]
    assert [(row.partition_index, row.broker_ids) for row in second.topics[0].assignments] == [
        (0, [1]),
        (1, [1]),
    ]


def listed(request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Every partition ends at 7."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=row.name,
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=7)
                    for each in row.partitions
                ],
            )
            for row in request.topics
        ]
    )


def test_offsets_of_deleted_topics_can_be_left_out() -> None:
    wanted = {("t", 0): LATEST, ("t", 5): LATEST, ("gone", 0): LATEST}

    with scripted_cluster({ListOffsetsRequest: listed}, {"t": 1}) as (_, admin):
        found = admin.list_offsets(wanted, known_only=True)

    assert found == {("t", 0): Offset(7, -1)}


def test_a_leader_that_moved_is_looked_up_again() -> None:
    moves = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NONE]

    def answer(request: ListOffsetsRequest) -> ListOffsetsResponse:
        response = listed(request)
        response.topics[0].partitions[0].error_code = moves.pop(0)
        return response

    with scripted_cluster({ListOffsetsRequest: answer}, {"t": 1}) as (_, admin):
        found = admin.list_offsets({("t", 0): LATEST})

    assert found == {("t", 0): Offset(7, -1)}
    assert moves == []


def test_records_are_deleted_up_to_an_offset() -> None:
    def answer(request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=row.name,
                    partitions=[
                        DeleteRecordsPartitionResult(
                            partition_index=each.partition_index, low_watermark=each.offset
                        )
                        for each in row.partitions
                    ],
                )
                for row in request.topics
            ]
        )

    with scripted_cluster({DeleteRecordsRequest: answer}, {"t": 2, "u": 1}) as (_, admin):
        left = admin.delete_records({("t", 1): 5, ("u", 0): 9})

    assert left == {("t", 1): 5, ("u", 0): 9}


def test_records_out_of_range_are_refused() -> None:
    def answer(request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        row = DeleteRecordsPartitionResult(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="t", partitions=[row])])

    with (
        scripted_cluster({DeleteRecordsRequest: answer}, {"t": 1}) as (_, admin),
        pytest.raises(RequestFailed, match="t-0: OFFSET_OUT_OF_RANGE"),
    ):
        admin.delete_records({("t", 0): 5})


def test_directories_are_described_with_their_contents_and_errors() -> None:
    replica = DescribeLogDirsPartition(partition_index=3, partition_size=10, offset_lag=2, is_future_key=True)
    results = [
        DescribeLogDirsResult(
            log_dir="/a",
            total_bytes=100,
            usable_bytes=40,
            topics=[DescribeLogDirsTopic(name="t", partitions=[replica])],
        ),
        DescribeLogDirsResult(log_dir="/b", error_code=ErrorCode.KAFKA_STORAGE_ERROR),
    ]
    answers = {DescribeLogDirsRequest: lambda _: DescribeLogDirsResponse(results=results)}

    with scripted_cluster(answers) as (broker, admin):
        found = admin.describe_log_dirs()

        assert broker.of(DescribeLogDirsRequest)[0].topics is None
    good, bad = found[1]
    assert (good.path, good.error, good.total_bytes, good.usable_bytes) == ("/a", None, 100, 40)
    row = good.replicas["t", 3]
    assert (row.size_bytes, row.offset_lag, row.is_future) == (10, 2, True)
    assert bad.error is not None
    assert bad.error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert bad.total_bytes is None


def elected(request: ElectLeadersRequest) -> ElectLeadersResponse:
    """No partition needs an election."""
    rows = [
        PartitionResult(partition_id=index, error_code=ErrorCode.ELECTION_NOT_NEEDED, error_message=None)
        for index in (0, 1)
    ]
    return ElectLeadersResponse(
        replica_election_results=[ReplicaElectionResult(topic="t", partition_result=rows)]
    )


@pytest.mark.parametrize("partitions", [None, [("t", 0), ("t", 1)]])
def test_an_unneeded_election_is_a_result(partitions: Any) -> None:
    with scripted_cluster({ElectLeadersRequest: elected}) as (broker, admin):
        outcomes = admin.elect_leaders(ElectionType.PREFERRED, partitions)

        (request,) = broker.of(ElectLeadersRequest)
    assert {at: outcome and outcome.code for at, outcome in outcomes.items()} == {
        ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("t", 1): ErrorCode.ELECTION_NOT_NEEDED,
    }
    assert (request.topic_partitions is None) == (partitions is None)


def test_an_unclean_election_is_never_taken_for_a_preferred_one() -> None:
    with (
        scripted_cluster({ElectLeadersRequest: elected}, elect_leaders=only(0)) as (broker, admin),
        pytest.raises(UnsupportedVersion, match="ElectLeaders needs a version from 1"),
    ):
        admin.elect_leaders(ElectionType.UNCLEAN)

    assert broker.of(ElectLeadersRequest) == []


def test_broker_defaults_need_a_broker_that_supports_them() -> None:
    with (
        scripted_cluster({CreateTopicsRequest: elected}, create_topics=between(2, 3)) as (_, admin),
        pytest.raises(UnsupportedVersion, match="CreateTopics needs a version from 4"),
    ):
        admin.create_topics([NewTopic(name="t")])
