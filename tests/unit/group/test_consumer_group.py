"""States, epochs, timers and commits of a group of the consumer protocol, on a mock clock."""

from __future__ import annotations

import pytest

from odradek.group.group import Committer
from odradek.group.group_config import GroupConfig
from odradek.group.group_member import MemberState
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.consumer_groups import GROUP, ConsumerGroups, assigned

SESSION_MS = 45_000


def committer(
    member_id: str = "m1", epoch: int = 2, version: int = 9, *, is_transactional: bool = False
) -> Committer:
    return Committer(
        member_id=member_id, generation_id=epoch, api_version=version, is_transactional=is_transactional
    )


def two_members() -> ConsumerGroups:
    """m1 has a-0 and a-1 and must revoke one of them for m2, who has joined."""
    groups = ConsumerGroups(a=2)
    groups.join("m1", "a")
    groups.join("m2", "a")
    return groups


def revoking() -> ConsumerGroups:
    """The same, after m1 was told to revoke."""
    groups = two_members()
    groups.beat("m1", 2)
    return groups


# -- states of the group and of its members


def test_the_first_member_gets_every_partition_at_once() -> None:
    groups = ConsumerGroups(a=2, b=1)

    answer = groups.join("m1", "a", "b")

    assert assigned(answer) == groups.owned("a", 0, 1) | groups.owned("b", 0)
    assert (answer.member_epoch, answer.heartbeat_interval_ms) == (2, 5_000)
    assert groups.group.state_name == "Stable"


def test_a_second_member_waits_for_partitions_that_are_not_yet_revoked() -> None:
    groups = ConsumerGroups(a=2)
    groups.join("m1", "a")

    answer = groups.join("m2", "a")

    assert assigned(answer) == set()
    assert answer.member_epoch == 3
    assert groups.group.members["m2"].state is MemberState.UNRELEASED
    assert groups.group.state_name == "Reconciling"


def test_a_member_that_must_revoke_stays_at_its_epoch() -> None:
    groups = two_members()

    answer = groups.beat("m1", 2)

    assert assigned(answer) == groups.owned("a", 0)
    assert answer.member_epoch == 2
    assert groups.group.members["m1"].state is MemberState.UNREVOKED


def test_a_member_that_does_not_report_its_partitions_has_revoked_nothing() -> None:
    groups = revoking()

    answer = groups.beat("m1", 2, owned=None)

    assert answer.member_epoch == 2
    assert assigned(groups.beat("m2", 3)) is None


def test_revoked_partitions_go_to_the_other_member() -> None:
    groups = revoking()
    groups.beat("m1", 2, owned=groups.owned("a", 0))

    answer = groups.beat("m2", 3)

    assert assigned(answer) == groups.owned("a", 1)
    assert groups.group.members["m1"].member_epoch == 3
    assert groups.group.state_name == "Stable"


def test_while_a_target_is_due_the_group_is_assigning() -> None:
    groups = ConsumerGroups(GroupConfig(consumer_assignment_interval_ms=1_000), a=2)
    groups.join("m1", "a")

    answer = groups.join("m2", "a")

    assert (answer.member_epoch, assigned(answer)) == (2, set())
    assert groups.group.state_name == "Assigning"


def test_the_target_is_computed_when_the_interval_is_over() -> None:
    groups = ConsumerGroups(GroupConfig(consumer_assignment_interval_ms=1_000), a=2)
    groups.join("m1", "a")
    groups.join("m2", "a")
    groups.clock.advance(1_000)

    answer = groups.beat("m1", 2)

    assert assigned(answer) == groups.owned("a", 0)
    assert groups.group.target.epoch == groups.group.group_epoch == 3


def test_an_empty_group_knows_since_when_it_is_empty() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")
    groups.clock.advance(1_000)

    groups.beat("m1", -1)

    assert groups.group.state_name == "Empty"
    assert groups.group.empty_since_ms == groups.clock.now_ms()


def test_who_joins_a_group_that_was_emptied_gets_partitions_at_once() -> None:
    groups = ConsumerGroups(GroupConfig(consumer_assignment_interval_ms=1_000), a=2)
    groups.join("m1", "a")
    groups.beat("m1", -1)

    answer = groups.join("m2", "a")

    assert assigned(answer) == groups.owned("a", 0, 1)


# -- epochs


def test_a_changed_subscription_bumps_the_group_epoch() -> None:
    groups = ConsumerGroups(a=1, b=1)
    groups.join("m1", "a")

    answer = groups.beat("m1", 2, owned=groups.owned("a", 0), topics=["a", "b"])

    assert groups.group.group_epoch == answer.member_epoch == 3
    assert assigned(answer) == groups.owned("a", 0) | groups.owned("b", 0)


