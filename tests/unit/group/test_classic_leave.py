"""LeaveGroup: which members may leave or be removed, and the rebalance that follows."""

from __future__ import annotations

import pytest

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.classic_groups import DELAY_MS, GroupHost


@pytest.fixture
def host() -> GroupHost:
    return GroupHost()


def test_an_empty_group_id_is_refused(host: GroupHost) -> None:
    with pytest.raises(ApiError) as refused:
        host.leave(("somebody", None), group_id="")

    assert refused.value.code == ErrorCode.INVALID_GROUP_ID


def test_each_member_of_an_unknown_group_is_unknown(host: GroupHost) -> None:
    errors = host.leave(("somebody", None), ("", "instance"), group_id="other")

    assert errors == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    assert "other" not in host.groups.groups


def test_the_last_leave_makes_the_group_empty_in_a_new_generation(host: GroupHost) -> None:
    (member,) = host.stable()

    errors = host.leave((member.member_id, None))

    assert errors == [ErrorCode.NONE]
    assert (host.group.state_name, host.group.generation) == ("Empty", 2)
    assert host.group.empty_since_ms == host.clock.now_ms()
    assert len(host.clock.timer) == 0


def test_an_unknown_member_cannot_leave_and_changes_nothing(host: GroupHost) -> None:
    host.stable()

    errors = host.leave(("stranger", None), ("", None), ("", "nobody"), ("stranger", "nobody"))

    assert errors == [ErrorCode.UNKNOWN_MEMBER_ID] * 4
    assert host.group.state_name == "Stable"


def test_any_number_of_leaving_members_starts_one_rebalance(host: GroupHost) -> None:
    joined = host.stable(3)

    errors = host.leave(*((member.member_id, None) for member in joined[:2]), ("stranger", None))

    assert errors == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(host.group.members) == [joined[2].member_id]
    assert host.group.leader_id == joined[2].member_id
    assert host.group.state_name == "PreparingRebalance"


def test_an_operator_can_remove_a_static_member_by_its_instance_id(host: GroupHost) -> None:
    host.static("one", "two")

    errors = host.leave(("", "two"))

    assert errors == [ErrorCode.NONE]
    assert list(host.group.static_members) == ["one"]


def test_a_static_member_can_leave_with_both_of_its_ids(host: GroupHost) -> None:
    (member,) = host.static("one")

    errors = host.leave((member.member_id, "one"))

    assert errors == [ErrorCode.NONE]
    assert not host.group.static_members


def test_a_pending_id_can_leave(host: GroupHost) -> None:
    member_id = host.pending_id()

    errors = host.leave((member_id, None))

    assert errors == [ErrorCode.NONE]
    assert not host.groups.groups
    assert len(host.clock.timer) == 0


def test_a_rebalance_does_not_wait_for_a_pending_id_that_left(host: GroupHost) -> None:
    (leader,) = host.stable()
    member_id = host.pending_id()
    again = host.join(leader.member_id)

    host.leave((member_id, None))

    assert again.answer.generation_id == 2


def test_a_rebalance_does_not_wait_for_a_member_that_left(host: GroupHost) -> None:
    leader, follower = host.stable(2)
    again = host.join(leader.member_id)

    host.leave((follower.member_id, None))

    assert again.answer.generation_id == 2


def test_a_waiting_join_of_a_leaving_member_is_answered(host: GroupHost) -> None:
    joined = host.join(instance_id="one")

    host.leave(("", "one"))

    assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_waiting_sync_of_a_leaving_member_is_answered(host: GroupHost) -> None:
    _, follower = host.completing(2)
    waiting = host.sync(follower)

    host.leave((follower.member_id, None))

    assert waiting.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_empties_during_the_initial_delay_is_empty_after_it(host: GroupHost) -> None:
    joined = host.join(instance_id="one")
    host.leave(("", "one"))

    host.clock.advance(DELAY_MS)

    assert len(joined.answers) == 1
    assert (host.group.state_name, host.group.generation) == ("Empty", 1)
