"""LeaveGroup: who may go, who is sent away, and what follows."""

from __future__ import annotations

import pytest

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.classic_groups import DELAY_MS, ClassicWorld


@pytest.fixture
def world() -> ClassicWorld:
    return ClassicWorld()


@pytest.mark.parametrize(
    ("group_id", "code"), [("", ErrorCode.INVALID_GROUP_ID), ("other", ErrorCode.UNKNOWN_MEMBER_ID)]
)
def test_leaving_no_group_is_refused(world: ClassicWorld, group_id: str, code: ErrorCode) -> None:
    with pytest.raises(ApiError) as refused:
        world.leave(("somebody", None), group_id=group_id)

    assert refused.value.code == code


def test_the_last_member_leaves_an_empty_group_of_a_new_generation(world: ClassicWorld) -> None:
    (member,) = world.stable()

    errors = world.leave((member.member_id, None))

    assert errors == [ErrorCode.NONE]
    assert (world.group.state_name, world.group.generation) == ("Empty", 2)
    assert world.group.empty_since_ms == world.clock.now_ms()
    assert len(world.clock.timer) == 0


def test_a_stranger_cannot_leave_and_nothing_follows(world: ClassicWorld) -> None:
    world.stable()

    errors = world.leave(("stranger", None), ("", None), ("", "nobody"), ("stranger", "nobody"))

    assert errors == [ErrorCode.UNKNOWN_MEMBER_ID] * 4
    assert world.group.state_name == "Stable"


def test_one_rebalance_follows_however_many_leave(world: ClassicWorld) -> None:
    joined = world.stable(3)

    errors = world.leave(*((member.member_id, None) for member in joined[:2]), ("stranger", None))

    assert errors == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(world.group.members) == [joined[2].member_id]
    assert world.group.leader_id == joined[2].member_id
    assert world.group.state_name == "PreparingRebalance"


def test_an_operator_sends_a_static_member_away_by_its_instance_id(world: ClassicWorld) -> None:
    world.static("one", "two")

    errors = world.leave(("", "two"))

    assert errors == [ErrorCode.NONE]
    assert list(world.group.static_members) == ["one"]


def test_a_static_member_leaves_under_both_of_its_ids(world: ClassicWorld) -> None:
    (member,) = world.static("one")

    errors = world.leave((member.member_id, "one"))

    assert errors == [ErrorCode.NONE]
    assert not world.group.static_members


def test_a_pending_id_may_leave(world: ClassicWorld) -> None:
    member_id = world.pending_id()

    errors = world.leave((member_id, None))

    assert errors == [ErrorCode.NONE]
    assert not world.groups.groups
    assert len(world.clock.timer) == 0


def test_a_rebalance_does_not_wait_for_a_pending_id_that_left(world: ClassicWorld) -> None:
    (leader,) = world.stable()
    member_id = world.pending_id()
    again = world.join(leader.member_id)

    world.leave((member_id, None))

    assert again.answer.generation_id == 2


def test_a_rebalance_does_not_wait_for_a_member_that_left(world: ClassicWorld) -> None:
    leader, follower = world.stable(2)
    again = world.join(leader.member_id)

    world.leave((follower.member_id, None))

    assert again.answer.generation_id == 2


def test_a_parked_join_of_a_member_that_leaves_is_answered(world: ClassicWorld) -> None:
    joined = world.join(instance_id="one")

    world.leave(("", "one"))

    assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_parked_sync_of_a_member_that_leaves_is_answered(world: ClassicWorld) -> None:
    _, follower = world.completing(2)
    waiting = world.sync(follower)

    world.leave((follower.member_id, None))

    assert waiting.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_when_everybody_left_in_the_initial_delay_the_group_is_empty_after_it(world: ClassicWorld) -> None:
    joined = world.join(instance_id="one")
    world.leave(("", "one"))

    world.clock.advance(DELAY_MS)

    assert len(joined.answers) == 1
    assert (world.group.state_name, world.group.generation) == ("Empty", 1)