def test_repeating_the_same_subscription_changes_nothing() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    answer = groups.beat("m1", 2, topics=["a"])

    assert groups.group.group_epoch == 2
    assert assigned(answer) is None


@pytest.mark.parametrize("interval_ms", [0, 1_000])
def test_partitions_of_an_unsubscribed_topic_are_revoked_at_once(interval_ms: int) -> None:
    groups = ConsumerGroups(GroupConfig(consumer_assignment_interval_ms=interval_ms), a=1, b=1)
    groups.join("m1", "a", "b")

    answer = groups.beat("m1", 2, topics=["b"])

    assert assigned(answer) == groups.owned("b", 0)
    assert groups.group.members["m1"].state is MemberState.UNREVOKED
    assert groups.group.holders.keys() == groups.owned("a", 0) | groups.owned("b", 0)


def test_unsubscribing_before_the_target_is_due_frees_partitions_not_owned() -> None:
    groups = ConsumerGroups(GroupConfig(consumer_assignment_interval_ms=1_000), a=1, b=1)
    groups.join("m1", "a", "b")

    groups.beat("m1", 2, owned=groups.owned("b", 0), topics=["b"])

    assert groups.group.members["m1"].state is MemberState.STABLE
    assert groups.group.holders.keys() == groups.owned("b", 0)


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_new_or_grown_topic_is_assigned_at_the_next_heartbeat(partitions: int) -> None:
    groups = ConsumerGroups(a=1, b=1)
    groups.join("m1", "a", "c", "b")
    groups.topics.put("c", partitions)
    groups.topics_changed()

    answer = groups.beat("m1", 2)

    assert groups.group.group_epoch == answer.member_epoch == 3
    assert (assigned(answer) or set()) >= groups.owned("c", *range(partitions))


def test_a_topic_that_grows_bumps_the_epoch() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")
    groups.topics.put("a", 2)
    groups.topics_changed()

    answer = groups.beat("m1", 2)

    assert assigned(answer) == groups.owned("a", 0, 1)


def test_partitions_of_a_deleted_topic_are_revoked() -> None:
    groups = ConsumerGroups(a=1, b=1)
    groups.join("m1", "a", "b")
    gone = groups.owned("b", 0)
    groups.topics.delete("b")
    groups.topics_changed()

    answer = groups.beat("m1", 2)

    assert assigned(answer) == groups.owned("a", 0)
    assert groups.group.members["m1"].pending_revocation.keys() == gone


def test_topics_without_subscribers_do_not_matter() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")
    groups.topics.put("other", 9)
    groups.topics_changed()

    answer = groups.beat("m1", 2)

    assert (answer.member_epoch, groups.group.group_epoch) == (2, 2)


def test_a_topic_that_matches_an_expression_is_assigned_when_it_is_created() -> None:
    groups = ConsumerGroups(logs_a=1, other=1)
    groups.join("m1", regex="logs_.*")
    groups.topics.put("logs_b", 1)
    groups.topics_changed()

    answer = groups.beat("m1", 1)

    assert assigned(answer) == groups.owned("logs_a", 0) | groups.owned("logs_b", 0)


def test_names_and_an_expression_are_combined() -> None:
    groups = ConsumerGroups(a=1, logs=1)

    first = groups.join("m1", "a", regex="lo.*")
    answer = groups.beat("m1", first.member_epoch)

    assert assigned(first) == groups.owned("a", 0)
    assert assigned(answer) == groups.owned("a", 0) | groups.owned("logs", 0)


def test_an_empty_expression_ends_the_subscription() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", regex="a")

    answer = groups.join("m1", regex="")

    assert assigned(answer) == set()
    assert groups.group.subscriptions.regexes == {}


# -- timers


def test_a_silent_member_is_removed_and_frees_its_partitions() -> None:
    groups = two_members()
    groups.clock.advance(SESSION_MS - 1)
    groups.beat("m2", 3)
    groups.clock.advance(1)

    answer = groups.beat("m2", 3)

    assert list(groups.group.members) == ["m2"]
    assert assigned(answer) == groups.owned("a", 0, 1)
    assert groups.group.group_epoch == 4


def test_a_heartbeat_restarts_the_session() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")
    groups.clock.advance(SESSION_MS - 1)
    groups.beat("m1", 2)

    groups.clock.advance(SESSION_MS - 1)

    assert "m1" in groups.group.members


def test_a_member_that_does_not_revoke_in_time_is_removed() -> None:
    groups = ConsumerGroups(a=2)
    groups.join("m1", "a", rebalance_timeout_ms=10_000)
    groups.join("m2", "a")
    groups.beat("m1", 2)

    groups.clock.advance(10_000)

    assert list(groups.group.members) == ["m2"]
    assert assigned(groups.beat("m2", 3)) == groups.owned("a", 0, 1)


