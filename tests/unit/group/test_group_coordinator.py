"""The registry of groups: commits, restarts and deleted topics."""

from __future__ import annotations

import pytest

from odradek.group.committed_offset import CommittedOffset
from odradek.group.group import Committer
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.classic_groups import SESSION_MS, GroupHost
from support.error_codes import code_of

T = b"t" * 16
OFFSET = CommittedOffset(offset=3)


@pytest.fixture
def host() -> GroupHost:
    return GroupHost()


def committing(host: GroupHost, **committer: object) -> ErrorCode:
    """The error code of a commit to group ``g``."""
    asked = Committer(**committer)  # type: ignore[arg-type]  # fields by name
    return code_of(lambda: host.groups.committing("g", asked))


def test_an_unknown_group_is_not_found(host: GroupHost) -> None:
    with pytest.raises(ApiError) as refused:
        host.groups.group("g")

    assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("version", "transactional", "code"),
    [
        (8, False, ErrorCode.ILLEGAL_GENERATION),
        (9, False, ErrorCode.GROUP_ID_NOT_FOUND),
        (3, True, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_a_member_of_an_unknown_group_cannot_commit(
    host: GroupHost, version: int, transactional: bool, code: ErrorCode
) -> None:
    refused = committing(
        host, member_id="m", generation_id=1, api_version=version, is_transactional=transactional
    )

    assert refused == code
    assert not host.groups.groups


def test_a_commit_creates_a_group(host: GroupHost) -> None:
    code = committing(host)
    host.groups.commit("g", {(T, 0): OFFSET})

    assert code == ErrorCode.NONE
    assert (host.group.state_name, host.group.protocol_type) == ("Empty", "")


def test_an_empty_commit_creates_no_group(host: GroupHost) -> None:
    host.groups.commit("g", {})

    assert not host.groups.groups


def test_pending_offsets_create_a_group_too(host: GroupHost) -> None:
    host.groups.offsets.add_pending(7, "g", {(T, 0): OFFSET})

    assert host.group.state_name == "Empty"


def test_outsiders_can_commit_to_an_empty_group(host: GroupHost) -> None:
    (member,) = host.stable()
    host.leave((member.member_id, None))

    assert committing(host) == ErrorCode.NONE
    assert committing(host, member_id="anybody") == ErrorCode.NONE


def test_outsiders_cannot_commit_to_a_group_with_members(host: GroupHost) -> None:
    host.stable()

    assert committing(host) == ErrorCode.UNKNOWN_MEMBER_ID


def test_outsiders_can_commit_in_a_transaction(host: GroupHost) -> None:
    host.stable()

    assert committing(host, is_transactional=True) == ErrorCode.NONE


def test_members_commit_with_their_generation(host: GroupHost) -> None:
    (member,) = host.stable()

    assert committing(host, member_id=member.member_id, generation_id=1) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("committer", "code"),
    [
        ({"member_id": "stranger", "generation_id": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        (
            {"member_id": "stranger", "group_instance_id": "one", "generation_id": 1},
            ErrorCode.FENCED_INSTANCE_ID,
        ),
        (
            {"member_id": "stranger", "group_instance_id": "x", "generation_id": 1},
            ErrorCode.UNKNOWN_MEMBER_ID,
        ),
    ],
)
@pytest.mark.parametrize("transactional", [False, True])
def test_unknown_members_cannot_commit(
    host: GroupHost, committer: dict[str, object], code: ErrorCode, transactional: bool
) -> None:
    host.static("one")

    assert committing(host, is_transactional=transactional, **committer) == code


@pytest.mark.parametrize("generation", [0, 2, -1])
@pytest.mark.parametrize("transactional", [False, True])
def test_members_of_an_earlier_generation_cannot_commit(
    host: GroupHost, generation: int, transactional: bool
) -> None:
    (member,) = host.stable()

    code = committing(
        host, member_id=member.member_id, generation_id=generation, is_transactional=transactional
    )

    assert code == ErrorCode.ILLEGAL_GENERATION


def test_members_can_commit_during_a_rebalance(host: GroupHost) -> None:
    leader, follower = host.stable(2)
    host.join(leader.member_id)

    assert committing(host, member_id=follower.member_id, generation_id=1) == ErrorCode.NONE


def test_members_cannot_commit_while_the_leader_assigns(host: GroupHost) -> None:
    (member,) = host.completing()

    plain = committing(host, member_id=member.member_id, generation_id=1)
    transactional = committing(host, member_id=member.member_id, generation_id=1, is_transactional=True)

    assert (plain, transactional) == (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE)


def test_a_commit_extends_the_session(host: GroupHost) -> None:
    (member,) = host.stable()
    host.clock.advance(SESSION_MS - 1)
    committing(host, member_id=member.member_id, generation_id=1)

    host.clock.advance(SESSION_MS - 1)

    assert host.group.state_name == "Stable"


def test_after_a_restart_a_group_is_empty_with_its_generation_and_offsets(host: GroupHost) -> None:
    (member,) = host.stable()
    host.groups.commit("g", {(T, 0): OFFSET})

    again = GroupHost(store=host.store)

    assert (again.group.state_name, again.group.generation) == ("Empty", 1)
    assert again.group.protocol_type == "consumer"
    assert again.group.empty_since_ms == again.clock.now_ms()
    assert again.groups.offsets.offset("g", (T, 0)) == OFFSET
    assert again.heartbeat(member.member_id) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committing(again, member_id=member.member_id, generation_id=1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_after_a_restart_an_empty_group_keeps_the_time_since_it_is_empty(host: GroupHost) -> None:
    (member,) = host.stable()
    host.leave((member.member_id, None))
    empty_since_ms = host.clock.now_ms()

    again = GroupHost(store=host.store)

    assert again.group.empty_since_ms == empty_since_ms


def test_groups_with_only_offsets_survive_a_restart(host: GroupHost) -> None:
    host.groups.commit("g", {(T, 0): OFFSET})
    host.groups.offsets.add_pending(7, "h", {(T, 0): OFFSET})

    again = GroupHost(store=host.store)

    assert [(group.group_id, group.protocol_type) for group in again.groups] == [("g", ""), ("h", "")]


def test_a_removed_group_stays_removed_after_a_restart(host: GroupHost) -> None:
    (member,) = host.stable()
    host.leave((member.member_id, None))
    host.groups.commit("g", {(T, 0): OFFSET})

    host.groups.remove("g")

    assert not host.groups.groups
    assert not GroupHost(store=host.store).groups.groups


@pytest.mark.parametrize("members", [0, 1])
def test_only_empty_groups_can_be_deleted(host: GroupHost, members: int) -> None:
    (member,) = host.stable()
    if not members:
        host.leave((member.member_id, None))

    code = code_of(host.group.validate_delete)

    assert code == (ErrorCode.NON_EMPTY_GROUP if members else ErrorCode.NONE)


def test_the_offsets_of_a_deleted_topic_are_deleted(host: GroupHost) -> None:
    host.groups.commit("g", {(T, 0): OFFSET, (b"u" * 16, 0): OFFSET})
    del host.topics.known["t"]

    host.groups.topics_changed()

    assert list(host.groups.offsets.of_group("g")) == [(b"u" * 16, 0)]


def test_a_group_whose_deletion_fails_still_exists(host: GroupHost) -> None:
    host.groups.commit("g", {(T, 0): OFFSET})
    host.store.connection.execute("pragma query_only = on")

    refused = code_of(lambda: host.groups.remove("g"))

    assert refused == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.group.state_name == "Empty"
    assert host.groups.offsets.of_group("g") == {(T, 0): OFFSET}


def test_groups_hear_of_topics_even_if_offsets_cannot_be_deleted(host: GroupHost) -> None:
    host.groups.commit("g", {(T, 0): OFFSET})
    host.store.connection.execute("pragma query_only = on")
    del host.topics.known["t"]

    host.groups.topics_changed()

    assert host.groups.offsets.of_group("g") == {(T, 0): OFFSET}
    host.store.connection.execute("pragma query_only = off")
    host.groups.topics_changed()
    assert not host.groups.offsets.has_any("g")
