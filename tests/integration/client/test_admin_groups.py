from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from odradek.client.errors import RequestFailed, UnsupportedVersion
from odradek.client.group_descriptions import GroupDescription
from odradek.client.group_offsets import CommittedOffset
from odradek.wire.codec import encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages import consumer_group_describe as consumer
from odradek.wire.messages import describe_groups as classic
from odradek.wire.messages.consumer_protocol import ConsumerProtocolAssignment, TopicPartition
from odradek.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from odradek.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from odradek.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from odradek.wire.types import between
from support.scripted_broker import Answer
from support.scripted_cluster import scripted_cluster


def listed(request: ListGroupsRequest) -> ListGroupsResponse:
    return ListGroupsResponse(
        groups=[
            ListedGroup(group_id="g", protocol_type="consumer", group_state="Stable", group_type="consumer"),
            ListedGroup(group_id="c", protocol_type="connect", group_state="Empty", group_type="classic"),
            ListedGroup(group_id="s", protocol_type="consumer", group_state="Empty", group_type="share"),
            ListedGroup(group_id="o", group_state="Empty", group_type="classic"),
        ]
    )


def test_groups_are_listed_with_their_types_and_states() -> None:
    with scripted_cluster({ListGroupsRequest: listed}) as (broker, admin):
        found = {group.group_id: group for group in admin.list_groups(states=["Stable"], types=["Consumer"])}

        (request,) = broker.of(ListGroupsRequest)
    assert (found["g"].state, found["g"].type) == ("Stable", "Consumer")
    assert {name for name, group in found.items() if group.consumes} == {"g", "o"}
    assert (request.states_filter, request.types_filter) == (["Stable"], ["Consumer"])


def test_a_broker_without_states_lists_names_only() -> None:
    with scripted_cluster({ListGroupsRequest: listed}, list_groups=between(0, 3)) as (_, admin):
        found = admin.list_groups()

        with pytest.raises(UnsupportedVersion, match="ListGroups needs a version from 4"):
            admin.list_groups(states=["Stable"])
    assert {group.state for group in found} == {"Unknown"}


def described_by_consumer_protocol(
    request: consumer.ConsumerGroupDescribeRequest,
) -> consumer.ConsumerGroupDescribeResponse:
    """A broker with the group ``new`` and no other."""
    assignment = consumer.Assignment(
        topic_partitions=[
            consumer.TopicPartitions(topic_name="t", partitions=[1, 0]),
            consumer.TopicPartitions(topic_name="a", partitions=[2]),
        ]
    )
    member = consumer.Member(
        member_id="m",
        instance_id="i",
        member_epoch=3,
        client_id="c",
        client_host="/h",
        assignment=assignment,
        member_type=1,
    )
    known = consumer.DescribedGroup(
        group_id="new",
        group_state="Stable",
        group_epoch=5,
        assignment_epoch=4,
        assignor_name="uniform",
        members=[member],
    )
    return consumer.ConsumerGroupDescribeResponse(
        groups=[
            known
            if name == "new"
            else consumer.DescribedGroup(
                group_id=name, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message="not here"
            )
            for name in request.group_ids
        ]
    )


def classic_assignment(version: int = 0) -> bytes:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="t", partitions=[1, 0])]
    )
    return struct.pack(">h", version) + encode(assignment, min(version, 3))


def described_by_classic_protocol(request: classic.DescribeGroupsRequest) -> classic.DescribeGroupsResponse:
    """A broker with the group ``old``; others are dead."""
    member = classic.DescribedGroupMember(
        member_id="m", client_id="c", client_host="/h", member_assignment=classic_assignment()
    )
    known = classic.DescribedGroup(
        group_id="old",
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=[member],
    )
    return classic.DescribeGroupsResponse(
        groups=[
            known if name == "old" else classic.DescribedGroup(group_id=name, group_state="Dead")
            for name in request.groups
        ]
    )


BOTH: dict[type[Any], Answer] = {
    consumer.ConsumerGroupDescribeRequest: described_by_consumer_protocol,
    classic.DescribeGroupsRequest: described_by_classic_protocol,
}


