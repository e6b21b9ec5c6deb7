"""Groups with members of both protocols, and the conversions between them (KIP-848)."""

from __future__ import annotations

import pytest

from odradek.group.classic_group import ClassicGroup
from odradek.group.group import Committer
from odradek.group.group_config import GroupConfig
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.leave_group import MemberIdentity
from support.consumer_groups import AT_ONCE, GROUP, assigned
from support.mixed_groups import REBALANCE_MS, SESSION_MS, MixedGroups

REFUSED = f"Cannot upgrade classic group {GROUP} to consumer group because {{}}."


def config(policy: str, max_size: int = 100) -> GroupConfig:
    return GroupConfig(
        consumer_assignment_interval_ms=0, consumer_migration_policy=policy, consumer_max_size=max_size
    )


def upgraded(groups: MixedGroups) -> tuple[str, int]:
    """A classic member had a-0 and a-1; a consumer m2 has joined. Returns the classic member's id and
    generation.
    """
    generation = groups.classic_group(old={"a": [0, 1]})
    groups.join("m2", "a")
    return groups.ids["old"], generation


def caught_up(groups: MixedGroups) -> tuple[str, int]:
    """The same, and the classic member, which is eager, has joined again: each member has one partition."""
    old, _ = upgraded(groups)
    (answer,) = groups.classic_join(old, "a")
    groups.classic_sync(old, answer.generation_id)
    groups.beat("m2", answer.generation_id)
    return old, answer.generation_id


def refusal_of_beat(groups: MixedGroups, member_id: str, generation: int) -> ErrorCode:
    with pytest.raises(ApiError) as refusal:
        groups.classic_beat(member_id, generation)
    return refusal.value.code


def as_classic(groups: MixedGroups) -> ClassicGroup:
    group = groups.coordinator.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    return group


# -- upgrade


def test_a_consumer_converts_a_classic_group_and_gets_nothing_yet() -> None:
    groups = MixedGroups(a=2)
    generation = groups.classic_group(old={"a": [0, 1]})

    answer = groups.join("m2", "a")

    assert assigned(answer) == set()
    assert answer.member_epoch == generation + 1
    old = groups.group.members[groups.ids["old"]]
    assert (old.member_epoch, set(old.assigned)) == (generation, groups.owned("a", 0, 1))


def test_a_classic_member_is_told_to_join_again_and_revokes_its_share() -> None:
    groups = MixedGroups(a=2)
    old, generation = upgraded(groups)

    code = refusal_of_beat(groups, old, generation)

    assert code is ErrorCode.REBALANCE_IN_PROGRESS
    (joined,) = groups.classic_join(old, "a")
    assert (joined.generation_id, joined.protocol_name, joined.leader) == (generation + 1, "range", "")
    (synced,) = groups.classic_sync(old, joined.generation_id)
    assert len(groups.told(synced)) == 1
    taken = assigned(groups.beat("m2", generation + 1))
    assert taken == groups.owned("a", 0, 1) - groups.told(synced)
    assert groups.group.state_name == "Stable"


def test_a_cooperative_member_keeps_its_partitions_until_it_reports_them_revoked() -> None:
    groups = MixedGroups(a=2)
    old, generation = upgraded(groups)
    (first,) = groups.classic_join(old, "a", owned=groups.owned("a", 0, 1))
    (synced,) = groups.classic_sync(old, first.generation_id)
    kept = groups.told(synced)

    (second,) = groups.classic_join(old, "a", owned=kept)

    assert (first.generation_id, second.generation_id) == (generation, generation + 1)
    assert len(kept) == 1
    assert assigned(groups.beat("m2", generation + 1)) == groups.owned("a", 0, 1) - kept


def test_until_then_the_other_member_gets_nothing_and_the_first_is_told_again() -> None:
    groups = MixedGroups(a=2)
    old, generation = upgraded(groups)
    groups.classic_join(old, "a", owned=groups.owned("a", 0, 1))
    groups.classic_sync(old, generation)

    code = refusal_of_beat(groups, old, generation)

    assert code is ErrorCode.REBALANCE_IN_PROGRESS
    assert assigned(groups.beat("m2", generation + 1)) is None


