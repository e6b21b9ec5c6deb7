"""SyncGroup and Heartbeat: every check and every state, on a mock clock."""

from __future__ import annotations

import pytest

from odradek.group.group_config import MAX_ASSIGNMENTS_BYTES
from odradek.wire.error_code import ErrorCode
from support.classic_groups import REBALANCE_MS, SESSION_MS, GroupHost


@pytest.fixture
def host() -> GroupHost:
    return GroupHost()


# -- SyncGroup


def test_sync_with_an_empty_group_id_is_refused(host: GroupHost) -> None:
    (member,) = host.completing()

    synced = host.sync(member, group_id="")

    assert synced.answer.error_code == ErrorCode.INVALID_GROUP_ID


def test_sync_in_an_unknown_group_is_from_an_unknown_member(host: GroupHost) -> None:
    (member,) = host.completing()

    synced = host.sync(member, group_id="other")

    assert synced.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_of_an_unknown_member_is_refused(host: GroupHost) -> None:
    (member,) = host.completing()

    synced = host.sync(member, member_id="stranger")

    assert synced.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_of_a_pending_member_is_refused(host: GroupHost) -> None:
    (member,) = host.completing()

    synced = host.sync(member, member_id=host.pending_id())

    assert synced.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("generation", [0, 2, -1])
def test_sync_of_another_generation_is_refused(host: GroupHost, generation: int) -> None:
    (member,) = host.completing()

    synced = host.sync(member, generation_id=generation)

    assert synced.answer.error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(("field", "value"), [("protocol_type", "connect"), ("protocol_name", "sticky")])
def test_sync_with_another_protocol_is_refused(host: GroupHost, field: str, value: str) -> None:
    (member,) = host.completing()

    synced = host.sync(member, None, **{field: value})

    assert synced.answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_sync_with_the_groups_protocol_is_accepted(host: GroupHost) -> None:
    (member,) = host.completing()

    synced = host.sync(member, protocol_type="consumer", protocol_name="range")

    assert synced.answer.error_code == ErrorCode.NONE


def test_sync_while_members_join_is_refused(host: GroupHost) -> None:
    leader, follower = host.stable(2)
    host.join(leader.member_id)

    synced = host.sync(follower)

    assert synced.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_followers_wait_for_the_leader(host: GroupHost) -> None:
    _, follower = host.completing(2)

    synced = host.sync(follower)

    assert synced.waits
    assert host.group.state_name == "CompletingRebalance"


def test_the_leaders_assignment_goes_to_every_member(host: GroupHost) -> None:
    leader, follower = host.completing(2)
    waiting = host.sync(follower)

    synced = host.sync(leader, {leader.member_id: b"a", follower.member_id: b"b"})

    assert (synced.answer.assignment, waiting.answer.assignment) == (b"a", b"b")
    assert (waiting.answer.protocol_type, waiting.answer.protocol_name) == ("consumer", "range")
    assert host.group.state_name == "Stable"


def test_a_member_left_out_by_the_leader_has_an_empty_assignment(host: GroupHost) -> None:
    leader, follower = host.completing(2)
    waiting = host.sync(follower)

    host.sync(leader, {leader.member_id: b"a"})

    assert (waiting.answer.error_code, waiting.answer.assignment) == (ErrorCode.NONE, b"")


def test_assignments_of_followers_are_ignored(host: GroupHost) -> None:
    leader, follower = host.completing(2)
    waiting = host.sync(follower, {follower.member_id: b"mine"})

    host.sync(leader, {follower.member_id: b"b"})

    assert waiting.answer.assignment == b"b"


def test_assignments_of_unknown_members_are_ignored(host: GroupHost) -> None:
    (leader,) = host.completing()

    synced = host.sync(leader, {"stranger": b"x", leader.member_id: b"a"})

    assert synced.answer.assignment == b"a"


def test_assignments_are_bounded(host: GroupHost) -> None:
    (leader,) = host.completing()

    synced = host.sync(leader, {"stranger": bytes(MAX_ASSIGNMENTS_BYTES + 1)})

    assert synced.answer.error_code == ErrorCode.INVALID_REQUEST


def test_in_a_stable_group_sync_is_answered_at_once(host: GroupHost) -> None:
    _, follower = host.stable(2)

    synced = host.sync(follower)

    assert synced.answer.assignment == b"1"


def test_an_abandoned_sync_is_answered_when_the_next_replaces_it(host: GroupHost) -> None:
    _, follower = host.completing(2)
    given_up = host.sync(follower)

    again = host.sync(follower)

    assert given_up.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert again.waits


