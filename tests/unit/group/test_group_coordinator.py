"""The registry: who may commit, what survives a restart, what goes with a topic."""

from __future__ import annotations

import pytest

from odradek.group.committed_offset import CommittedOffset
from odradek.group.group import Committer
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.classic_groups import SESSION_MS, ClassicWorld, refusal

T = b"t" * 16
OFFSET = CommittedOffset(offset=3)


@pytest.fixture
def world() -> ClassicWorld:
    return ClassicWorld()


def committing(world: ClassicWorld, **committer: object) -> ErrorCode:
    """The error code of a commit of group ``g``."""
    asked = Committer(**committer)  # type: ignore[arg-type]  # fields by name
    return refusal(lambda: world.groups.committing("g", asked))


def test_a_group_that_is_not_there_is_not_found(world: ClassicWorld) -> None:
    with pytest.raises(ApiError) as refused:
        world.groups.group("g")

    assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("version", "transactional", "code"),
    [
        (8, False, ErrorCode.ILLEGAL_GENERATION),
        (9, False, ErrorCode.GROUP_ID_NOT_FOUND),
        (3, True, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_a_member_of_a_group_that_is_not_there_cannot_commit(
    world: ClassicWorld, version: int, transactional: bool, code: ErrorCode
) -> None:
    refused = committing(
        world, member_id="m", generation_id=1, api_version=version, is_transactional=transactional
    )

    assert refused == code
    assert not world.groups.groups


def test_offsets_alone_make_a_group(world: ClassicWorld) -> None:
    code = committing(world)
    world.groups.commit("g", {(T, 0): OFFSET})

    assert code == ErrorCode.NONE
    assert (world.group.state_name, world.group.protocol_type) == ("Empty", "")


def test_a_commit_of_nothing_makes_no_group(world: ClassicWorld) -> None:
    world.groups.commit("g", {})

    assert not world.groups.groups


def test_pending_offsets_make_a_group_too(world: ClassicWorld) -> None:
    world.groups.offsets.add_pending(7, "g", {(T, 0): OFFSET})

    assert world.group.state_name == "Empty"


def test_outsiders_may_commit_while_a_group_is_empty(world: ClassicWorld) -> None:
    (member,) = world.stable()
    world.leave((member.member_id, None))

    assert committing(world) == ErrorCode.NONE
    assert committing(world, member_id="anybody") == ErrorCode.NONE


def test_outsiders_may_not_commit_while_there_are_members(world: ClassicWorld) -> None:
    world.stable()

    assert committing(world) == ErrorCode.UNKNOWN_MEMBER_ID


def test_outsiders_may_commit_in_a_transaction(world: ClassicWorld) -> None:
    world.stable()

    assert committing(world, is_transactional=True) == ErrorCode.NONE


def test_members_commit_under_their_generation(world: ClassicWorld) -> None:
    (member,) = world.stable()

    assert committing(world, member_id=member.member_id, generation_id=1) == ErrorCode.NONE


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
def test_strangers_do_not_commit(
    world: ClassicWorld, committer: dict[str, object], code: ErrorCode, transactional: bool
) -> None:
    world.static("one")

    assert committing(world, is_transactional=transactional, **committer) == code


@pytest.mark.parametrize("generation", [0, 2, -1])
@pytest.mark.parametrize("transactional", [False, True])
def test_members_of_a_dead_generation_do_not_commit(
    world: ClassicWorld, generation: int, transactional: bool
) -> None:
    (member,) = world.stable()

    code = committing(
        world, member_id=member.member_id, generation_id=generation, is_transactional=transactional
    )

    assert code == ErrorCode.ILLEGAL_GENERATION


def test_members_may_commit_while_others_join(world: ClassicWorld) -> None:
    leader, follower = world.stable(2)
    world.join(leader.member_id)

    assert committing(world, member_id=follower.member_id, generation_id=1) == ErrorCode.NONE


def test_members_may_not_commit_while_the_leader_assigns(world: ClassicWorld) -> None:
    (member,) = world.completing()

    plain = committing(world, member_id=member.member_id, generation_id=1)
    transactional = committing(world, member_id=member.member_id, generation_id=1, is_transactional=True)

    assert (plain, transactional) == (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE)


def test_a_commit_keeps_the_session(world: ClassicWorld) -> None:
    (member,) = world.stable()
    world.clock.advance(SESSION_MS - 1)
    committing(world, member_id=member.member_id, generation_id=1)

    world.clock.advance(SESSION_MS - 1)

    assert world.group.state_name == "Stable"


def test_a_group_comes_back_empty_with_its_generation_and_offsets(world: ClassicWorld) -> None:
    (member,) = world.stable()
    world.groups.commit("g", {(T, 0): OFFSET})

    again = ClassicWorld(store=world.store)

    assert (again.group.state_name, again.group.generation) == ("Empty", 1)
    assert again.group.protocol_type == "consumer"
    assert again.group.empty_since_ms == again.clock.now_ms()
    assert again.groups.offsets.offset("g", (T, 0)) == OFFSET
    assert again.heartbeat(member.member_id) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committing(again, member_id=member.member_id, generation_id=1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_was_empty_comes_back_as_old_as_it_was(world: ClassicWorld) -> None:
    (member,) = world.stable()
    world.leave((member.member_id, None))
    empty_since_ms = world.clock.now_ms()

    again = ClassicWorld(store=world.store)

    assert again.group.empty_since_ms == empty_since_ms


def test_groups_of_offsets_alone_come_back(world: ClassicWorld) -> None:
    world.groups.commit("g", {(T, 0): OFFSET})
    world.groups.offsets.add_pending(7, "h", {(T, 0): OFFSET})

    again = ClassicWorld(store=world.store)

    assert [(group.group_id, group.protocol_type) for group in again.groups] == [("g", ""), ("h", "")]


def test_a_removed_group_does_not_come_back(world: ClassicWorld) -> None:
    (member,) = world.stable()
    world.leave((member.member_id, None))
    world.groups.commit("g", {(T, 0): OFFSET})

    world.groups.remove("g")

    assert not world.groups.groups
    assert not ClassicWorld(store=world.store).groups.groups


@pytest.mark.parametrize("members", [0, 1])
def test_only_empty_groups_may_be_deleted(world: ClassicWorld, members: int) -> None:
    (member,) = world.stable()
    if not members:
        world.leave((member.member_id, None))

    code = refusal(world.group.validate_delete)

    assert code == (ErrorCode.NON_EMPTY_GROUP if members else ErrorCode.NONE)


def test_the_offsets_of_a_deleted_topic_go_with_it(world: ClassicWorld) -> None:
    world.groups.commit("g", {(T, 0): OFFSET, (b"u" * 16, 0): OFFSET})
    del world.topics.known["t"]

    world.groups.topics_changed()

    assert list(world.groups.offsets.of_group("g")) == [(b"u" * 16, 0)]


def test_a_group_that_cannot_be_deleted_is_still_there(world: ClassicWorld) -> None:
    world.groups.commit("g", {(T, 0): OFFSET})
    world.store.connection.execute("pragma query_only = on")

    refused = refusal(lambda: world.groups.remove("g"))

    assert refused == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.group.state_name == "Empty"
    assert world.groups.offsets.of_group("g") == {(T, 0): OFFSET}


def test_groups_learn_of_topics_also_while_offsets_cannot_be_forgotten(world: ClassicWorld) -> None:
    world.groups.commit("g", {(T, 0): OFFSET})
    world.store.connection.execute("pragma query_only = on")
    del world.topics.known["t"]

    world.groups.topics_changed()

    assert world.groups.offsets.of_group("g") == {(T, 0): OFFSET}
    world.store.connection.execute("pragma query_only = off")
    world.groups.topics_changed()
    assert not world.groups.offsets.has_any("g")
