"""From one generation to the next: who is waited for, how long, and who is left behind."""

from __future__ import annotations

import pytest

from odradek.group.classic_group import ClassicGroup
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.join_group import JoinGroupResponse
from support.classic_groups import DELAY_MS, REBALANCE_MS, ClassicWorld

LONG_MS = 600_000


@pytest.fixture
def world() -> ClassicWorld:
    return ClassicWorld()


def test_a_rebalance_ends_when_everybody_has_joined(world: ClassicWorld) -> None:
    leader, follower = world.stable(2)
    first = world.join(leader.member_id)

    second = world.join(follower.member_id)

    assert first.answer.generation_id == second.answer.generation_id == 2


def test_a_rebalance_waits_for_pending_ids(world: ClassicWorld) -> None:
    (leader,) = world.stable()
    member_id = world.pending_id()
    first = world.join(leader.member_id)

    world.join(member_id)

    assert first.answer.generation_id == 2
    assert len(first.answer.members) == 2


def test_a_rebalance_waits_for_pending_ids_as_long_as_their_session(world: ClassicWorld) -> None:
    (leader,) = world.stable(session_ms=LONG_MS)
    world.pending_id()
    first = world.join(leader.member_id, session_ms=LONG_MS)

    world.clock.advance(10_000)

    assert len(first.answer.members) == 1


def test_a_dynamic_member_that_does_not_join_in_time_is_out(world: ClassicWorld) -> None:
    leader, follower = world.stable(2, session_ms=LONG_MS)
    first = world.join(leader.member_id, session_ms=LONG_MS)

    world.clock.advance(REBALANCE_MS)

    assert [member.member_id for member in first.answer.members] == [leader.member_id]
    assert world.heartbeat(follower.member_id, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_does_not_join_in_time_stays(world: ClassicWorld) -> None:
    leader, follower = world.static("one", "two", session_ms=LONG_MS)
    first = world.join(leader.member_id, instance_id="one", session_ms=LONG_MS)

    world.clock.advance(REBALANCE_MS)

    assert [member.member_id for member in first.answer.members] == [leader.member_id, follower.member_id]


def test_a_leader_that_does_not_join_in_time_is_followed_by_one_who_has(world: ClassicWorld) -> None:
    leader, follower = world.stable(2, session_ms=LONG_MS)
    joined = world.join(follower.member_id, protocols=(("range", b"new"),), session_ms=LONG_MS)

    world.clock.advance(REBALANCE_MS)

    assert joined.answer.leader == follower.member_id
    assert leader.member_id not in world.group.members


def test_a_static_leader_that_is_away_is_followed_by_one_who_is_there(world: ClassicWorld) -> None:
    _, follower = world.static("one", "two", session_ms=LONG_MS)
    joined = world.join(
        follower.member_id, instance_id="two", protocols=(("range", b"new"),), session_ms=LONG_MS
    )

    world.clock.advance(REBALANCE_MS)

    assert joined.answer.leader == follower.member_id
    assert len(joined.answer.members) == 2


def test_when_nobody_joins_static_members_are_waited_for_again(world: ClassicWorld) -> None:
    static = world.join(instance_id="one", session_ms=LONG_MS)
    dynamic = world.join_new(session_ms=LONG_MS)
    world.clock.advance(2 * DELAY_MS)
    world.sync_all([static.answer, dynamic.answer])
    world.leave((dynamic.answer.member_id, None))
    world.clock.advance(REBALANCE_MS)

    back = world.join(instance_id="one", session_ms=LONG_MS)

    assert (back.answer.error_code, back.answer.generation_id) == (ErrorCode.NONE, 2)


def test_when_the_sessions_of_static_members_end_the_group_is_empty(world: ClassicWorld) -> None:
    world.static("one", "two", session_ms=LONG_MS)
    world.leave(("", "one"))

    world.clock.advance(LONG_MS)

    assert (world.group.state_name, world.group.generation) == ("Empty", 2)
    assert len(world.clock.timer) == 0


def test_generations_go_on_after_the_group_was_empty(world: ClassicWorld) -> None:
    (member,) = world.stable()
    world.leave((member.member_id, None))

    (again,) = world.stable()

    assert again.generation_id == 3


def test_an_empty_group_may_speak_something_else_next_time(world: ClassicWorld) -> None:
    (member,) = world.stable()
    world.leave((member.member_id, None))

    world.stable(protocol_type="connect", protocols=(("sessioned", b""),))

    assert (world.group.protocol_type, world.group.protocol_name) == ("connect", "sessioned")


def test_generations_start_again_before_they_overflow(world: ClassicWorld) -> None:
    (member,) = world.stable()
    world.group.generation = 2**31 - 1

    joined = world.join(member.member_id)

    assert joined.answer.generation_id == 1


def test_an_answer_that_makes_its_client_ask_again_at_once_finds_the_group_in_order(
    world: ClassicWorld,
) -> None:
    leader, follower = world.stable(2)
    parked = world.join(leader.member_id)
    seen: list[ErrorCode] = []
    member = world.group.members[leader.member_id]

    def ask_again(answer: JoinGroupResponse) -> None:
        parked.answers.append(answer)
        seen.append(world.heartbeat(follower.member_id, 2))

    member.join_reply = ask_again
    world.join(follower.member_id)

    assert seen == [ErrorCode.NONE]
    assert world.group.state_name == "CompletingRebalance"


def test_a_group_whose_generation_cannot_be_stored_lives_on(
    world: ClassicWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_row: object) -> None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "disk full")

    monkeypatch.setattr(world.store, "put_group", full)

    (joined,) = world.stable()

    assert joined.generation_id == 1
    assert "group cannot be stored" in caplog.text


def test_a_group_that_is_closed_waits_for_nothing(world: ClassicWorld) -> None:
    world.stable(2)
    world.join_new()
    world.pending_id()

    world.groups.close()

    assert len(world.clock.timer) == 0
    assert world.group.state_name == "Dead"


def test_a_thousand_members_form_one_generation(world: ClassicWorld) -> None:
    parked = [world.join_new() for _ in range(1_000)]

    world.clock.advance(2 * DELAY_MS)

    assert {joined.answer.generation_id for joined in parked} == {1}
    assert len(parked[0].answer.members) == 1_000


def test_a_group_of_the_other_protocol_that_is_empty_becomes_a_classic_one(world: ClassicWorld) -> None:
    world.groups.put(world.groups.consumer_group("g", 7))

    (joined,) = world.stable()

    assert joined.generation_id == 8
    assert isinstance(world.groups.group("g"), ClassicGroup)
