"""The groups of one broker: the requests for each type, and what is made of the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from odradek.client.address import Address
from odradek.client.connection import Connection
from odradek.client.errors import RequestFailed, UnsupportedVersion
from odradek.client.group_readings import BrokerReading, read_groups
from odradek.client.resources import Node
from odradek.lag.group_lag import Owner
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_describe import Assignment, TopicPartitions
from odradek.wire.messages.describe_share_group_offsets import (
    DescribedShareOffset,
    DescribedShareOffsets,
    DescribedShareTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from odradek.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from odradek.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from odradek.wire.messages.share_group_describe import (
    DescribedShareGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareMember,
)
from odradek.wire.messages.streams_group_describe import (
    DescribedStreamsGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsMember,
    Subtopology,
    Tasks,
    Topology,
)
from odradek.wire.messages.streams_group_heartbeat import TaskIds, TopicInfo

NODE = Node(1, Address("broker", 9092))

READER = Owner("m", "app", "10.0.0.1")


class Broker:
    """Answers by the type of the request. One that it does not know is not supported."""

    def __init__(self, groups: Mapping[str, tuple[str, str]], **more: Any) -> None:
        rows = [
            ListedGroup(group_id=group, protocol_type="", group_state=state, group_type=kind)
            for group, (kind, state) in groups.items()
        ]
        self.answers: dict[type[Any], Callable[[Any], Any]] = {
            ListGroupsRequest: lambda _: ListGroupsResponse(groups=rows, **more)
        }
        self.asked: list[Any] = []

    def version(self, request: Any, *_versions: int) -> int:
        return int(request.VERSIONS.last)

    def send(self, request: Any, *_versions: int, **_more: int) -> Any:
        self.asked.append(request)
        if type(request) not in self.answers:
            raise UnsupportedVersion(type(request).__name__)
        return self.answers[type(request)](request)

    def read(self) -> BrokerReading:
        return read_groups(cast(Connection, self), NODE, lambda group: group != "unwanted")


def offsets(**found: tuple[int, int]) -> Callable[[OffsetFetchRequest], OffsetFetchResponse]:
    """Answer with an error code and an offset in partition 0 of `t` for each group."""

    def answer(request: OffsetFetchRequest) -> OffsetFetchResponse:
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group_id=each.group_id,
                    error_code=found[each.group_id][0],
                    topics=[
                        OffsetFetchResponseTopics(
                            name="t",
                            partitions=[
                                OffsetFetchResponsePartitions(committed_offset=found[each.group_id][1]),
                                OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
                            ],
                        )
                    ],
                )
                for each in request.groups
                if each.group_id in found
            ]
        )

    return answer


def test_groups_that_may_not_be_seen_and_groups_that_cannot_be_told() -> None:
    broker = Broker(
        dict.fromkeys(("good", "refused", "loading", "missing", "unwanted"), ("classic", "Empty"))
    )
    broker.answers[OffsetFetchRequest] = offsets(
        good=(0, 7),
        refused=(ErrorCode.GROUP_AUTHORIZATION_FAILED, -1),
        loading=(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1),
    )
    found = broker.read()

    assert {group: each.offsets for group, each in found.groups.items()} == {"good": {"t": {0: 7}}}
    assert found.refused == {"refused"}
    assert found.unknown == {"loading", "missing"}
    assert len(broker.asked) == 2  # nobody has members


def test_a_broker_that_cannot_list_its_groups() -> None:
    with pytest.raises(RequestFailed):
        Broker({}, error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS).read()


def test_a_share_group_has_the_lag_of_the_broker_where_it_knows_one() -> None:
    broker = Broker({"s": ("share", "Stable")})
    rows = [
        DescribedShareOffset(partition_index=0, start_offset=4, lag=2),
        DescribedShareOffset(partition_index=1, start_offset=0, lag=-1),
        DescribedShareOffset(partition_index=2, start_offset=-1, lag=-1),
        DescribedShareOffset(partition_index=3, start_offset=3, lag=3, error_code=3),
    ]
    topic = DescribedShareTopic(topic_name="t", partitions=rows)
    broker.answers[DescribeShareGroupOffsetsRequest] = lambda _: DescribeShareGroupOffsetsResponse(
        groups=[DescribedShareOffsets(group_id="s", topics=[topic])]
    )
    member = ShareMember(
        member_id="m",
        client_id="app",
        client_host="/10.0.0.1",
        assignment=Assignment(topic_partitions=[TopicPartitions(topic_name="t", partitions=[0, 1])]),
    )
    broker.answers[ShareGroupDescribeRequest] = lambda _: ShareGroupDescribeResponse(
        groups=[DescribedShareGroup(group_id="s", members=[member, member])]
    )
    found = broker.read().groups["s"]

    assert (found.offsets, found.lags) == ({"t": {0: 4}}, {"t": {0: 2}})
    assert (found.members, found.assigned) == (2, {"t": dict.fromkeys((0, 1), READER)})
    assert not any(isinstance(each, OffsetFetchRequest) for each in broker.asked)


def test_a_broker_that_does_not_know_the_lag_of_share_groups() -> None:
    found = Broker({"s": ("share", "Stable")}).read().groups["s"]

    assert (found.offsets, found.lags, found.members) == ({}, None, 0)


def test_a_streams_group_reads_a_partition_of_each_source_topic_in_a_task() -> None:
    broker = Broker({"s": ("streams", "Stable")})
    broker.answers[OffsetFetchRequest] = offsets(s=(0, 5))
    topology = Topology(
        subtopologies=[
            Subtopology(
                subtopology_id="0",
                source_topics=["orders"],
                repartition_source_topics=[TopicInfo(name="by-customer")],
            ),
            Subtopology(subtopology_id="1", source_topics=["customers"]),
        ]
    )
    tasks = Tasks(
        active_tasks=[TaskIds(subtopology_id="0", partitions=[0, 2]), TaskIds(subtopology_id="gone")],
        standby_tasks=[TaskIds(subtopology_id="1", partitions=[0])],
    )
    member = StreamsMember(member_id="m", client_id="app", client_host="/10.0.0.1", assignment=tasks)
    broker.answers[StreamsGroupDescribeRequest] = lambda _: StreamsGroupDescribeResponse(
        groups=[DescribedStreamsGroup(group_id="s", topology=topology, members=[member, StreamsMember()])]
    )
    found = broker.read().groups["s"]

    assert found.offsets == {"t": {0: 5}}
    read = dict.fromkeys((0, 2), READER)
    assert (found.members, found.assigned) == (2, {"orders": read, "by-customer": read})