def test_groups_of_both_protocols_are_described() -> None:
    with scripted_cluster(BOTH) as (broker, admin):
        found = admin.describe_groups(["old", "nope", "new"])

        (asked,) = broker.of(classic.DescribeGroupsRequest)
        port = broker.port
    new, old, nope = found["new"], found["old"], found["nope"]
    assert isinstance(new, GroupDescription)
    assert isinstance(old, GroupDescription)
    assert isinstance(nope, RequestFailed)
    assert list(found) == ["old", "nope", "new"]
    assert asked.groups == ["old", "nope"]
    assert (new.assignor, new.epoch, new.assignment_epoch) == ("uniform", 5, 4)
    assert (old.assignor, old.epoch, old.protocol_type) == ("range", None, "consumer")
    assert (old.coordinator.id, old.coordinator.address.port) == (1, port)
    assert nope.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_members_are_described_with_their_assignments() -> None:
    with scripted_cluster(BOTH) as (_, admin):
        found = admin.describe_groups(["old", "new"])

    new, old = found["new"], found["old"]
    assert isinstance(new, GroupDescription)
    assert isinstance(old, GroupDescription)
    (modern,), (former,) = new.members, old.members
    assert modern.assignment == [("a", 2), ("t", 0), ("t", 1)]
    assert (modern.target, modern.epoch, modern.upgraded, modern.instance_id) == ([], 3, True, "i")
    assert former.assignment == [("t", 0), ("t", 1)]
    assert (former.target, former.epoch, former.upgraded, former.instance_id) == (None, None, None, None)


def test_a_broker_before_the_consumer_protocol_gets_the_classic_request() -> None:
    answers = {classic.DescribeGroupsRequest: described_by_classic_protocol}

    with scripted_cluster(answers) as (_, admin):
        found = admin.describe_groups(["old"])

    assert isinstance(found["old"], GroupDescription)


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        (b"", []),
        (b"\0", []),
        (b"\0\0\0\0\0\7garbage", []),
        (classic_assignment(3), [("t", 0), ("t", 1)]),
        (classic_assignment(9), [("t", 0), ("t", 1)]),
    ],
)
def test_an_unreadable_assignment_is_ignored(assignment: bytes, expected: list[tuple[str, int]]) -> None:
    member = classic.DescribedGroupMember(member_id="m", member_assignment=assignment)
    group = classic.DescribedGroup(
        group_id="g", group_state="Stable", protocol_type="consumer", members=[member]
    )
    answers = {classic.DescribeGroupsRequest: lambda _: classic.DescribeGroupsResponse(groups=[group])}

    with scripted_cluster(answers) as (_, admin):
        found = admin.describe_groups(["g"])["g"]

    assert isinstance(found, GroupDescription)
    assert found.members[0].assignment == expected


