"""JoinGroup: every check and every state, on the virtual clock."""

from __future__ import annotations

import pytest

from odradek.group.group_config import (
    MAX_MEMBER_METADATA_BYTES,
    MAX_PENDING_MEMBERS,
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    GroupConfig,
)
from odradek.wire.error_code import ErrorCode
from support.classic_groups import DELAY_MS, REBALANCE_MS, SESSION_MS, GroupHost


@pytest.fixture
def host() -> GroupHost:
    return GroupHost()


def test_a_group_without_a_name_is_refused(host: GroupHost) -> None:
    joined = host.join(group_id="")

    assert joined.answer.error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, 0, -1])
def test_a_session_outside_of_the_limits_is_refused(host: GroupHost, session_ms: int) -> None:
    joined = host.join(session_ms=session_ms)

    assert joined.answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert not host.groups.groups


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_a_session_at_the_limits_is_taken(host: GroupHost, session_ms: int) -> None:
    joined = host.join(session_ms=session_ms)

    assert joined.answer.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_member_of_a_group_that_is_not_there_is_unknown(host: GroupHost) -> None:
    joined = host.join("somebody")

    assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert joined.answer.member_id == "somebody"
    assert not host.groups.groups


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", (("range", b""),)), ("consumer", ())])
def test_the_first_member_must_speak_something(
    host: GroupHost, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    joined = host.join(protocol_type=protocol_type, protocols=protocols)

    assert joined.answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert not host.groups.groups


def test_another_protocol_type_does_not_fit(host: GroupHost) -> None:
    host.stable()

    joined = host.join(protocol_type="connect")

    assert joined.answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_must_share_a_protocol_with_all_others(host: GroupHost) -> None:
    host.join_new(protocols=(("range", b""), ("sticky", b"")))
    host.join_new(protocols=(("sticky", b""),))

    joined = host.join(protocols=(("range", b""),))

    assert joined.answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_known_member_must_share_a_protocol_with_the_others_too(host: GroupHost) -> None:
    first, _ = host.stable(2)

    joined = host.join(first.member_id, protocols=(("other", b""),))

    assert joined.answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", [4, 9])
def test_a_new_member_is_given_an_id_and_shall_come_again(host: GroupHost, version: int) -> None:
    joined = host.join(version=version)

    assert joined.answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert joined.answer.member_id == "client-00000000-0000-0000-0000-000000000001"
    assert list(host.group.pending_members) == [joined.answer.member_id]
    assert not host.group.members


@pytest.mark.parametrize("version", [0, 3])
def test_an_old_client_is_let_in_at_once(host: GroupHost, version: int) -> None:
    joined = host.join(version=version)

    assert joined.waits
    assert list(host.group.members) == ["client-00000000-0000-0000-0000-000000000001"]


def test_a_pending_id_is_used_once(host: GroupHost) -> None:
    member_id = host.pending_id()

    host.join(member_id)

    assert not host.group.pending_members
    assert list(host.group.members) == [member_id]


def test_a_pending_id_does_not_become_static(host: GroupHost) -> None:
    member_id = host.pending_id()

    joined = host.join(member_id, instance_id="one")

    assert joined.answer.error_code == ErrorCode.INVALID_REQUEST


def test_a_pending_id_that_nobody_uses_ends_with_its_session(host: GroupHost) -> None:
    host.stable()
    member_id = host.pending_id()
    host.clock.advance(SESSION_MS)

    joined = host.join(member_id)

    assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert not host.group.pending_members


def test_a_group_that_nobody_got_into_is_forgotten(host: GroupHost) -> None:
    host.pending_id()

    host.clock.advance(SESSION_MS)

    assert not host.groups.groups
    assert len(host.clock.timer) == 0


def test_pending_ids_are_bounded(host: GroupHost) -> None:
    for _ in range(MAX_PENDING_MEMBERS):
        host.join()

    joined = host.join()

    assert joined.answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert len(host.group.pending_members) == MAX_PENDING_MEMBERS


def test_metadata_is_bounded(host: GroupHost) -> None:
    joined = host.join(protocols=(("range", bytes(MAX_MEMBER_METADATA_BYTES)),))

    assert joined.answer.error_code == ErrorCode.INVALID_REQUEST
    assert not host.groups.groups


# -- the size of a group


def test_a_full_group_takes_nobody_in() -> None:
    host = GroupHost(GroupConfig(max_size=2))
    host.stable(2)

    joined = host.join()

    assert joined.answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert joined.answer.member_id == ""


def test_members_of_a_full_group_may_join_again() -> None:
    host = GroupHost(GroupConfig(max_size=2))
    leader, _ = host.stable(2)

    joined = host.join(leader.member_id)

    assert joined.waits


def test_in_a_rebalance_the_last_to_come_is_out() -> None:
    host = GroupHost(GroupConfig(max_size=2))
    leader, follower = host.stable(2)
    host.join(leader.member_id)
    host.groups.classic.rebalance.config = GroupConfig(max_size=1)

    joined = host.join(follower.member_id)

    assert joined.answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert list(host.group.members) == [leader.member_id]


# -- the initial delay


def test_the_first_member_waits_for_others(host: GroupHost) -> None:
    joined = host.join_new()

    host.clock.advance(DELAY_MS - 1)

    assert joined.waits
    assert host.group.state_name == "PreparingRebalance"


def test_members_who_arrive_extend_the_delay(host: GroupHost) -> None:
    first = host.join_new()
    host.clock.advance(DELAY_MS - 1)
    second = host.join_new()

    host.clock.advance(DELAY_MS)

    assert first.waits
    assert second.waits


def test_the_delay_ends_when_nobody_has_arrived_for_so_long(host: GroupHost) -> None:
    first = host.join_new()
    host.clock.advance(DELAY_MS - 1)
    second = host.join_new()

    host.clock.advance(DELAY_MS + 1)

    assert first.answer.generation_id == second.answer.generation_id == 1


def test_the_delay_is_never_longer_than_the_rebalance_timeout(host: GroupHost) -> None:
    joined = host.join_new(rebalance_ms=8_000)
    for _ in range(7):
        host.clock.advance(1_000)
        host.join_new(rebalance_ms=8_000)

    host.clock.advance(1_000)

    assert joined.answer.error_code == ErrorCode.NONE


def test_without_a_delay_the_first_member_is_answered_at_once() -> None:
    host = GroupHost(GroupConfig(initial_rebalance_delay_ms=0))
    joined = host.join_new()

    host.clock.advance(0)

    assert joined.answer.generation_id == 1


def test_a_pending_id_does_not_hold_up_the_first_generation(host: GroupHost) -> None:
    host.pending_id()
    joined = host.join_new()

    host.clock.advance(DELAY_MS)

    assert joined.answer.error_code == ErrorCode.NONE


# -- the generation


def test_the_leader_is_told_everything_and_the_others_nothing(host: GroupHost) -> None:
    first = host.join_new(protocols=(("range", b"one"),))
    second = host.join_new(protocols=(("range", b"two"),))

    host.clock.advance(2 * DELAY_MS)

    leader = first.answer
    assert (leader.leader, leader.protocol_type, leader.protocol_name) == (
        leader.member_id,
        "consumer",
        "range",
    )
    assert [member.metadata for member in leader.members] == [b"one", b"two"]
    assert second.answer.leader == leader.member_id
    assert second.answer.members == []


def test_most_votes_choose_the_protocol(host: GroupHost) -> None:
    first = host.join_new(protocols=(("range", b""), ("sticky", b"")))
    for _ in range(2):
        host.join_new(protocols=(("sticky", b""), ("range", b"")))

    host.clock.advance(2 * DELAY_MS)

    assert first.answer.protocol_name == "sticky"


def test_members_vote_for_what_everybody_speaks(host: GroupHost) -> None:
    first = host.join_new(protocols=(("mine", b""), ("range", b"r")))
    host.join_new(protocols=(("range", b""),))

    host.clock.advance(2 * DELAY_MS)

    assert first.answer.protocol_name == "range"
    assert first.answer.members[0].metadata == b"r"


def test_v0_has_no_rebalance_timeout_and_means_the_session_timeout(host: GroupHost) -> None:
    host.join(version=0, rebalance_ms=-1)

    assert host.group.rebalance_timeout_ms == SESSION_MS


# -- known members


def test_in_a_rebalance_a_member_is_parked_with_what_it_says_now(host: GroupHost) -> None:
    leader, follower = host.stable(2)
    again = host.join(leader.member_id)

    host.join(follower.member_id, protocols=(("range", b"new"),))

    assert again.answer.generation_id == 2
    assert [member.metadata for member in again.answer.members] == [b"m", b"new"]


def test_a_join_that_was_given_up_is_answered_when_the_next_takes_its_place(host: GroupHost) -> None:
    leader, _ = host.stable(2)
    given_up = host.join(leader.member_id)

    again = host.join(leader.member_id)

    assert given_up.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert again.waits


def test_while_the_leader_assigns_a_lost_answer_is_repeated(host: GroupHost) -> None:
    leader, follower = host.completing(2)

    answers = [host.join(member.member_id).answer for member in (leader, follower)]

    assert answers == [leader, follower]
    assert host.group.state_name == "CompletingRebalance"


def test_while_the_leader_assigns_new_metadata_is_a_rebalance(host: GroupHost) -> None:
    _, follower = host.completing(2)

    joined = host.join(follower.member_id, protocols=(("range", b"new"),))

    assert joined.waits
    assert host.group.state_name == "PreparingRebalance"


def test_the_leader_of_a_stable_group_may_always_rebalance(host: GroupHost) -> None:
    leader, _ = host.stable(2)

    joined = host.join(leader.member_id)

    assert joined.waits
    assert host.group.state_name == "PreparingRebalance"


def test_a_follower_of_a_stable_group_is_told_the_same_again(host: GroupHost) -> None:
    _, follower = host.stable(2)

    joined = host.join(follower.member_id)

    assert joined.answer == follower
    assert host.group.state_name == "Stable"


def test_a_follower_of_a_stable_group_with_new_metadata_is_a_rebalance(host: GroupHost) -> None:
    _, follower = host.stable(2)

    joined = host.join(follower.member_id, protocols=(("range", b"new"),))

    assert joined.waits


def test_a_former_member_of_an_empty_group_is_unknown(host: GroupHost) -> None:
    (member,) = host.stable()
    host.leave((member.member_id, None))

    joined = host.join(member.member_id)

    assert host.group.state_name == "Empty"
    assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_was_alone_rejoins_without_delay(host: GroupHost) -> None:
    (leader,) = host.stable()

    joined = host.join(leader.member_id)

    assert joined.answer.generation_id == 2


def test_a_new_member_that_waits_for_five_minutes_is_dropped(host: GroupHost) -> None:
    static = host.join(instance_id="one", rebalance_ms=2_000_000, session_ms=1_000_000)
    host.clock.advance(DELAY_MS)
    host.sync_all([static.answer])
    joined = host.join_new(rebalance_ms=2_000_000)

    host.clock.advance(NEW_MEMBER_JOIN_TIMEOUT_MS)

    assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert joined.answer.member_id == ""
    assert list(host.group.members) == [static.answer.member_id]


def test_a_known_member_that_waits_longer_than_its_session_stays(host: GroupHost) -> None:
    leader, _ = host.stable(2)
    joined = host.join(leader.member_id)

    host.clock.advance(SESSION_MS)

    assert leader.member_id in host.group.members
    assert joined.answer.generation_id == 2


# -- static members


def test_a_static_member_needs_no_second_step(host: GroupHost) -> None:
    joined = host.join(instance_id="one")

    host.clock.advance(DELAY_MS)

    assert joined.answer.error_code == ErrorCode.NONE
    assert joined.answer.member_id == "one-00000000-0000-0000-0000-000000000001"
    assert joined.answer.members[0].group_instance_id == "one"


def test_a_static_member_that_comes_back_keeps_its_assignment(host: GroupHost) -> None:
    _, follower = host.static("one", "two")

    back = host.join(instance_id="two").answer

    assert (back.error_code, back.generation_id, back.skip_assignment) == (ErrorCode.NONE, 1, False)
    assert back.member_id != follower.member_id
    assert host.sync(back).answer.assignment == b"1"
    assert host.group.state_name == "Stable"


def test_a_static_leader_that_comes_back_need_not_assign(host: GroupHost) -> None:
    leader, _ = host.static("one", "two")

    back = host.join(instance_id="one").answer

    assert back.skip_assignment
    assert back.leader == back.member_id != leader.member_id
    assert len(back.members) == 2


@pytest.mark.parametrize("version", [5, 8])
def test_an_old_static_leader_that_comes_back_is_not_told_that_it_leads(
    host: GroupHost, version: int
) -> None:
    leader, _ = host.static("one", "two")

    back = host.join(instance_id="one", version=version).answer

    assert not back.skip_assignment
    assert back.leader == leader.member_id != back.member_id
    assert back.members == []


def test_a_static_member_that_changes_the_choice_of_protocol_is_a_rebalance(host: GroupHost) -> None:
    host.static("one", protocols=(("range", b""), ("sticky", b"")))

    back = host.join(instance_id="one", protocols=(("sticky", b""),))

    assert back.answer.generation_id == 2
    assert back.answer.protocol_name == "sticky"


def test_a_static_member_that_comes_back_while_the_leader_assigns_is_a_rebalance(host: GroupHost) -> None:
    parked = [host.join(instance_id=name) for name in ("one", "two")]
    host.clock.advance(2 * DELAY_MS)

    back = host.join(instance_id="two")

    assert [one.answer.error_code for one in parked] == [ErrorCode.NONE, ErrorCode.NONE]
    assert back.waits
    assert host.group.state_name == "PreparingRebalance"


def test_a_static_member_that_comes_back_in_a_rebalance_takes_the_parked_place(host: GroupHost) -> None:
    first = host.join(instance_id="one")

    second = host.join(instance_id="one")
    host.clock.advance(2 * DELAY_MS)

    assert first.answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert second.answer.error_code == ErrorCode.NONE
    assert len(host.group.members) == 1


def test_a_parked_sync_of_the_former_static_member_is_fenced(host: GroupHost) -> None:
    parked = [host.join(instance_id=name) for name in ("one", "two")]
    host.clock.advance(2 * DELAY_MS)
    synced = host.sync(parked[1].answer)

    host.join(instance_id="two")

    assert synced.answer.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_the_former_static_member_is_fenced_whenever_it_comes(host: GroupHost) -> None:
    (former,) = host.static("one")
    host.join(instance_id="one")

    joined = host.join(former.member_id, instance_id="one")

    assert joined.answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert host.heartbeat(former.member_id, 1, "one") == ErrorCode.FENCED_INSTANCE_ID
    assert host.sync(former, group_instance_id="one").answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert host.leave((former.member_id, "one")) == [ErrorCode.FENCED_INSTANCE_ID]


def test_a_former_static_member_without_its_instance_id_is_unknown(host: GroupHost) -> None:
    (former,) = host.static("one")
    host.join(instance_id="one")

    assert host.heartbeat(former.member_id) == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_instance_id_that_nobody_has_is_unknown(host: GroupHost) -> None:
    (member,) = host.stable()

    joined = host.join(member.member_id, instance_id="one")

    assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_session_of_a_static_member_goes_on_with_its_successor(host: GroupHost) -> None:
    host.static("one")
    host.clock.advance(SESSION_MS - 1)
    back = host.join(instance_id="one").answer

    host.clock.advance(SESSION_MS - 1)

    assert host.heartbeat(back.member_id, 1, "one") == ErrorCode.NONE


def test_rebalance_timeouts_below_zero_count_as_zero(host: GroupHost) -> None:
    host.join_new(rebalance_ms=-5)

    assert host.group.rebalance_timeout_ms == 0


def test_the_longest_rebalance_timeout_counts(host: GroupHost) -> None:
    host.join_new(rebalance_ms=5)
    host.join_new(rebalance_ms=REBALANCE_MS)

    assert host.group.rebalance_timeout_ms == REBALANCE_MS


def test_what_a_member_spoke_is_forgotten_with_it(host: GroupHost) -> None:
    host.stable()

    for number in range(3):
        joined = host.join(version=3, protocols=(("range", b"m"), (f"own-{number}", b"")))
        host.leave((next(reversed(host.group.members)), None))
        assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    assert set(host.group.protocol_support) == {"range"}


def test_a_group_that_everybody_left_during_the_initial_delay_takes_whoever_comes(
    host: GroupHost,
) -> None:
    host.join(version=3)
    host.leave((next(iter(host.group.members)), None))

    joined = host.join(version=3, protocols=(("sticky", b""),))

    assert joined.waits
    host.clock.advance(2 * DELAY_MS)
    assert joined.answer.error_code == ErrorCode.NONE
