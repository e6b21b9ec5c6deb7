"""Validation of a heartbeat and of the member that sends it (KIP-848)."""

from __future__ import annotations

import pytest

from odradek.group.group_config import GroupConfig
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from support.consumer_groups import AT_ONCE, GROUP, ConsumerGroups, assigned


def request(**fields: object) -> ConsumerGroupHeartbeatRequest:
    """A valid first heartbeat, except for the given fields."""
    joining: dict[str, object] = {
        "group_id": GROUP,
        "member_id": "m1",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1_000,
        "subscribed_topic_names": ["a"],
        "topic_partitions": [],
    }
    return ConsumerGroupHeartbeatRequest(**{**joining, **fields})  # type: ignore[arg-type]


def refused(groups: ConsumerGroups, sent: ConsumerGroupHeartbeatRequest, version: int = 1) -> ErrorCode:
    with pytest.raises(ApiError) as refusal:
        groups.send(sent, version)
    return refusal.value.code


def beaten(groups: ConsumerGroups, member_id: str, epoch: int, instance_id: str | None = None) -> ErrorCode:
    """The error code that refuses a plain heartbeat."""
    return refused(
        groups,
        ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=member_id, member_epoch=epoch, instance_id=instance_id
        ),
    )


# -- rules for the request


@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": ""},
        {"group_id": " "},
        {"member_id": ""},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": [TopicPartitions(topic_id=bytes(16), partitions=[0])]},
        {"subscribed_topic_names": None},
        {"member_epoch": -2},
        {"member_epoch": -3},
        {"member_epoch": 1, "member_id": ""},
        {"member_epoch": -1, "member_id": ""},
    ],
)
def test_an_invalid_request_is_refused(fields: dict[str, object]) -> None:
    groups = ConsumerGroups(a=1)

    code = refused(groups, request(**fields))

    assert code is ErrorCode.INVALID_REQUEST
    assert GROUP not in groups.coordinator.groups


def test_v0_may_join_without_a_member_id_and_gets_one() -> None:
    groups = ConsumerGroups(a=1)

    answer = groups.send(request(member_id=""), version=0)

    assert answer.member_id
    assert len(answer.member_id) == 22
    assert list(groups.group.members) == [answer.member_id]


def test_v0_needs_its_member_id_after_it_has_joined() -> None:
    groups = ConsumerGroups(a=1)

    code = refused(groups, request(member_id="", member_epoch=1), version=0)

    assert code is ErrorCode.INVALID_REQUEST


def test_an_unknown_assignor_is_unsupported() -> None:
    groups = ConsumerGroups(GroupConfig(consumer_assignors=("range",)), a=1)

    code = refused(groups, request(server_assignor="uniform"))

    assert code is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_an_invalid_expression_is_refused_before_anything_changes() -> None:
    groups = ConsumerGroups(a=1)

    code = refused(groups, request(subscribed_topic_regex="("))

    assert code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert GROUP not in groups.coordinator.groups


def test_an_expression_is_compiled_only_for_a_group_to_read_in() -> None:
    code = refused(ConsumerGroups(a=1), request(member_epoch=1, subscribed_topic_regex="("))

    assert code is ErrorCode.GROUP_ID_NOT_FOUND


def test_v0_needs_no_member_id_to_leave_as_a_static_member() -> None:
    leaving = request(member_id="", member_epoch=-2, instance_id="i")

    code = refused(ConsumerGroups(a=1), leaving, version=0)

    assert code is ErrorCode.GROUP_ID_NOT_FOUND


def test_the_topics_of_an_expression_come_with_the_next_heartbeat() -> None:
    groups = ConsumerGroups(a=1)
    joined = groups.join("m1", regex="a")

    answer = groups.beat("m1", joined.member_epoch)

    assert (joined.member_epoch, assigned(joined)) == (1, set())
    assert (answer.member_epoch, assigned(answer)) == (2, groups.owned("a", 0))


def test_the_topics_of_a_known_expression_come_at_once() -> None:
    groups = ConsumerGroups(a=2)
    groups.beat("m1", groups.join("m1", regex="a").member_epoch)

    assert groups.join("m2", regex="a").member_epoch == 3


def test_the_assignor_that_a_member_asks_for_is_used() -> None:
    groups = ConsumerGroups(a=4)

    groups.join("m1", "a", assignor="range")

    assert groups.group.assignor_name == "range"


# -- which group


