"""JoinGroup: every check and every state, on a mock clock."""

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


def test_an_empty_group_id_is_refused(host: GroupHost) -> None:
    joined = host.join(group_id="")

    assert joined.answer.error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, 0, -1])
def test_a_session_timeout_outside_the_limits_is_refused(host: GroupHost, session_ms: int) -> None:
    joined = host.join(session_ms=session_ms)

    assert joined.answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert not host.groups.groups


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_a_session_timeout_at_a_limit_is_accepted(host: GroupHost, session_ms: int) -> None:
    joined = host.join(session_ms=session_ms)

    assert joined.answer.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_member_of_an_unknown_group_is_unknown(host: GroupHost) -> None:
    joined = host.join("somebody")

    assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert joined.answer.member_id == "somebody"
    assert not host.groups.groups


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", (("range", b""),)), ("consumer", ())])
def test_the_first_member_must_offer_a_protocol(
    host: GroupHost, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    joined = host.join(protocol_type=protocol_type, protocols=protocols)

    assert joined.answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert not host.groups.groups


def test_another_protocol_type_is_inconsistent(host: GroupHost) -> None:
    host.stable()

    joined = host.join(protocol_type="connect")

    assert joined.answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_new_member_must_share_a_protocol_with_all_others(host: GroupHost) -> None:
    host.join_new(protocols=(("range", b""), ("sticky", b"")))
    host.join_new(protocols=(("sticky", b""),))

    joined = host.join(protocols=(("range", b""),))

    assert joined.answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_known_member_must_share_a_protocol_with_the_others_too(host: GroupHost) -> None:
    first, _ = host.stable(2)

    joined = host.join(first.member_id, protocols=(("other", b""),))

    assert joined.answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", [4, 9])
def test_a_new_member_gets_an_id_and_must_join_again(host: GroupHost, version: int) -> None:
    joined = host.join(version=version)

    assert joined.answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert joined.answer.member_id == "client-00000000-0000-0000-0000-000000000001"
    assert list(host.group.pending_members) == [joined.answer.member_id]
    assert not host.group.members


@pytest.mark.parametrize("version", [0, 3])
def test_an_old_client_is_admitted_at_once(host: GroupHost, version: int) -> None:
    joined = host.join(version=version)

    assert joined.waits
    assert list(host.group.members) == ["client-00000000-0000-0000-0000-000000000001"]


def test_a_pending_id_is_used_once(host: GroupHost) -> None:
    member_id = host.pending_id()

    host.join(member_id)

    assert not host.group.pending_members
    assert list(host.group.members) == [member_id]


def test_a_pending_id_cannot_become_static(host: GroupHost) -> None:
    member_id = host.pending_id()

    joined = host.join(member_id, instance_id="one")

    assert joined.answer.error_code == ErrorCode.INVALID_REQUEST


def test_an_unused_pending_id_expires_with_its_session(host: GroupHost) -> None:
    host.stable()
    member_id = host.pending_id()
    host.clock.advance(SESSION_MS)

    joined = host.join(member_id)

    assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert not host.group.pending_members


def test_a_group_without_an_admitted_member_is_forgotten(host: GroupHost) -> None:
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


def test_a_full_group_admits_no_new_member() -> None:
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


def test_in_a_rebalance_the_last_to_join_a_full_group_is_refused() -> None:
    host = GroupHost(GroupConfig(max_size=2))
    leader, follower = host.stable(2)
    host.join(leader.member_id)
    host.groups.rebalance.config = GroupConfig(max_size=1)

    joined = host.join(follower.member_id)

    assert joined.answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert list(host.group.members) == [leader.member_id]


# -- the initial delay


def test_the_first_member_waits_for_others(host: GroupHost) -> None:
    joined = host.join_new()

    host.clock.advance(DELAY_MS - 1)

    assert joined.waits
    assert host.group.state_name == "PreparingRebalance"


def test_each_new_member_extends_the_delay(host: GroupHost) -> None:
    first = host.join_new()
    host.clock.advance(DELAY_MS - 1)
    second = host.join_new()

    host.clock.advance(DELAY_MS)

    assert first.waits
    assert second.waits


def test_the_delay_ends_when_no_member_has_joined_during_it(host: GroupHost) -> None:
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


def test_a_pending_id_does_not_delay_the_first_generation(host: GroupHost) -> None:
    host.pending_id()
    joined = host.join_new()

    host.clock.advance(DELAY_MS)

    assert joined.answer.error_code == ErrorCode.NONE


# -- the generation


def test_only_the_leader_gets_the_members_metadata(host: GroupHost) -> None:
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


def test_the_protocol_with_most_votes_is_chosen(host: GroupHost) -> None:
    first = host.join_new(protocols=(("range", b""), ("sticky", b"")))
    for _ in range(2):
        host.join_new(protocols=(("sticky", b""), ("range", b"")))

    host.clock.advance(2 * DELAY_MS)

    assert first.answer.protocol_name == "sticky"


def test_members_vote_only_for_common_protocols(host: GroupHost) -> None:
    first = host.join_new(protocols=(("mine", b""), ("range", b"r")))
    host.join_new(protocols=(("range", b""),))

    host.clock.advance(2 * DELAY_MS)

    assert first.answer.protocol_name == "range"
    assert first.answer.members[0].metadata == b"r"


def test_in_v0_the_session_timeout_is_the_rebalance_timeout(host: GroupHost) -> None:
    host.join(version=0, rebalance_ms=-1)

    assert host.group.rebalance_timeout_ms == SESSION_MS


# -- known members


def test_in_a_rebalance_a_known_member_joins_with_its_new_metadata(host: GroupHost) -> None:
    leader, follower = host.stable(2)
    again = host.join(leader.member_id)

    host.join(follower.member_id, protocols=(("range", b"new"),))

    assert again.answer.generation_id == 2
    assert [member.metadata for member in again.answer.members] == [b"m", b"new"]


def test_an_abandoned_join_is_answered_when_the_next_replaces_it(host: GroupHost) -> None:
    leader, _ = host.stable(2)
    given_up = host.join(leader.member_id)

    again = host.join(leader.member_id)

    assert given_up.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert again.waits


def test_a_lost_answer_is_repeated_while_the_leader_assigns(host: GroupHost) -> None:
    leader, follower = host.completing(2)

    answers = [host.join(member.member_id).answer for member in (leader, follower)]

    assert answers == [leader, follower]
    assert host.group.state_name == "CompletingRebalance"


def test_new_metadata_while_the_leader_assigns_starts_a_rebalance(host: GroupHost) -> None:
    _, follower = host.completing(2)

    joined = host.join(follower.member_id, protocols=(("range", b"new"),))

    assert joined.waits
    assert host.group.state_name == "PreparingRebalance"


def test_the_leader_of_a_stable_group_can_always_rebalance(host: GroupHost) -> None:
    leader, _ = host.stable(2)

    joined = host.join(leader.member_id)

    assert joined.waits
    assert host.group.state_name == "PreparingRebalance"


def test_a_follower_of_a_stable_group_gets_the_same_answer_again(host: GroupHost) -> None:
    _, follower = host.stable(2)

    joined = host.join(follower.member_id)

    assert joined.answer == follower
    assert host.group.state_name == "Stable"


def test_a_follower_with_new_metadata_rebalances_a_stable_group(host: GroupHost) -> None:
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


def test_a_new_member_that_waits_for_five_minutes_is_removed(host: GroupHost) -> None:
    static = host.join(instance_id="one", rebalance_ms=2_000_000, session_ms=1_000_000)
    host.clock.advance(DELAY_MS)
    host.sync_all([static.answer])
    joined = host.join_new(rebalance_ms=2_000_000)

    host.clock.advance(NEW_MEMBER_JOIN_TIMEOUT_MS)

    assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert joined.answer.member_id == ""
    assert list(host.group.members) == [static.answer.member_id]


def test_a_known_member_may_wait_longer_than_its_session(host: GroupHost) -> None:
    leader, _ = host.stable(2)
    joined = host.join(leader.member_id)

    host.clock.advance(SESSION_MS)

    assert leader.member_id in host.group.members
    assert joined.answer.generation_id == 2


# -- the group from its members


def test_negative_rebalance_timeouts_count_as_zero(host: GroupHost) -> None:
    host.join_new(rebalance_ms=-5)

    assert host.group.rebalance_timeout_ms == 0


def test_the_longest_rebalance_timeout_counts(host: GroupHost) -> None:
    host.join_new(rebalance_ms=5)
    host.join_new(rebalance_ms=REBALANCE_MS)

    assert host.group.rebalance_timeout_ms == REBALANCE_MS


def test_the_protocols_of_a_removed_member_are_forgotten(host: GroupHost) -> None:
    host.stable()

    for number in range(3):
        joined = host.join(version=3, protocols=(("range", b"m"), (f"own-{number}", b"")))
        host.leave((next(reversed(host.group.members)), None))
        assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    assert set(host.group.protocol_support) == {"range"}


def test_a_group_that_emptied_during_the_initial_delay_admits_new_members(
    host: GroupHost,
) -> None:
    host.join(version=3)
    host.leave((next(iter(host.group.members)), None))

    joined = host.join(version=3, protocols=(("sticky", b""),))

    assert joined.waits
    host.clock.advance(2 * DELAY_MS)
    assert joined.answer.error_code == ErrorCode.NONE