def deleted(request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """The group ``busy`` cannot be deleted."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=name, error_code=ErrorCode.NON_EMPTY_GROUP if name == "busy" else 0)
            for name in request.groups_names
        ]
    )


@pytest.mark.parametrize("version", [3, 4, 6])
def test_coordinators_are_found_one_by_one_or_together(version: int) -> None:
    with scripted_cluster({DeleteGroupsRequest: deleted}, find_coordinator=between(0, version)) as (
        broker,
        admin,
    ):
        outcomes = admin.delete_groups(["idle", "busy"])

        asked = broker.of(FindCoordinatorRequest)
    assert {name: outcome and outcome.code for name, outcome in outcomes.items()} == {
        "idle": None,
        "busy": ErrorCode.NON_EMPTY_GROUP,
    }
    assert len(asked) == (2 if version < 4 else 1)
    assert [row.key for row in asked] + [key for row in asked for key in row.coordinator_keys] == (
        ["idle", "busy"] if version < 4 else ["", "idle", "busy"]
    )


def test_a_missing_coordinator_is_waited_for() -> None:
    codes = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE]

    with scripted_cluster({DeleteGroupsRequest: deleted}) as (broker, admin):
        there = broker.port

        def found(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
            row = Coordinator(key="g", node_id=1, host="127.0.0.1", port=there, error_code=codes.pop(0))
            return FindCoordinatorResponse(coordinators=[row])

        broker.answers = {**broker.answers, FindCoordinatorRequest: found}
        outcomes = admin.delete_groups(["g"])

        assert len(broker.of(DeleteGroupsRequest)) == 1
    assert outcomes == {"g": None}
    assert codes == []


def fetched(request: OffsetFetchRequest) -> OffsetFetchResponse:
    """One offset, and one partition without; in both formats."""
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name="t",
                partitions=[
                    OffsetFetchResponsePartition(partition_index=0, committed_offset=5, metadata=None),
                    OffsetFetchResponsePartition(partition_index=1, committed_offset=-1),
                ],
            )
        ],
        groups=[
            OffsetFetchResponseGroup(
                group_id="g",
                topics=[
                    OffsetFetchResponseTopics(
                        name="t",
                        partitions=[
                            OffsetFetchResponsePartitions(partition_index=0, committed_offset=5),
                            OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
                        ],
                    )
                ],
            )
        ],
    )


@pytest.mark.parametrize(("last", "used"), [(2, 2), (7, 7), (8, 8), (10, 9)])
@pytest.mark.parametrize("partitions", [None, [("t", 0), ("t", 1)]])
def test_offsets_are_fetched_by_name_in_every_version(last: int, used: int, partitions: Any) -> None:
    with scripted_cluster({OffsetFetchRequest: fetched}, offset_fetch=between(1, last)) as (broker, admin):
        found = admin.offset_fetch("g", partitions)

        (request,) = broker.of(OffsetFetchRequest)
        assert broker.versions_of(OffsetFetchRequest) == [used]
    asked = request.groups[0] if used >= 8 else request
    rows = None if asked.topics is None else [(row.name, row.partition_indexes) for row in asked.topics]
    assert found == {("t", 0): CommittedOffset(5)}
    assert asked.group_id == "g"
    assert rows == (None if partitions is None else [("t", [0, 1])])


@pytest.mark.parametrize(("last", "sizes"), [(10, [100, 50]), (7, [1] * 150)])
def test_many_groups_are_asked_for_in_hundreds(last: int, sizes: list[int]) -> None:
    names = [f"g-{number}" for number in range(150)]
    refused = "g-120"

    def answer(request: OffsetFetchRequest) -> OffsetFetchResponse:
        response = fetched(request)
        (usual,) = response.groups
        response.groups = [replace(usual, group_id=each.group_id) for each in request.groups]
        for row in response.groups:
            if row.group_id == refused:
                row.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        if request.group_id == refused:
            response.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return response

    versions = between(1, last)
    with scripted_cluster({OffsetFetchRequest: answer}, offset_fetch=versions) as (broker, admin):
        found = admin.offset_fetch_of_each(names)

        asked = broker.of(OffsetFetchRequest)
    assert [len(each.groups) or 1 for each in asked] == sizes
    error = found.pop(refused)
    assert isinstance(error, RequestFailed)
    assert error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert found == {each: {("t", 0): CommittedOffset(5)} for each in names if each != refused}


def test_stable_offsets_are_waited_for_on_request() -> None:
    codes = [ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.NONE]

    def answer(request: OffsetFetchRequest) -> OffsetFetchResponse:
        response = fetched(request)
        response.groups[0].topics[0].partitions[0].error_code = codes.pop(0)
        return response

    with scripted_cluster({OffsetFetchRequest: answer}) as (broker, admin):
        found = admin.offset_fetch("g", require_stable=True)

        assert [request.require_stable for request in broker.of(OffsetFetchRequest)] == [True, True]
    assert found == {("t", 0): CommittedOffset(5)}


def committed(request: OffsetCommitRequest, *codes: int) -> OffsetCommitResponse:
    left = list(codes)
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=row.name,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=left.pop(0) if left else 0
                    )
                    for each in row.partitions
                ],
            )
            for row in request.topics
        ]
    )


def test_offsets_are_committed_from_outside_the_group() -> None:
    with scripted_cluster({OffsetCommitRequest: committed}) as (broker, admin):
        admin.offset_commit("g", {("t", 0): CommittedOffset(5, 2, "m"), ("u", 1): CommittedOffset(6)})

        (request,) = broker.of(OffsetCommitRequest)
        assert broker.versions_of(OffsetCommitRequest) == [9]
    first, second = (topic.partitions[0] for topic in request.topics)
    assert (request.group_id, request.member_id, request.generation_id_or_member_epoch) == ("g", "", -1)
    assert (first.committed_offset, first.committed_leader_epoch, first.committed_metadata) == (5, 2, "m")
    assert (second.committed_offset, second.committed_leader_epoch) == (6, -1)


def test_a_group_with_members_keeps_its_offsets() -> None:
    answers = {OffsetCommitRequest: lambda request: committed(request, ErrorCode.UNKNOWN_MEMBER_ID)}

    with (
        scripted_cluster(answers) as (_, admin),
        pytest.raises(RequestFailed, match="t-0: UNKNOWN_MEMBER_ID"),
    ):
        admin.offset_commit("g", {("t", 0): CommittedOffset(5)})


def test_each_deleted_offset_has_a_result() -> None:
    def answer(request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        rows = [
            OffsetDeleteResponsePartition(partition_index=0),
            OffsetDeleteResponsePartition(partition_index=1, error_code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
        ]
        return OffsetDeleteResponse(topics=[OffsetDeleteResponseTopic(name="t", partitions=rows)])

    with scripted_cluster({OffsetDeleteRequest: answer}) as (_, admin):
        outcomes = admin.offset_delete("g", [("t", 0), ("t", 1)])

    refused = outcomes["t", 1]
    assert outcomes["t", 0] is None
    assert refused is not None
    assert refused.code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_offsets_of_an_unknown_group_cannot_be_deleted() -> None:
    def answer(request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)

    with scripted_cluster({OffsetDeleteRequest: answer}) as (_, admin):
        outcomes = admin.offset_delete("nope", [("t", 0), ("t", 1)])

    assert {outcome and outcome.code for outcome in outcomes.values()} == {ErrorCode.GROUP_ID_NOT_FOUND}