@pytest.mark.parametrize("epoch", [1, 7, -1])
def test_only_a_joining_member_creates_a_group(epoch: int) -> None:
    groups = ConsumerGroups(a=1)

    code = beaten(groups, "m1", epoch)

    assert code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_full_group_admits_no_new_member_and_keeps_its_own() -> None:
    groups = ConsumerGroups(GroupConfig(consumer_max_size=1, consumer_assignment_interval_ms=0), a=1)
    groups.join("m1", "a")

    code = refused(groups, request(member_id="m2"))

    assert code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.beat("m1", 2).member_epoch == 2


# -- which member


@pytest.mark.parametrize("epoch", [2, -1])
def test_an_unknown_member_is_refused(epoch: int) -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    code = beaten(groups, "m2", epoch)

    assert code is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("epoch", [1, 3, 99])
def test_another_epoch_is_fenced(epoch: int) -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    code = beaten(groups, "m1", epoch)

    assert code is ErrorCode.FENCED_MEMBER_EPOCH


def grown(groups: ConsumerGroups) -> ConsumerGroupHeartbeatResponse:
    """m1 moves from epoch 2 to 3 and gets b-0 in addition to a-0."""
    groups.join("m1", "a")
    return groups.beat("m1", 2, topics=["a", "b"])


def test_the_previous_epoch_is_accepted_after_a_lost_answer() -> None:
    groups = ConsumerGroups(a=1, b=1)
    grown(groups)

    answer = groups.send(request(member_epoch=2, subscribed_topic_names=["a", "b"], topic_partitions=[]))

    assert answer.member_epoch == 3
    assert assigned(answer) == groups.owned("a", 0) | groups.owned("b", 0)


def test_the_previous_epoch_is_fenced_with_an_unassigned_partition() -> None:
    groups = ConsumerGroups(a=1, b=1)
    grown(groups)
    foreign = [TopicPartitions(topic_id=groups.topics.ids["a"], partitions=[0, 9])]

    code = refused(groups, request(member_epoch=2, topic_partitions=foreign))

    assert code is ErrorCode.FENCED_MEMBER_EPOCH


def test_the_previous_epoch_is_fenced_without_owned_partitions() -> None:
    groups = ConsumerGroups(a=1, b=1)
    grown(groups)

    code = beaten(groups, "m1", 2)

    assert code is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_joins_again_gets_its_whole_assignment() -> None:
    groups = ConsumerGroups(a=2)
    groups.join("m1", "a")

    answer = groups.join("m1", "a")

    assert (answer.member_epoch, assigned(answer)) == (2, groups.owned("a", 0, 1))
    assert len(groups.group.members) == 1


def test_joining_again_confirms_the_pending_revocation() -> None:
    groups = ConsumerGroups(a=2)
    groups.join("m1", "a")
    groups.join("m2", "a")
    groups.beat("m1", 2)

    groups.join("m1", "a")

    assert assigned(groups.beat("m2", 3)) == groups.owned("a", 1)


# -- what is answered


def test_an_unchanged_assignment_is_not_repeated() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    answer = groups.beat("m1", 2, owned=groups.owned("a", 0))

    assert answer.assignment is None


def test_a_full_request_gets_the_whole_assignment() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    answer = groups.send(request(member_epoch=2))

    assert assigned(answer) == groups.owned("a", 0)


def test_fields_left_out_of_a_request_keep_their_values() -> None:
    groups = ConsumerGroups(a=1)
    groups.send(request(rack_id="r1", server_assignor="range"))

    groups.beat("m1", 2)

    member = groups.group.members["m1"]
    assert (member.rack_id, member.server_assignor, member.rebalance_timeout_ms) == ("r1", "range", 1_000)
    assert member.subscribed_topic_names == {"a"}


def test_a_leaving_member_gets_its_epoch_and_is_removed() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    answer = groups.beat("m1", -1)

    assert (answer.member_id, answer.member_epoch, answer.assignment) == ("m1", -1, None)
    assert groups.group.is_empty
    assert groups.group.holders == {}


# -- static members


def test_an_instance_id_in_use_cannot_be_taken() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a", instance_id="i")

    code = refused(groups, request(member_id="m2", instance_id="i"))

    assert code is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_static_member_that_leaves_temporarily_keeps_its_partitions() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a", instance_id="i")

    answer = groups.beat("m1", -2, instance_id="i")

    assert answer.member_epoch == -2
    assert groups.group.holders.keys() == groups.owned("a", 0)
    assert groups.group.group_epoch == 2


