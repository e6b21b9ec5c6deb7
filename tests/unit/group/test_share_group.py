"""Share groups: members, epochs, targets; what Kafka 4.4.0 answers to the same heartbeats."""

from __future__ import annotations

import pytest

from odradek.group.share_config import ShareGroupConfig
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from support.share_groups import GROUP, ShareGroups, assigned


def code_of(groups: ShareGroups, request: ShareGroupHeartbeatRequest) -> ErrorCode:
    with pytest.raises(ApiError) as refusal:
        groups.send(request)
    return refusal.value.code


def test_a_new_group_gets_its_partitions_after_the_assignment_interval() -> None:
    groups = ShareGroups(t=2)

    joined = groups.join("m", "t")
    early = groups.beat("m", after_ms=999)
    later = groups.beat("m", after_ms=1)

    assert (joined.member_id, joined.member_epoch, joined.heartbeat_interval_ms) == ("m", 2, 5_000)
    assert assigned(joined) == {}
    assert (early.member_epoch, assigned(early)) == (2, None)
    assert (later.member_epoch, assigned(later)) == (3, {groups.topics.ids["t"]: [0, 1]})
    assert assigned(groups.beat("m")) is None


def test_without_an_interval_the_partitions_come_with_the_second_heartbeat() -> None:
    groups = ShareGroups(ShareGroupConfig(assignment_interval_ms=0), t=1)
    groups.join("m", "t")

    answer = groups.beat("m")

    assert (answer.member_epoch, assigned(answer)) == (3, {groups.topics.ids["t"]: [0]})


def test_a_member_that_joins_again_gets_its_partitions_at_once() -> None:
    groups = ShareGroups(t=1)
    groups.join("m", "t")
    groups.settle()
    groups.beat("m", -1)

    answer = groups.join("m", "t")

    assert assigned(answer) == {groups.topics.ids["t"]: [0]}
    assert answer.member_epoch == groups.group.group_epoch == 5


def test_a_member_keeps_its_place_with_epoch_0() -> None:
    groups = ShareGroups(t=1)
    groups.join("m", "t")
    groups.settle()

    answer = groups.join("m", "t")

    assert (answer.member_epoch, assigned(answer)) == (3, {groups.topics.ids["t"]: [0]})


def test_topics_in_the_request_bring_the_assignment() -> None:
    groups = ShareGroups(t=1)
    groups.join("m", "t")
    groups.settle()

    answer = groups.beat("m", None, "t")

    assert (answer.member_epoch, assigned(answer)) == (3, {groups.topics.ids["t"]: [0]})


def test_the_previous_epoch_is_answered_with_the_present_one() -> None:
    groups = ShareGroups(t=1)
    groups.join("m", "t")
    groups.settle()

    answer = groups.beat("m", 2)

    assert (answer.member_epoch, assigned(answer)) == (3, None)


@pytest.mark.parametrize("epoch", [1, 4])
def test_another_epoch_is_fenced(epoch: int) -> None:
    groups = ShareGroups(t=1)
    groups.join("m", "t")
    groups.settle()
    request = ShareGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=epoch)

    assert code_of(groups, request) is ErrorCode.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"member_id": "  "}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 0}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 0, "subscribed_topic_names": []}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"group_id": "other"}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"group_id": "other", "member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_id": "n"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "n", "member_epoch": -1}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_request_is_refused_as_by_kafka(changes: dict[str, object], code: ErrorCode) -> None:
    groups = ShareGroups(t=1)
    groups.join("m", "t")
    request = ShareGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=2)
    for name, value in changes.items():
        setattr(request, name, value)

    assert code_of(groups, request) is code


def test_a_full_group_takes_no_other_member() -> None:
    groups = ShareGroups(ShareGroupConfig(max_size=1), t=1)
    groups.join("m", "t")
    request = ShareGroupHeartbeatRequest(group_id=GROUP, member_id="n", subscribed_topic_names=["t"])

    assert code_of(groups, request) is ErrorCode.GROUP_MAX_SIZE_REACHED
    request.member_epoch = 7
    assert code_of(groups, request) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.join("m", "t").member_epoch == 2


def test_an_unknown_topic_is_assigned_once_it_exists() -> None:
    groups = ShareGroups()
    groups.join("m", "later")
    assert groups.settle() == {"m": []}
    groups.topics.put("later", 1)
    groups.coordinator.topics_changed()

    assert groups.settle() == {"m": [0]}