def test_members_that_wait_for_a_classic_rebalance_join_again() -> None:
    groups = MixedGroups(a=2)
    groups.classic_group(old={"a": [0, 1]})
    parked = groups.classic_join("", "a", version=3)

    groups.join("m2", "a")

    assert [answer.error_code for answer in parked] == [ErrorCode.REBALANCE_IN_PROGRESS]


def test_members_that_wait_for_their_leader_join_again() -> None:
    groups = MixedGroups(a=2)
    answers = [groups.classic_join("", "a", version=3) for _ in range(2)]
    groups.clock.advance(6_000)
    follower = next(answer for (answer,) in answers if answer.member_id != answer.leader)
    parked = groups.classic_sync(follower.member_id, follower.generation_id)

    groups.join("m2", "a")

    assert [answer.error_code for answer in parked] == [ErrorCode.REBALANCE_IN_PROGRESS]


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_the_migration_policy_can_forbid_the_upgrade(policy: str) -> None:
    groups = MixedGroups(config(policy), a=2)
    groups.classic_group(old={"a": [0, 1]})

    with pytest.raises(ApiError) as refusal:
        groups.join("m2", "a")

    assert refusal.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert str(refusal.value) == REFUSED.format("online upgrade is disabled")
    assert as_classic(groups).state_name == "Stable"


def test_a_partition_owned_by_two_members_prevents_the_upgrade() -> None:
    groups = MixedGroups(a=2)
    groups.classic_group(old={"a": [0, 1]}, too={"a": [1]})

    with pytest.raises(ApiError) as refusal:
        groups.join("m2", "a")

    assert refusal.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert str(refusal.value) == REFUSED.format("two members have the same partition")
    assert len(as_classic(groups).members) == 2


@pytest.mark.parametrize(
    ("protocol_type", "metadata", "reason"),
    [
        ("connect", None, "the group does not use the consumer embedded protocol"),
        ("consumer", b"\x00", "the embedded consumer protocol is malformed"),
    ],
)
def test_a_group_of_another_protocol_type_is_not_upgraded(
    protocol_type: str, metadata: bytes | None, reason: str
) -> None:
    groups = MixedGroups(a=2)
    groups.classic_join("", "a", version=3, protocol_type=protocol_type, metadata=metadata)

    with pytest.raises(ApiError) as refusal:
        groups.join("m2", "a")

    assert refusal.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert str(refusal.value) == REFUSED.format(reason)
    assert len(as_classic(groups).members) == 1


def test_a_full_group_is_not_upgraded() -> None:
    groups = MixedGroups(config("bidirectional", max_size=1), a=2)
    groups.classic_group(old={"a": [0, 1]})

    with pytest.raises(ApiError):
        groups.join("m2", "a")

    assert as_classic(groups).state_name == "Stable"


def test_a_static_member_can_change_its_protocol_without_leaving() -> None:
    groups = MixedGroups(a=2)
    groups.classic_join("", "a", version=5, instance_id="i")
    groups.clock.advance(6_000)

    answer = groups.join("m2", "a", instance_id="i")

    assert assigned(answer) == groups.owned("a", 0, 1)
    assert list(groups.group.members) == ["m2"]


# -- members of both protocols


def test_a_classic_member_can_join_a_consumer_group() -> None:
    groups = MixedGroups(a=2)
    groups.join("m1", "a")

    (asked,) = groups.classic_join("", "a")
    (joined,) = groups.classic_join(asked.member_id, "a")

    assert asked.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert joined.error_code == ErrorCode.NONE
    (synced,) = groups.classic_sync(joined.member_id, joined.generation_id)
    assert groups.told(synced) == set()
    assert assigned(groups.beat("m1", 2)) == groups.owned("a", 0)