def test_a_member_that_revokes_in_time_stays() -> None:
    groups = revoking()
    groups.beat("m1", 2, owned=groups.owned("a", 0))
    groups.clock.advance(40_000)
    groups.beat("m1", 3)

    groups.clock.advance(40_000)

    assert "m1" in groups.group.members


def test_waiting_for_other_members_is_not_limited_by_the_rebalance_timeout() -> None:
    groups = revoking()

    for _ in range(5):
        groups.clock.advance(11_000)
        groups.beat("m2", 3)

    assert "m2" in groups.group.members


def test_a_closed_group_has_no_timers() -> None:
    groups = revoking()

    groups.coordinator.remove(GROUP)

    assert len(groups.clock.timer) == 0


# -- offsets (KIP-848, KIP-1251)


def test_a_client_outside_an_empty_group_may_commit() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")
    groups.beat("m1", -1)

    check = groups.group.validate_offset_commit(committer("", -1, 2))

    assert check is None


@pytest.mark.parametrize(
    ("member", "code"),
    [
        (committer("", -1), ErrorCode.UNKNOWN_MEMBER_ID),
        (committer("other", 2), ErrorCode.UNKNOWN_MEMBER_ID),
        (committer("m1", 3), ErrorCode.STALE_MEMBER_EPOCH),
        (committer("m1", 2, 8), ErrorCode.UNSUPPORTED_VERSION),
        (committer("m1", 3, 5, is_transactional=True), ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_a_commit_with_a_wrong_member_or_epoch_is_refused(member: Committer, code: ErrorCode) -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    with pytest.raises(ApiError) as refusal:
        groups.group.validate_offset_commit(member)

    assert refusal.value.code is code


@pytest.mark.parametrize(
    "member",
    [
        committer("m1", 2),
        committer("m1", 2, 3, is_transactional=True),
        committer("", -1, 3, is_transactional=True),
    ],
)
def test_a_commit_of_the_member_or_an_allowed_outsider_is_accepted(member: Committer) -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    check = groups.group.validate_offset_commit(member)

    assert check is None


def test_an_older_epoch_may_commit_partitions_owned_since_then() -> None:
    groups = ConsumerGroups(a=1, b=1)
    groups.join("m1", "a")
    groups.beat("m1", 2, topics=["a", "b"])
    (kept,), (added,) = groups.owned("a", 0), groups.owned("b", 0)

    check = groups.group.validate_offset_commit(committer("m1", 2))

    assert check is not None
    check(*kept)
    for partition in (added, (kept[0], 7)):
        with pytest.raises(ApiError) as refusal:
            check(*partition)
        assert refusal.value.code is ErrorCode.STALE_MEMBER_EPOCH


@pytest.mark.parametrize(("member_id", "epoch"), [(None, -1), ("m1", 2)])
def test_an_offset_fetch_of_the_member_or_an_outsider_is_accepted(member_id: str | None, epoch: int) -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    groups.group.validate_offset_fetch(member_id, epoch)

    assert groups.group.state_name == "Stable"


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        ("other", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m1", 1, ErrorCode.STALE_MEMBER_EPOCH),
        ("m1", 3, ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_an_offset_fetch_with_a_wrong_member_or_epoch_is_refused(
    member_id: str | None, epoch: int, code: ErrorCode
) -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    with pytest.raises(ApiError) as refusal:
        groups.group.validate_offset_fetch(member_id, epoch)

    assert refusal.value.code is code


# -- other requests


def test_only_an_empty_group_can_be_deleted() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")

    with pytest.raises(ApiError) as refusal:
        groups.group.validate_delete()
    groups.beat("m1", -1)
    groups.group.validate_delete()

    assert refusal.value.code is ErrorCode.NON_EMPTY_GROUP


def test_a_group_knows_its_subscribed_topics() -> None:
    groups = ConsumerGroups(a=1, logs=1, other=1)
    groups.join("m1", "a")
    groups.beat("m2", groups.join("m2", regex="l.*").member_epoch)

    subscribed = {name for name in ("a", "logs", "other", "unknown") if groups.group.is_subscribed_to(name)}

    assert subscribed == {"a", "logs"}


def test_after_a_restart_the_group_exists_and_its_members_are_unknown() -> None:
    groups = ConsumerGroups(a=1)
    groups.join("m1", "a")
    restarted = ConsumerGroups(a=1)
    for row in groups.store.groups():
        restarted.store.put_group(row)
    restarted.coordinator.groups = {
        row[0]: restarted.coordinator.restored(row) for row in groups.store.groups()
    }

    with pytest.raises(ApiError) as refusal:
        restarted.beat("m1", 2)

    assert refusal.value.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert restarted.join("m1", "a").member_epoch > 2