def test_changes_of_topics_are_taken_in() -> None:
    groups = ShareGroups(t=1, u=1)
    groups.join("m", "t", "u")
    groups.settle()
    old = groups.topics.ids["u"]
    groups.topics.put("t", 2)
    groups.topics.delete("u")
    groups.coordinator.topics_changed()

    without = groups.beat("m", after_ms=1_000)
    more = groups.beat("m", after_ms=1_000)
    new = groups.topics.put("u", 1)
    groups.coordinator.topics_changed()
    groups.settle()

    t = groups.topics.ids["t"]
    assert (without.member_epoch, assigned(without)) == (4, {t: [0]})
    assert (more.member_epoch, assigned(more)) == (5, {t: [0, 1]})
    assert groups.group.members["m"].assigned == {(t, 0), (t, 1), (new, 0)}
    assert old not in {topic_id for _, topic_id, *_ in groups.store.shares.share_partitions()}


def test_a_leaving_member_is_gone_and_the_group_stays() -> None:
    groups = ShareGroups(t=1)
    groups.join("m", "t")
    groups.settle()

    answer = groups.beat("m", -1)

    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m", -1, 0)
    assert (groups.group.state_name, groups.group.group_epoch) == ("Empty", 4)
    assert groups.group.assignment_epoch == 4


def test_a_silent_member_is_removed() -> None:
    groups = ShareGroups(t=1)
    groups.join("m", "t")
    groups.clock.advance(44_999)
    assert groups.group.state_name == "Stable"

    groups.clock.advance(1)

    assert groups.group.state_name == "Empty"
    assert list(groups.store.group_members()) == []


def test_heartbeats_keep_a_member() -> None:
    groups = ShareGroups(t=1)
    groups.join("m", "t")
    for _ in range(3):
        groups.beat("m", after_ms=30_000)

    assert list(groups.group.members) == ["m"]


def test_members_of_a_group_have_what_they_subscribe_to() -> None:
    groups = ShareGroups(t=1, u=2)
    groups.join("m", "t")
    groups.join("n", "t", "u")
    groups.settle()

    topics = {name: {id_ for id_, _ in each.assigned} for name, each in groups.group.members.items()}

    t, u = groups.topics.ids["t"], groups.topics.ids["u"]
    assert topics == {"m": {t}, "n": {t, u}}


def test_a_changed_subscription_changes_the_assignment() -> None:
    groups = ShareGroups(t=1, u=1)
    groups.join("m", "t")
    groups.settle()

    changed = groups.beat("m", None, "u", after_ms=1_000)
    groups.settle()

    assert (changed.member_epoch, assigned(changed)) == (4, {})
    assert groups.group.members["m"].assigned == {(groups.topics.ids["u"], 0)}


def test_everything_but_sessions_survives_a_restart() -> None:
    before = ShareGroups(t=3)
    before.join("m", "t")
    before.join("n", "t")
    had = before.settle()

    after = ShareGroups(before=before)

    epoch = before.group.group_epoch
    assert (after.group.group_epoch, after.group.assignment_epoch) == (epoch, epoch)
    answer = after.beat("m", epoch)
    assert (answer.member_epoch, assigned(answer)) == (epoch, None)
    assert after.settle() == had
    assert after.group.group_epoch == epoch
    after.clock.advance(45_000)
    assert after.group.is_empty


def test_partitions_that_were_not_assigned_yet_are_assigned_after_a_restart() -> None:
    before = ShareGroups(t=1)
    before.join("m", "t")

    after = ShareGroups(before=before)

    answer = after.beat("m", 2)
    assert (answer.member_epoch, assigned(answer)) == (3, {before.topics.ids["t"]: [0]})


def test_a_deleted_group_leaves_nothing() -> None:
    groups = ShareGroups(t=1)
    dropped: list[tuple[str, object]] = []
    groups.coordinator.shares.dropped = lambda group_id, partitions: dropped.append((group_id, partitions))
    groups.join("m", "t")
    with pytest.raises(ApiError) as refusal:
        groups.group.validate_delete()
    groups.beat("m", -1)

    groups.coordinator.remove(GROUP)

    store = groups.store
    left = (*store.groups(), *store.group_states(), *store.group_members(), *store.shares.share_partitions())
    assert refusal.value.code is ErrorCode.NON_EMPTY_GROUP
    assert left == ()
    assert dropped == [(GROUP, None)]


def test_a_damaged_member_is_found_at_the_start() -> None:
    before = ShareGroups(t=1)
    before.join("m", "t")
    before.store.put_group((GROUP, "share", "share", 2, None), members=[(GROUP, "m", "{}")])

    with pytest.raises(ValueError, match="cannot be read"):
        ShareGroups(before=before)