def test_a_freed_partition_makes_the_classic_member_join_again() -> None:
    groups = MixedGroups(a=2)
    groups.join("m1", "a")
    (joined,) = groups.classic_join("old", "a")
    groups.classic_sync("old", joined.generation_id)
    groups.classic_beat("old", joined.generation_id)
    groups.beat("m1", 2)
    groups.beat("m1", 2, owned=groups.owned("a", 0))

    code = refusal_of_beat(groups, "old", joined.generation_id)

    assert code is ErrorCode.REBALANCE_IN_PROGRESS
    (again,) = groups.classic_join("old", "a")
    (synced,) = groups.classic_sync("old", again.generation_id)
    assert groups.told(synced) == groups.owned("a", 1)


@pytest.mark.parametrize(
    ("names", "protocol_type", "metadata"),
    [(("other",), "consumer", None), (("range",), "connect", None), (("range",), "consumer", b"")],
)
def test_incompatible_protocols_are_inconsistent(
    names: tuple[str, ...], protocol_type: str, metadata: bytes | None
) -> None:
    groups = MixedGroups(a=2)
    caught_up(groups)

    with pytest.raises(ApiError) as refusal:
        groups.classic_join("new", "a", names=names, protocol_type=protocol_type, metadata=metadata)

    assert refusal.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_admits_no_classic_member() -> None:
    groups = MixedGroups(config("bidirectional", max_size=1), a=2)
    groups.join("m1", "a")

    with pytest.raises(ApiError) as refusal:
        groups.classic_join("old", "a")

    assert refusal.value.code is ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize(
    ("member_id", "generation", "instance_id", "code"),
    [
        ("other", 2, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m2", 2, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m2", 2, "i", ErrorCode.UNKNOWN_MEMBER_ID),
        ("", 99, None, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_a_classic_request_of_another_member_is_refused(
    member_id: str, generation: int, instance_id: str | None, code: ErrorCode
) -> None:
    groups = MixedGroups(a=2)
    old, _ = caught_up(groups)

    with pytest.raises(ApiError) as beat:
        groups.classic_beat(member_id or old, generation, instance_id)
    with pytest.raises(ApiError) as sync:
        groups.classic_sync(member_id or old, generation, instance_id)

    assert beat.value.code is sync.value.code is code


def test_the_replaced_client_of_a_static_classic_member_is_fenced() -> None:
    groups = MixedGroups(a=2)
    groups.join("m1", "a")
    (first,) = groups.classic_join("", "a", instance_id="i")
    (second,) = groups.classic_join("", "a", instance_id="i")

    with pytest.raises(ApiError) as refusal:
        groups.classic_beat(first.member_id, first.generation_id, "i")

    assert refusal.value.code is ErrorCode.FENCED_INSTANCE_ID
    assert second.member_id in groups.group.members


def test_an_earlier_generation_cannot_sync() -> None:
    groups = MixedGroups(a=2)
    old, generation = upgraded(groups)

    with pytest.raises(ApiError) as refusal:
        groups.classic_sync(old, generation)

    assert refusal.value.code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_classic_member_commits_with_its_generation() -> None:
    groups = MixedGroups(a=2)
    old, generation = caught_up(groups)

    check = groups.group.validate_offset_commit(
        Committer(member_id=old, generation_id=generation, api_version=7)
    )

    assert check is None
    with pytest.raises(ApiError) as commit:
        groups.group.validate_offset_commit(Committer(member_id=old, generation_id=generation - 1))
    with pytest.raises(ApiError) as fetch:
        groups.group.validate_offset_fetch(old, generation + 1)
    assert commit.value.code is fetch.value.code is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("last_word", ["join", "sync", "told"])
def test_a_classic_member_that_does_not_join_again_is_removed(last_word: str) -> None:
    groups = MixedGroups(a=2)
    old, generation = upgraded(groups)
    if last_word == "told":
        refusal_of_beat(groups, old, generation)
    if last_word != "told":
        (joined,) = groups.classic_join(old, "a")
        generation = joined.generation_id
    if last_word == "sync":
        groups.classic_sync(old, generation)

    for _ in range(REBALANCE_MS // 5_000 + 1):
        groups.clock.advance(5_000)
        groups.beat("m2", groups.group.members["m2"].member_epoch)

    assert list(groups.group.members) == ["m2"]


def test_a_classic_member_stays_as_long_as_it_sends_heartbeats() -> None:
    groups = MixedGroups(a=2)
    old, generation = caught_up(groups)

    for _ in range(8):
        groups.clock.advance(SESSION_MS - 1)
        groups.classic_beat(old, generation)
        groups.beat("m2", groups.group.members["m2"].member_epoch)

    assert set(groups.group.members) == {old, "m2"}


# -- downgrade


def test_the_group_is_classic_again_when_the_last_consumer_leaves() -> None:
    groups = MixedGroups(a=2)
    old, generation = caught_up(groups)

    groups.beat("m2", -1)

    classic = as_classic(groups)
    assert (classic.state_name, list(classic.members)) == ("PreparingRebalance", [old])
    assert classic.generation > generation
    (joined,) = groups.classic_join(old, "a")
    assert (joined.leader, joined.member_id) == (old, old)


def test_the_group_is_classic_again_when_the_last_consumer_falls_silent() -> None:
    groups = MixedGroups(a=2)
    old, generation = caught_up(groups)

    for _ in range(9):
        groups.clock.advance(5_000)
        if not isinstance(groups.coordinator.groups[GROUP], ClassicGroup):
            groups.classic_beat(old, generation)

    assert list(as_classic(groups).members) == [old]


def test_an_operator_can_remove_the_last_consumer() -> None:
    groups = MixedGroups(a=2)
    old, _ = caught_up(groups)

    answers = groups.classic_leave(MemberIdentity(member_id="m2"), MemberIdentity(member_id="nobody"))

    assert [answer.error_code for answer in answers] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(as_classic(groups).members) == [old]


def test_a_static_member_that_returns_as_classic_downgrades_the_group() -> None:
    groups = MixedGroups(a=2)
    groups.join("m1", "a", instance_id="i")
    groups.beat("m1", -2, instance_id="i")

    (joined,) = groups.classic_join("", "a", instance_id="i")

    assert list(as_classic(groups).members) == [joined.member_id]


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_the_migration_policy_can_forbid_the_downgrade(policy: str) -> None:
    groups = MixedGroups(config(policy), a=2)
    groups.join("m2", "a")
    (joined,) = groups.classic_join("old", "a")
    groups.classic_sync("old", joined.generation_id)

    groups.beat("m2", -1)

    assert list(groups.group.members) == ["old"]
    (again,) = groups.classic_join("old", "a")
    (synced,) = groups.classic_sync("old", again.generation_id)
    assert groups.told(synced) == groups.owned("a", 0, 1)


def test_a_mixed_group_whose_classic_members_all_leave_is_empty() -> None:
    groups = MixedGroups(config("upgrade"), a=2)
    old, _ = upgraded(groups)

    groups.classic_leave(MemberIdentity(member_id=old), MemberIdentity(member_id="m2"))

    assert groups.group.is_empty
    assert len(groups.clock.timer) == 0


def test_a_mixed_group_leaves_no_timers_behind() -> None:
    groups = MixedGroups(AT_ONCE, a=2)
    caught_up(groups)
    groups.beat("m2", -1)

    groups.coordinator.remove(GROUP)

    assert len(groups.clock.timer) == 0


def test_upgrade_and_downgrade_never_free_a_partition_in_use() -> None:
    groups = MixedGroups(a=2)
    old, _ = upgraded(groups)
    groups.beat("m2", -1)

    answer = groups.join("m3", "a")

    assert assigned(answer) == set()
    assert set(groups.group.holders.values()) == {old}