def test_a_returning_static_member_keeps_its_place_under_a_new_id() -> None:
    groups = ConsumerGroups(a=2)
    groups.join("m1", "a", instance_id="i")
    groups.beat("m1", -2, instance_id="i")

    answer = groups.join("m2", "a", instance_id="i")

    assert assigned(answer) == groups.owned("a", 0, 1)
    assert answer.member_epoch == groups.group.group_epoch == 2
    assert list(groups.group.members) == ["m2"]


def test_the_former_id_of_a_static_member_is_fenced() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a", instance_id="i")
    groups.beat("m1", -2, instance_id="i")
    groups.join("m2", "a", instance_id="i")

    codes = [beaten(groups, "m1", epoch, "i") for epoch in (2, -1, -2)]

    assert codes == [ErrorCode.FENCED_INSTANCE_ID] * 3


@pytest.mark.parametrize("epoch", [2, -1, -2])
def test_an_unknown_instance_id_is_refused(epoch: int) -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    code = beaten(groups, "m1", epoch, "i")

    assert code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_does_not_return_is_removed_when_its_session_ends() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a", instance_id="i")
    groups.beat("m1", -2, instance_id="i")

    groups.clock.advance(45_000)

    assert groups.group.is_empty
    assert groups.group.static_members == {}


def test_a_static_member_that_leaves_permanently_is_removed_at_once() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a", instance_id="i")

    groups.beat("m1", -1, instance_id="i")

    assert groups.group.is_empty
    assert groups.group.static_members == {}


def test_a_static_member_can_join_again_under_its_own_id() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a", instance_id="i")

    answer = groups.join("m1", "a", instance_id="i")

    assert assigned(answer) == groups.owned("a", 0)


def test_a_member_that_leaves_temporarily_frees_partitions_to_be_revoked() -> None:
    groups = ConsumerGroups(a=2)
    groups.join("m1", "a", instance_id="i")
    groups.join("m2", "a")
    groups.beat("m1", 2, instance_id="i")

    groups.beat("m1", -2, instance_id="i")

    assert assigned(groups.beat("m2", 3)) == groups.owned("a", 1)


def test_a_dynamic_member_can_become_static() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    groups.join("m1", "a", instance_id="i")

    assert groups.group.static_members == {"i": "m1"}
    assert groups.group.holders.keys() == groups.owned("a", 0)


def test_a_member_that_takes_over_another_place_loses_its_own() -> None:
    groups = ConsumerGroups(AT_ONCE, a=2)
    groups.join("m1", "a", instance_id="i")
    groups.join("m2", "a")
    groups.beat("m1", -2, instance_id="i")

    groups.join("m2", "a", instance_id="i")

    assert list(groups.group.members) == ["m2"]
    assert groups.group.static_members == {"i": "m2"}
    assert set(groups.group.holders.values()) == {"m2"}


def test_partitions_of_a_member_that_takes_a_static_place_are_reassigned() -> None:
    groups = ConsumerGroups(t=2)
    epoch = groups.join("gone", "t", instance_id="i").member_epoch
    groups.join("here", "t")
    kept = assigned(groups.beat("gone", epoch, groups.owned("t", 0, 1), instance_id="i"))
    groups.beat("gone", epoch, kept, instance_id="i")
    groups.beat("here", groups.group.members["here"].member_epoch)
    assert len(groups.group.holders) == 2
    groups.beat("gone", -2, instance_id="i")

    joined = groups.join("here", "t", instance_id="i")

    assert assigned(joined) == groups.owned("t", 0, 1)


def test_a_group_becomes_empty_even_if_that_cannot_be_stored() -> None:
    groups = ConsumerGroups(t=2)
    groups.join("m", "t")
    groups.store.connection.execute("pragma query_only = on")

    groups.beat("m", -1)

    assert groups.group.state_name == "Empty"


def test_a_group_that_cannot_be_stored_admits_no_member_and_has_no_timer() -> None:
    groups = ConsumerGroups(t=2)
    groups.store.connection.execute("pragma query_only = on")

    code = refused(groups, request())

    assert code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not groups.coordinator.groups
    assert len(groups.clock.timer) == 0


def test_a_subscription_is_bounded() -> None:
    groups = ConsumerGroups()

    code = refused(groups, request(subscribed_topic_names=["x" * 1023] * 1025))

    assert code == ErrorCode.INVALID_REQUEST
    groups.send(request(subscribed_topic_names=["x" * 1023] * 1024))