def test_a_rebalance_answers_members_that_wait_for_the_leader(host: GroupHost) -> None:
    _, follower = host.completing(2)
    waiting = host.sync(follower)

    host.join(host.pending_id())

    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_joins_and_never_syncs_is_removed(host: GroupHost) -> None:
    leader, follower = host.completing(2, session_ms=2 * REBALANCE_MS)
    host.sync(leader, {})

    host.clock.advance(REBALANCE_MS)

    assert follower.member_id not in host.group.members
    assert host.group.state_name == "PreparingRebalance"


def test_a_leader_that_never_syncs_is_removed_and_the_others_join_again(host: GroupHost) -> None:
    leader, follower = host.completing(2, session_ms=2 * REBALANCE_MS)
    waiting = host.sync(follower)

    host.clock.advance(REBALANCE_MS)

    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert leader.member_id not in host.group.members
    assert host.group.leader_id == follower.member_id


def test_after_every_member_has_synced_none_is_removed(host: GroupHost) -> None:
    host.stable(2, session_ms=2 * REBALANCE_MS)

    host.clock.advance(REBALANCE_MS)

    assert len(host.group.members) == 2
    assert host.group.state_name == "Stable"


def test_waiting_for_the_leader_counts_as_heartbeats(host: GroupHost) -> None:
    leader, follower = host.completing(2)
    host.clock.advance(SESSION_MS - 1)
    host.heartbeat(leader.member_id)
    host.sync(follower)
    host.clock.advance(SESSION_MS - 1)

    host.sync(leader, {})
    host.clock.advance(SESSION_MS - 1)

    assert host.heartbeat(follower.member_id) == ErrorCode.NONE


# -- Heartbeat


def test_heartbeat_with_an_empty_group_id_is_refused(host: GroupHost) -> None:
    assert host.heartbeat("somebody", group_id="") == ErrorCode.INVALID_GROUP_ID


def test_heartbeat_in_an_unknown_group_is_from_an_unknown_member(host: GroupHost) -> None:
    assert host.heartbeat("somebody") == ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeat_in_an_empty_group_is_from_an_unknown_member(host: GroupHost) -> None:
    (member,) = host.stable()
    host.leave((member.member_id, None))

    code = host.heartbeat(member.member_id, 2)

    assert code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("generation", [0, 2, -1])
def test_heartbeat_of_another_generation_is_refused(host: GroupHost, generation: int) -> None:
    (member,) = host.stable()

    code = host.heartbeat(member.member_id, generation)

    assert code == ErrorCode.ILLEGAL_GENERATION


def test_heartbeat_during_a_rebalance_reports_it_and_extends_the_session(host: GroupHost) -> None:
    leader, follower = host.stable(2)
    host.join(leader.member_id)
    host.clock.advance(SESSION_MS - 1)

    code = host.heartbeat(follower.member_id)
    host.clock.advance(SESSION_MS - 1)

    assert code == ErrorCode.REBALANCE_IN_PROGRESS
    assert follower.member_id in host.group.members


def test_heartbeat_while_the_leader_assigns_is_accepted(host: GroupHost) -> None:
    (member,) = host.completing()

    assert host.heartbeat(member.member_id) == ErrorCode.NONE


def test_heartbeats_keep_a_member_in_the_group(host: GroupHost) -> None:
    (member,) = host.stable()
    for _ in range(5):
        host.clock.advance(SESSION_MS - 1)
        host.heartbeat(member.member_id)

    host.clock.advance(SESSION_MS - 1)

    assert host.group.state_name == "Stable"


def test_a_silent_member_is_removed(host: GroupHost) -> None:
    (member,) = host.stable()

    host.clock.advance(SESSION_MS)

    assert host.heartbeat(member.member_id) == ErrorCode.UNKNOWN_MEMBER_ID
    assert (host.group.state_name, host.group.generation) == ("Empty", 2)


def test_after_a_member_falls_silent_the_others_join_again(host: GroupHost) -> None:
    leader, follower = host.stable(2)
    host.clock.advance(SESSION_MS - 1)
    host.heartbeat(leader.member_id)

    host.clock.advance(1)

    assert follower.member_id not in host.group.members
    assert host.heartbeat(leader.member_id) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_silent_static_member_is_removed_too(host: GroupHost) -> None:
    (member,) = host.static("one")

    host.clock.advance(SESSION_MS)

    assert host.heartbeat(member.member_id, 1, "one") == ErrorCode.UNKNOWN_MEMBER_ID
