"""Validation of a heartbeat and of the member that sends it (KIP-1071)."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.group.group_config import GroupConfig
from odradek.group.streams_config import StreamsGroupConfig
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.streams_group_heartbeat import Topology
from support.streams_groups import GROUP, StreamsGroups, active, statuses, tasks, topology


def refused(groups: StreamsGroups, send: Any, *args: Any, **fields: Any) -> tuple[ErrorCode, str | None]:
    with pytest.raises(ApiError) as refusal:
        send(*args, **fields)
    return refusal.value.code, refusal.value.message


def with_regex() -> Topology:
    found = topology("words")
    found.subtopologies[0].source_topic_regex = ["a.*"]
    return found


def with_counted_changelog() -> Topology:
    found = topology("words", changelog="log")
    found.subtopologies[0].state_changelog_topics[0].partitions = 2
    return found


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"joined": with_regex()}, 42, "Regular expressions for source topics are not supported yet."),
        ({"member_id": " "}, 42, "MemberId can't be empty."),
        ({"group_id": ""}, 42, "GroupId can't be empty."),
        ({"instance_id": ""}, 42, "InstanceId can't be empty."),
        ({"rack_id": " "}, 42, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, 42, "RebalanceTimeoutMs must be provided in first request."),
        ({"active_tasks": None}, 42, "ActiveTasks must be empty when (re-)joining."),
        ({"standby_tasks": tasks(0)}, 42, "StandbyTasks must be empty when (re-)joining."),
        ({"warmup_tasks": tasks(0)}, 42, "WarmupTasks must be empty when (re-)joining."),
        ({"topology": None}, 42, "Topology must be non-null when (re-)joining."),
        (
            {"joined": with_counted_changelog()},
            130,
            "Changelog topic log must have an undefined partition count, but it is set to 2.",
        ),
        ({"joined": topology()}, 130, "No source topics found for subtopology s"),
        ({"member_epoch": -2}, 42, "InstanceId can't be null."),
        ({"member_epoch": -3}, 42, "MemberEpoch is -3, but must be greater than or equal to -2."),
        (
            {"member_epoch": 1, "active_tasks": None},
            42,
            "If one task-type is non-null, all must be non-null.",
        ),
        ({"member_epoch": 1}, 42, "Topology can only be provided when (re-)joining."),
        ({"member_epoch": 1, "topology": None}, 69, f"Streams group {GROUP} not found."),
        ({"member_epoch": -1, "topology": None}, 69, f"Streams group {GROUP} not found."),
    ],
)
def test_an_invalid_request_is_refused(fields: dict[str, Any], code: int, message: str) -> None:
    groups = StreamsGroups(words=1)
    member_id = fields.pop("member_id", "m1")

    assert refused(groups, groups.join, member_id, **fields) == (code, message)
    assert GROUP not in groups.coordinator.groups


def test_a_member_id_may_be_long() -> None:
    groups = StreamsGroups(words=1)

    assert groups.join("m" * 40).member_id == "m" * 40


def test_a_full_group_takes_no_more_members() -> None:
    groups = StreamsGroups(GroupConfig(streams=StreamsGroupConfig(max_size=1)), words=1)
    groups.join("m1")

    assert refused(groups, groups.join, "m2") == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The streams group has reached its maximum capacity of 1 members.",
    )


def test_an_unknown_member_is_refused() -> None:
    groups = StreamsGroups(words=1)
    groups.join("m1")

    assert refused(groups, groups.beat, "m2", 2)[0] is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("epoch", "comparison"), [(3, "greater"), (1, "smaller")])
def test_a_wrong_epoch_is_fenced(epoch: int, comparison: str) -> None:
    groups = StreamsGroups(words=1)
    groups.join("m1")

    assert refused(groups, groups.beat, "m1", epoch) == (
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {comparison} member epoch ({epoch}) than the one known by the group "
        "coordinator (2). The member must abandon all its partitions and rejoin.",
    )


def test_the_previous_epoch_is_accepted_with_tasks_that_are_still_assigned() -> None:
    groups = StreamsGroups(words=2)
    groups.join("m1")
    groups.put_topic("words", 3)
    groups.own("m1", 0, 1)

    assert groups.own("m1", 0, 1, epoch=2).member_epoch == 3
    assert refused(groups, groups.beat, "m1", 2)[0] is ErrorCode.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize(
    ("owned", "message"),
    [
        ("z", "Subtopology z does not exist in the topology."),
        ("s", "Task 5 for subtopology s is invalid. Number of tasks for this subtopology: 2"),
    ],
)
def test_tasks_that_the_topology_does_not_have_are_refused(owned: str, message: str) -> None:
    groups = StreamsGroups(words=2)
    groups.join("m1")
    listed = tasks(5)
    listed[0].subtopology_id = owned

    sent = {"active_tasks": listed, "standby_tasks": [], "warmup_tasks": []}
    assert refused(groups, groups.beat, "m1", **sent) == (ErrorCode.INVALID_REQUEST, message)


# -- topologies


def test_another_topology_of_the_same_epoch_is_refused() -> None:
    groups = StreamsGroups(other=1, words=1)
    groups.join("m1")

    for joined in (topology("other"), topology("words", epoch=2)):
        assert refused(groups, groups.join, "m2", joined) == (
            ErrorCode.INVALID_REQUEST,
            "Topology updates are not supported yet.",
        )
    assert list(groups.group.members) == ["m1"]


def test_a_member_with_an_older_topology_joins_and_is_told() -> None:
    groups = StreamsGroups(words=1)
    groups.join("m1", topology("words", epoch=5))

    joined = groups.join("m2", topology("other", epoch=4))

    told = "The member's topology epoch 4 is behind the group's topology epoch 5."
    assert statuses(joined) == [(0, told)]
    assert statuses(groups.beat("m2")) == [(0, told)]


# -- static members


def test_a_static_member_that_left_gets_its_tasks_back() -> None:
    groups = StreamsGroups(words=2)
    groups.join("m1", instance_id="i", process="p")

    assert groups.beat("m1", -2, instance_id="i").member_epoch == -2
    assert active(groups.join("m2", instance_id="i", process="p")) == [0, 1]


def test_an_instance_id_in_use_is_refused() -> None:
    groups = StreamsGroups(words=2)
    groups.join("m1", instance_id="i")

    assert refused(groups, groups.join, "m2", instance_id="i")[0] is ErrorCode.UNRELEASED_INSTANCE_ID
    assert refused(groups, groups.beat, "m2", 2, instance_id="i")[0] is ErrorCode.FENCED_INSTANCE_ID
    assert refused(groups, groups.beat, "m2", 2, instance_id="j")[0] is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_leaves_is_gone() -> None:
    groups = StreamsGroups(words=2)
    groups.join("m1")

    assert groups.beat("m1", -1).member_epoch == -1
    assert refused(groups, groups.beat, "m1", -1)[0] is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.group.state_name == "Empty"
