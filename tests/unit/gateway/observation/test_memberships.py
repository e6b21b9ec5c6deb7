"""Metrics of group members, from what passes between them and the coordinator."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from odradek.gateway.observation.membership import NO_MEMBERSHIP_AFTER_MS
from odradek.telemetry.goodbyes import GROUP, TELL_MS
from odradek.wire.codec import encode
from odradek.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from odradek.wire.messages.consumer_protocol import ConsumerProtocolAssignment, TopicPartition
from odradek.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from support.observed import INTERVAL_MS, Pair, Stage, value

COORDINATOR = "org.apache.kafka.consumer.coordinator."
ASSIGNED = COORDINATOR + "assigned.partitions"
OLD, NEW = 0, 1
VERSIONS = {OLD: (2, 1, 1, 1), NEW: (9, 5, 5, 4)}
"""Versions of JoinGroup, SyncGroup, LeaveGroup and Heartbeat: plain and flexible."""


def assignment(*counts: int) -> bytes:
    """An assignment of so many partitions of each topic."""
    topics = [
        TopicPartition(topic=f"topic-{index}", partitions=list(range(number)))
        for index, number in enumerate(counts)
    ]
    return struct.pack(">h", 0) + encode(ConsumerProtocolAssignment(assigned_partitions=topics), 0)


def join(pair: Pair, *counts: int, age: int = NEW, member_id: str = "m-1", took_ms: int = 0) -> None:
    """Join a group and get an assignment."""
    joining, syncing, _, _ = VERSIONS[age]
    pair.send(JoinGroupRequest(group_id="g", member_id=member_id, protocol_type="consumer"), joining)
    pair.answer(JoinGroupResponse(member_id=member_id), joining)
    pair.send(SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id), syncing)
    pair.stage.clock.advance(took_ms)
    pair.answer(SyncGroupResponse(assignment=assignment(*counts)), syncing)


def window(stage: Stage) -> list[Any]:
    """The data points of the window that ends next."""
    before = len(stage.records)
    stage.clock.advance(INTERVAL_MS)
    return stage.points(before)


@pytest.mark.parametrize("age", [OLD, NEW])
def test_partitions_of_a_classic_member(age: int) -> None:
    stage = Stage()
    join(stage.pair(), 3, 4, age=age)

    points = window(stage)

    assert value(points, ASSIGNED) == 7
    assert points[0].resource["group_id"] == "g"
    assert points[0].resource["group_member_id"] == "m-1"


def test_partitions_stay_from_window_to_window() -> None:
    stage = Stage()
    join(stage.pair(), 3)
    window(stage)

    assert value(window(stage), ASSIGNED) == 3


def test_members_of_one_client_add_up() -> None:
    stage = Stage()
    join(stage.pair(), 3, member_id="m-1")
    join(stage.pair(), 2, member_id="m-2")

    points = window(stage)

    assert value(points, ASSIGNED) == 5
    assert points[0].resource["group_id"] == "g"
    assert "group_member_id" not in points[0].resource


@pytest.mark.parametrize("age", [OLD, NEW])
def test_a_member_that_leaves_has_no_partitions(age: int) -> None:
    stage = Stage()
    pair = stage.pair()
    join(pair, 3, age=age)
    version = VERSIONS[age][2]
    request = LeaveGroupRequest(group_id="g", member_id="m-1", members=[MemberIdentity(member_id="m-1")])
    pair.exchange(request, LeaveGroupResponse(), version)

    assert value(window(stage), ASSIGNED) == 0


@pytest.mark.parametrize("code", [25, 82, 110])
def test_a_member_that_was_expelled_has_no_partitions(code: int) -> None:
    stage = Stage()
    pair = stage.pair()
    join(pair, 3)
    pair.exchange(HeartbeatRequest(group_id="g", member_id="m-1"), HeartbeatResponse(error_code=code), 4)

    assert value(window(stage), ASSIGNED) == 0


def test_a_member_without_a_word_is_forgotten() -> None:
    stage = Stage()
    pair = stage.pair()
    join(pair, 3)
    stage.clock.advance(NO_MEMBERSHIP_AFTER_MS // 2)
    pair.exchange(HeartbeatRequest(group_id="g", member_id="m-1"), HeartbeatResponse(), 4)
    stage.clock.advance(NO_MEMBERSHIP_AFTER_MS // 2)
    assert value(window(stage), ASSIGNED) == 3

    stage.clock.advance(NO_MEMBERSHIP_AFTER_MS)

    assert value(window(stage), ASSIGNED) == 0


def test_a_rebalance_lasts_from_join_to_sync() -> None:
    stage = Stage()
    pair = stage.pair()
    join(pair, 3, took_ms=40)
    join(pair, 2, took_ms=20)

    points = window(stage)

    assert value(points, COORDINATOR + "rebalance.latency.avg") == 30
    assert value(points, COORDINATOR + "rebalance.latency.max") == 40
    assert value(points, COORDINATOR + "rebalance.latency.total") == 60


def test_a_rebalance_begins_with_the_heartbeat_that_announces_it() -> None:
    stage = Stage()
    pair = stage.pair()
    join(pair, 3, took_ms=10)
    pair.exchange(HeartbeatRequest(group_id="g", member_id="m-1"), HeartbeatResponse(error_code=27), 4)
    stage.clock.advance(50)
    join(pair, 3, took_ms=10)

    assert value(window(stage), COORDINATOR + "rebalance.latency.max") == 60


def test_commit_latency() -> None:
    stage = Stage()
    pair = stage.pair()
    join(pair, 1)
    for latency_ms in (2, 8):
        pair.exchange(OffsetCommitRequest(), OffsetCommitResponse(), 8, latency_ms=latency_ms)

    points = window(stage)

    assert value(points, COORDINATOR + "commit.latency.avg") == 5
    assert value(points, COORDINATOR + "commit.latency.max") == 8


def heartbeat(
    pair: Pair, epoch: int, *, owned: int | None = None, assigned: int | None = None, code: int = 0
) -> None:
    """A heartbeat of a member of the consumer protocol."""

    def partitions(number: int) -> list[TopicPartitions]:
        return [TopicPartitions(topic_id=bytes(15) + b"t", partitions=list(range(number)))]

    pair.exchange(
        ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m-1",
            member_epoch=epoch,
            subscribed_topic_names=["orders"] if epoch == 0 else None,
            topic_partitions=None if owned is None else partitions(owned),
        ),
        ConsumerGroupHeartbeatResponse(
            error_code=code,
            member_id="m-1",
            assignment=None if assigned is None else Assignment(topic_partitions=partitions(assigned)),
        ),
        1,
    )


def test_partitions_and_rebalance_of_the_consumer_protocol() -> None:
    stage = Stage()
    pair = stage.pair()
    heartbeat(pair, 0, assigned=4)
    stage.clock.advance(70)
    heartbeat(pair, 1)
    stage.clock.advance(30)
    heartbeat(pair, 1, owned=4)

    points = window(stage)

    assert value(points, ASSIGNED) == 4
    assert value(points, COORDINATOR + "rebalance.latency.total") == 100
    assert points[0].resource["group_id"] == "g"


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (-2, 0), (1, 25), (1, 82), (1, 110)])
def test_the_end_of_a_membership_of_the_consumer_protocol(epoch: int, code: int) -> None:
    stage = Stage()
    pair = stage.pair()
    heartbeat(pair, 0, assigned=4)
    heartbeat(pair, epoch, code=code)

    assert value(window(stage), ASSIGNED) == 0


def test_a_frame_that_is_cut_short_leaves_the_others_in_step() -> None:
    stage = Stage()
    pair = stage.pair()
    pair.head_bytes = 12
    pair.exchange(HeartbeatRequest(group_id="g", member_id="m-1"), HeartbeatResponse(), 4)
    pair.head_bytes = 1 << 20
    join(pair, 3)

    assert value(window(stage), ASSIGNED) == 3


def leave(pair: Pair, age: int = NEW, member_id: str = "m-1", *, answered: bool = True) -> None:
    leaving = VERSIONS[age][2]
    request = LeaveGroupRequest(
        group_id="g", member_id=member_id, members=[MemberIdentity(member_id=member_id)]
    )
    pair.send(request, leaving)
    if answered:
        pair.answer(LeaveGroupResponse(), leaving)


@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("age", [OLD, NEW])
def test_a_member_that_leaves_and_closes_ends_with_the_labels_it_had(age: int, answered: bool) -> None:
    stage = Stage()
    pair = stage.pair()
    join(pair, 2, age=age)
    stage.clock.advance(INTERVAL_MS)
    leave(pair, age, answered=answered)
    pair.close()
    stage.clock.advance(INTERVAL_MS)

    assert [push.payload.terminating for push in stage.records] == [False, True]
    labels = {tuple(sorted(point.resource.items())) for point in stage.points()}
    assert labels == {(("group_id", "g"), ("group_member_id", "m-1"), ("observed", "true"))}


def test_a_member_that_closes_without_leaving_is_lost() -> None:
    stage = Stage()
    pair = stage.pair()
    join(pair, 2)
    stage.clock.advance(INTERVAL_MS)
    pair.close()
    stage.clock.advance(INTERVAL_MS)

    assert [push.payload.terminating for push in stage.records] == [False, False]
    assert stage.observation.clients == {}

    stage.clock.advance(TELL_MS - INTERVAL_MS)
    assert stage.telemetry.lost == [(stage.records[0].payload.client_instance_id, GROUP)]


def test_a_lost_member_whose_place_is_taken_elsewhere_has_left() -> None:
    stage = Stage()
    pair = stage.pair()
    join(pair, 2)
    stage.clock.advance(INTERVAL_MS)
    pair.close()
    stage.clock.advance(INTERVAL_MS)

    join(stage.pair(address="10.0.0.8"), 2)

    (goodbye,) = stage.telemetry.goodbyes
    assert goodbye.payload.client_instance_id == stage.records[0].payload.client_instance_id
    assert goodbye.payload.terminating
    assert goodbye.observed


def test_a_lost_member_that_comes_back_goes_on() -> None:
    stage = Stage()
    pair = stage.pair()
    join(pair, 2)
    stage.clock.advance(INTERVAL_MS)
    pair.close()
    stage.clock.advance(INTERVAL_MS)

    join(stage.pair(port=40_001), 2)
    stage.clock.advance(INTERVAL_MS)

    assert stage.telemetry.goodbyes == []
    assert len({push.payload.client_instance_id for push in stage.records}) == 1


def test_a_stream_thread_that_closes_has_left() -> None:
    stage = Stage()
    pair = stage.pair("app-StreamThread-1-consumer")
    join(pair, 2)
    stage.clock.advance(INTERVAL_MS)
    pair.close()
    stage.clock.advance(INTERVAL_MS)

    assert stage.records[-1].payload.terminating


def test_two_members_under_one_name_share_the_label_of_their_group() -> None:
    stage = Stage()
    pair = stage.pair()
    join(pair, 2)
    join(pair, 2, member_id="m-2")

    labels = {tuple(sorted(point.resource.items())) for point in window(stage)}

    assert labels == {(("group_id", "g"), ("observed", "true"))}
