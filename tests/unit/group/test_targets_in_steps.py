"""Targets of large groups: computed in several turns, in which the group may change."""

from __future__ import annotations

import pytest

from odradek.group.consumer_group import ConsumerGroup
from support.consumer_groups import ConsumerGroups, MadeUpTopics, assigned

MEMBERS = 20


def computing() -> ConsumerGroups:
    """A group of members with different subscriptions, whose target is being computed."""
    groups = ConsumerGroups(in_steps=True, a=MEMBERS, b=MEMBERS)
    for number in range(MEMBERS):
        groups.join(f"m{number}", *("a", "b")[: 1 + number % 2], instance_id=f"i{number}")
    groups.clock.advance(0)
    groups.join("late", "a")
    assert groups.group.target.computing is not None
    return groups


def stay(groups: ConsumerGroups, member_id: str) -> None:
    """A member's next heartbeat."""
    groups.beat(member_id, groups.group.members[member_id].member_epoch)


def held(group: ConsumerGroup) -> list[tuple[bytes, int]]:
    """The partitions in the target, sorted."""
    return sorted(partition for owned in group.target.by_member.values() for partition in owned)


def every(groups: ConsumerGroups) -> list[tuple[bytes, int]]:
    """All partitions, sorted."""
    both = groups.owned("a", *range(MEMBERS)) | groups.owned("b", *range(MEMBERS))
    return sorted(both)


def test_members_go_on_with_the_old_target_until_the_new_one_is_computed() -> None:
    groups = computing()
    epoch = groups.group.group_epoch
    assert groups.group.target.epoch < epoch

    groups.clock.advance(0)

    assert groups.group.target.epoch == epoch
    assert held(groups.group) == every(groups)
    assert groups.group.target.of("late")


def test_a_member_that_joins_meanwhile_gets_its_partitions_from_the_next_target() -> None:
    groups = computing()
    assert assigned(groups.join("later", "b")) == set()

    groups.clock.advance(0)
    assert not groups.group.target.of("later")
    assert held(groups.group) == every(groups)
    stay(groups, "m1")
    groups.clock.advance(0)

    assert groups.group.target.epoch == groups.group.group_epoch
    assert groups.group.target.of("later")
    assert held(groups.group) == every(groups)


def test_a_member_that_leaves_meanwhile_gets_nothing() -> None:
    groups = computing()
    groups.group.remove(groups.group.members["m1"])

    groups.clock.advance(0)

    assert "m1" not in groups.group.target.by_member
    assert len(held(groups.group)) == len(set(held(groups.group)))
    stay(groups, "m3")
    groups.clock.advance(0)
    assert held(groups.group) == every(groups)


def test_a_topic_that_a_member_no_longer_wants_is_not_assigned_to_it() -> None:
    groups = computing()
    epoch = groups.group.members["m1"].member_epoch
    groups.beat("m1", epoch, topics=["b"])

    groups.clock.advance(0)

    assert not groups.group.target.of("m1") & groups.owned("a", *range(MEMBERS))


def test_partitions_of_a_topic_that_was_deleted_meanwhile_are_not_assigned() -> None:
    groups = computing()
    gone = groups.owned("b", *range(MEMBERS))
    groups.topics.delete("b")
    groups.topics_changed()
    stay(groups, "m1")

    groups.clock.advance(0)

    assert not set(held(groups.group)) & gone


def test_a_static_member_that_returns_meanwhile_keeps_its_target() -> None:
    groups = computing()
    groups.beat("m1", -2, instance_id="i1")
    groups.join("again", "a", "b", instance_id="i1")

    groups.clock.advance(0)

    assert groups.group.target.of("again")
    assert held(groups.group) == every(groups)


def test_nothing_is_computed_for_a_group_that_everybody_has_left() -> None:
    groups = computing()

    groups.group.remove(*groups.group.members.values())

    assert groups.group.target.computing is None
    groups.clock.advance(0)
    assert groups.group.target.by_member == {}


def test_a_failed_computation_is_logged_and_repeated(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    groups = computing()
    deferred = groups.group.target.computing
    assert deferred is not None

    deferred.complete(ValueError("broken"))

    assert "cannot compute a target" in caplog.text
    stay(groups, "m1")
    groups.clock.advance(0)
    assert held(groups.group) == every(groups)


def test_a_new_member_does_not_resolve_the_subscriptions_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = ConsumerGroups(a=2, b=2, c=2)
    for number, topic in enumerate("abab"):
        groups.join(f"m{number}", topic)
    looked_up: list[str] = []
    known = dict(groups.topics.ids)

    def counted(_self: MadeUpTopics, name: str) -> bytes:
        looked_up.append(name)
        return known[name]

    monkeypatch.setattr(MadeUpTopics, "topic_id", counted)

    groups.join("m4", "c")
    groups.join("m5", "a")

    assert looked_up == ["c"]
    first, last = (groups.group.members[name].subscribed_topic_names for name in ("m0", "m5"))
    assert first is last
