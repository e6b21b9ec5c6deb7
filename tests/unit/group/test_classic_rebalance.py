"""From one generation to the next: which members are waited for, how long, and which are removed."""

from __future__ import annotations

import pytest

from odradek.group.classic_group import ClassicGroup
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.join_group import JoinGroupResponse
from support.classic_groups import DELAY_MS, REBALANCE_MS, GroupHost

LONG_MS = 600_000


@pytest.fixture
def host() -> GroupHost:
    return GroupHost()


def test_a_rebalance_ends_when_every_member_has_joined(host: GroupHost) -> None:
    leader, follower = host.stable(2)
    first = host.join(leader.member_id)

    second = host.join(follower.member_id)

    assert first.answer.generation_id == second.answer.generation_id == 2


def test_a_rebalance_waits_for_pending_ids(host: GroupHost) -> None:
    (leader,) = host.stable()
    member_id = host.pending_id()
    first = host.join(leader.member_id)

    host.join(member_id)

    assert first.answer.generation_id == 2
    assert len(first.answer.members) == 2


def test_a_rebalance_waits_for_pending_ids_until_their_session_ends(host: GroupHost) -> None:
    (leader,) = host.stable(session_ms=LONG_MS)
    host.pending_id()
    first = host.join(leader.member_id, session_ms=LONG_MS)

    host.clock.advance(10_000)

    assert len(first.answer.members) == 1


def test_a_dynamic_member_that_does_not_join_in_time_is_removed(host: GroupHost) -> None:
    leader, follower = host.stable(2, session_ms=LONG_MS)
    first = host.join(leader.member_id, session_ms=LONG_MS)

    host.clock.advance(REBALANCE_MS)

    assert [member.member_id for member in first.answer.members] == [leader.member_id]
    assert host.heartbeat(follower.member_id, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_does_not_join_in_time_stays(host: GroupHost) -> None:
    leader, follower = host.static("one", "two", session_ms=LONG_MS)
    first = host.join(leader.member_id, instance_id="one", session_ms=LONG_MS)

    host.clock.advance(REBALANCE_MS)

    assert [member.member_id for member in first.answer.members] == [leader.member_id, follower.member_id]


def test_a_leader_that_does_not_join_in_time_is_replaced_by_a_member_that_did(host: GroupHost) -> None:
    leader, follower = host.stable(2, session_ms=LONG_MS)
    joined = host.join(follower.member_id, protocols=(("range", b"new"),), session_ms=LONG_MS)

    host.clock.advance(REBALANCE_MS)

    assert joined.answer.leader == follower.member_id
    assert leader.member_id not in host.group.members


def test_an_absent_static_leader_is_replaced_by_a_present_member(host: GroupHost) -> None:
    _, follower = host.static("one", "two", session_ms=LONG_MS)
    joined = host.join(
        follower.member_id, instance_id="two", protocols=(("range", b"new"),), session_ms=LONG_MS
    )

    host.clock.advance(REBALANCE_MS)

    assert joined.answer.leader == follower.member_id
    assert len(joined.answer.members) == 2


def test_if_no_member_joins_static_members_are_waited_for_again(host: GroupHost) -> None:
    static = host.join(instance_id="one", session_ms=LONG_MS)
    dynamic = host.join_new(session_ms=LONG_MS)
    host.clock.advance(2 * DELAY_MS)
    host.sync_all([static.answer, dynamic.answer])
    host.leave((dynamic.answer.member_id, None))
    host.clock.advance(REBALANCE_MS)

    back = host.join(instance_id="one", session_ms=LONG_MS)

    assert (back.answer.error_code, back.answer.generation_id) == (ErrorCode.NONE, 2)


def test_when_the_sessions_of_static_members_end_the_group_is_empty(host: GroupHost) -> None:
    host.static("one", "two", session_ms=LONG_MS)
    host.leave(("", "one"))

    host.clock.advance(LONG_MS)

    assert (host.group.state_name, host.group.generation) == ("Empty", 2)
    assert len(host.clock.timer) == 0


def test_generations_continue_after_the_group_was_empty(host: GroupHost) -> None:
    (member,) = host.stable()
    host.leave((member.member_id, None))

    (again,) = host.stable()

    assert again.generation_id == 3


def test_an_empty_group_can_choose_another_protocol(host: GroupHost) -> None:
    (member,) = host.stable()
    host.leave((member.member_id, None))

    host.stable(protocol_type="connect", protocols=(("sessioned", b""),))

    assert (host.group.protocol_type, host.group.protocol_name) == ("connect", "sessioned")


def test_generations_restart_before_they_overflow(host: GroupHost) -> None:
    (member,) = host.stable()
    host.group.generation = 2**31 - 1

    joined = host.join(member.member_id)

    assert joined.answer.generation_id == 1


def test_an_answer_may_cause_another_request_at_once(
    host: GroupHost,
) -> None:
    leader, follower = host.stable(2)
    host.join(leader.member_id)
    seen: list[ErrorCode] = []
    member = host.group.members[leader.member_id]

    def ask_again(_answer: JoinGroupResponse) -> None:
        seen.append(host.heartbeat(follower.member_id, 2))

    assert member.join is not None
    member.join.when_done(ask_again)
    host.join(follower.member_id)

    assert seen == [ErrorCode.NONE]
    assert host.group.state_name == "CompletingRebalance"


def test_a_group_whose_generation_cannot_be_stored_continues(
    host: GroupHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_row: object) -> None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "disk full")

    monkeypatch.setattr(host.store, "put_group", full)

    (joined,) = host.stable()

    assert joined.generation_id == 1
    assert "cannot store a group" in caplog.text


def test_a_closed_group_has_no_timers(host: GroupHost) -> None:
    host.stable(2)
    host.join_new()
    host.pending_id()

    host.groups.close()

    assert len(host.clock.timer) == 0
    assert host.group.state_name == "Dead"


def test_a_thousand_members_form_one_generation(host: GroupHost) -> None:
    parked = [host.join_new() for _ in range(1_000)]

    host.clock.advance(2 * DELAY_MS)

    assert {joined.answer.generation_id for joined in parked} == {1}
    assert len(parked[0].answer.members) == 1_000


def test_an_empty_consumer_group_becomes_a_classic_one(host: GroupHost) -> None:
    host.groups.put(host.groups.consumer_group("g", 7))

    (joined,) = host.stable()

    assert joined.generation_id == 8
    assert isinstance(host.groups.group("g"), ClassicGroup)
