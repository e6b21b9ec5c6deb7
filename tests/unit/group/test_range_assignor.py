from __future__ import annotations

from odradek.group.assignment_spec import GroupSpec, MemberSubscription, Targets
from odradek.group.range_assignor import range_assignor
from odradek.waiting.steps import result_of

A, B = (number.to_bytes(16) for number in (1, 2))


def assigned(spec: GroupSpec) -> Targets:
    return result_of(range_assignor(spec))


def member(*topic_ids: bytes, instance_id: str | None = None) -> MemberSubscription:
    return MemberSubscription(instance_id, frozenset(topic_ids), frozenset())


def indexes(targets: dict[str, set[tuple[bytes, int]]], name: str, topic_id: bytes) -> list[int]:
    return sorted(index for owned, index in targets[name] if owned == topic_id)


def test_each_member_gets_a_range_and_the_first_ones_get_one_more() -> None:
    spec = GroupSpec({"x": member(A), "y": member(A), "z": member(A)}, {A: 8})

    targets = assigned(spec)

    assert [indexes(targets, name, A) for name in "xyz"] == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_topics_of_one_size_are_co_partitioned() -> None:
    spec = GroupSpec({"x": member(A, B), "y": member(A, B)}, {A: 5, B: 5})

    targets = assigned(spec)

    assert [indexes(targets, name, A) for name in "xy"] == [indexes(targets, name, B) for name in "xy"]


def test_more_members_than_partitions_leaves_the_last_with_nothing() -> None:
    spec = GroupSpec({"x": member(A), "y": member(A), "z": member(A)}, {A: 2})

    targets = assigned(spec)

    assert [indexes(targets, name, A) for name in "xyz"] == [[0], [1], []]


def test_a_topic_is_divided_among_its_subscribers() -> None:
    spec = GroupSpec({"x": member(A), "y": member(A, B), "z": member(B)}, {A: 2, B: 4})

    targets = assigned(spec)

    assert [indexes(targets, name, A) for name in "xyz"] == [[0], [1], []]
    assert [indexes(targets, name, B) for name in "xyz"] == [[], [0, 1], [2, 3]]


def test_static_members_keep_their_ranges_under_a_new_member_id() -> None:
    before = GroupSpec(
        {"p": member(A, instance_id="one"), "q": member(A, instance_id="two"), "a": member(A)}, {A: 3}
    )
    after = GroupSpec(
        {"zz": member(A, instance_id="one"), "q": member(A, instance_id="two"), "a": member(A)}, {A: 3}
    )

    targets = assigned(before), assigned(after)

    assert targets[0]["p"] == targets[1]["zz"] == {(A, 0)}
    assert targets[0]["a"] == targets[1]["a"] == {(A, 2)}


def test_a_group_without_members_gets_an_empty_assignment() -> None:
    spec = GroupSpec({}, {})

    targets = assigned(spec)

    assert targets == {}
