"""JoinGroup of static members (KIP-345), which keep their place when they return, on a mock clock."""

from __future__ import annotations

import pytest

from odradek.wire.error_code import ErrorCode
from support.classic_groups import DELAY_MS, SESSION_MS, GroupHost


@pytest.fixture
def host() -> GroupHost:
    return GroupHost()


def test_a_static_member_joins_in_one_step(host: GroupHost) -> None:
    joined = host.join(instance_id="one")

    host.clock.advance(DELAY_MS)

    assert joined.answer.error_code == ErrorCode.NONE
    assert joined.answer.member_id == "one-00000000-0000-0000-0000-000000000001"
    assert joined.answer.members[0].group_instance_id == "one"


def test_a_returning_static_member_keeps_its_assignment(host: GroupHost) -> None:
    _, follower = host.static("one", "two")

    back = host.join(instance_id="two").answer

    assert (back.error_code, back.generation_id, back.skip_assignment) == (ErrorCode.NONE, 1, False)
    assert back.member_id != follower.member_id
    assert host.sync(back).answer.assignment == b"1"
    assert host.group.state_name == "Stable"


def test_a_returning_static_leader_need_not_assign(host: GroupHost) -> None:
    leader, _ = host.static("one", "two")

    back = host.join(instance_id="one").answer

    assert back.skip_assignment
    assert back.leader == back.member_id != leader.member_id
    assert len(back.members) == 2


@pytest.mark.parametrize("version", [5, 8])
def test_a_returning_static_leader_of_an_old_version_is_not_told_that_it_leads(
    host: GroupHost, version: int
) -> None:
    leader, _ = host.static("one", "two")

    back = host.join(instance_id="one", version=version).answer

    assert not back.skip_assignment
    assert back.leader == leader.member_id != back.member_id
    assert back.members == []


def test_a_static_member_that_changes_the_chosen_protocol_starts_a_rebalance(host: GroupHost) -> None:
    host.static("one", protocols=(("range", b""), ("sticky", b"")))

    back = host.join(instance_id="one", protocols=(("sticky", b""),))

    assert back.answer.generation_id == 2
    assert back.answer.protocol_name == "sticky"


def test_a_static_member_that_returns_while_the_leader_assigns_starts_a_rebalance(host: GroupHost) -> None:
    parked = [host.join(instance_id=name) for name in ("one", "two")]
    host.clock.advance(2 * DELAY_MS)

    back = host.join(instance_id="two")

    assert [one.answer.error_code for one in parked] == [ErrorCode.NONE, ErrorCode.NONE]
    assert back.waits
    assert host.group.state_name == "PreparingRebalance"


def test_a_static_member_that_returns_during_a_rebalance_replaces_its_waiting_join(host: GroupHost) -> None:
    first = host.join(instance_id="one")

    second = host.join(instance_id="one")
    host.clock.advance(2 * DELAY_MS)

    assert first.answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert second.answer.error_code == ErrorCode.NONE
    assert len(host.group.members) == 1


def test_a_waiting_sync_of_the_replaced_static_member_is_fenced(host: GroupHost) -> None:
    parked = [host.join(instance_id=name) for name in ("one", "two")]
    host.clock.advance(2 * DELAY_MS)
    synced = host.sync(parked[1].answer)

    host.join(instance_id="two")

    assert synced.answer.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_replaced_static_member_is_fenced_in_every_state(host: GroupHost) -> None:
    (former,) = host.static("one")
    host.join(instance_id="one")

    joined = host.join(former.member_id, instance_id="one")

    assert joined.answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert host.heartbeat(former.member_id, 1, "one") == ErrorCode.FENCED_INSTANCE_ID
    assert host.sync(former, group_instance_id="one").answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert host.leave((former.member_id, "one")) == [ErrorCode.FENCED_INSTANCE_ID]


def test_a_replaced_static_member_without_its_instance_id_is_unknown(host: GroupHost) -> None:
    (former,) = host.static("one")
    host.join(instance_id="one")

    assert host.heartbeat(former.member_id) == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unused_instance_id_is_unknown(host: GroupHost) -> None:
    (member,) = host.stable()

    joined = host.join(member.member_id, instance_id="one")

    assert joined.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_session_of_a_static_member_continues_for_its_replacement(host: GroupHost) -> None:
    host.static("one")
    host.clock.advance(SESSION_MS - 1)
    back = host.join(instance_id="one").answer

    host.clock.advance(SESSION_MS - 1)

    assert host.heartbeat(back.member_id, 1, "one") == ErrorCode.NONE
