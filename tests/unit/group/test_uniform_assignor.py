from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.group.assignment_spec import GroupSpec, MemberSubscription, Targets
from odradek.group.committed_offset import TopicPartition
from odradek.group.uniform_assignor import uniform_assignor, water_level
from odradek.waiting.steps import result_of
from support.examples import examples

A, B, C = (number.to_bytes(16) for number in (1, 2, 3))


def assigned(spec: GroupSpec) -> Targets:
    return result_of(uniform_assignor(spec))


def partitions(topic_id: bytes, *indexes: int) -> frozenset[TopicPartition]:
    return frozenset((topic_id, index) for index in indexes)


def member(*topic_ids: bytes, has: frozenset[TopicPartition] = frozenset()) -> MemberSubscription:
    return MemberSubscription(None, frozenset(topic_ids), has)


def sizes(targets: Targets) -> list[int]:
    return sorted(len(owned) for owned in targets.values())


def moves(spec: GroupSpec, targets: Targets) -> int:
    """The number of partitions that a member had and does not keep."""
    return sum(len(member.target - targets[name]) for name, member in spec.members.items())


def test_a_group_without_members_gets_an_empty_assignment() -> None:
    spec = GroupSpec({}, {})

    targets = assigned(spec)

    assert targets == {}


def test_a_lone_member_gets_every_partition() -> None:
    spec = GroupSpec({"m": member(A, B)}, {A: 2, B: 1})

    targets = assigned(spec)

    assert targets == {"m": {(A, 0), (A, 1), (B, 0)}}


def test_equal_subscriptions_are_divided_evenly() -> None:
    spec = GroupSpec({name: member(A, B) for name in "xyz"}, {A: 4, B: 4})

    targets = assigned(spec)

    assert sizes(targets) == [2, 3, 3]
    assert set().union(*targets.values()) == partitions(A, 0, 1, 2, 3) | partitions(B, 0, 1, 2, 3)


def test_more_members_than_partitions_leaves_some_with_nothing() -> None:
    spec = GroupSpec({name: member(A) for name in "xyz"}, {A: 2})

    targets = assigned(spec)

    assert sizes(targets) == [0, 1, 1]


def test_a_new_member_takes_no_more_than_necessary() -> None:
    spec = GroupSpec(
        {
            "x": member(A, has=partitions(A, 0, 2, 4)),
            "y": member(A, has=partitions(A, 1, 3, 5)),
            "z": member(A),
        },
        {A: 6},
    )

    targets = assigned(spec)

    assert sizes(targets) == [2, 2, 2]
    assert moves(spec, targets) == 2


def test_a_remaining_member_keeps_its_partitions() -> None:
    spec = GroupSpec({"x": member(A, has=partitions(A, 0, 3)), "y": member(A, has=partitions(A, 1))}, {A: 5})

    targets = assigned(spec)

    assert sizes(targets) == [2, 3]
    assert moves(spec, targets) == 0


def test_a_member_with_one_more_partition_keeps_it() -> None:
    spec = GroupSpec({"x": member(A, has=partitions(A, 2)), "y": member(A, has=partitions(A, 0, 1))}, {A: 3})

    targets = assigned(spec)

    assert moves(spec, targets) == 0


def test_deleted_partitions_and_topics_are_not_kept() -> None:
    spec = GroupSpec({"x": member(A, has=partitions(A, 0, 7) | partitions(B, 0))}, {A: 1})

    targets = assigned(spec)

    assert targets == {"x": {(A, 0)}}


def test_members_get_only_topics_they_subscribe_to() -> None:
    spec = GroupSpec({"x": member(A), "y": member(A, B), "z": member(B)}, {A: 3, B: 3})

    targets = assigned(spec)

    assert sizes(targets) == [2, 2, 2]
    assert {topic_id for topic_id, _ in targets["x"]} == {A}
    assert {topic_id for topic_id, _ in targets["z"]} == {B}


def test_overlapping_subscriptions_are_balanced_through_a_common_member() -> None:
    spec = GroupSpec(
        {
            "x": member(A, has=partitions(A, 0, 1, 2, 3)),
            "y": member(A, B, has=partitions(B, 0, 1)),
            "z": member(B),
        },
        {A: 4, B: 2},
    )

    targets = assigned(spec)

    assert sizes(targets) == [2, 2, 2]


def test_a_member_without_a_subscription_gets_nothing() -> None:
    spec = GroupSpec({"x": member(A), "y": member()}, {A: 2})

    targets = assigned(spec)

    assert targets == {"x": {(A, 0), (A, 1)}, "y": set()}


@pytest.mark.parametrize(
    ("floors", "amount", "level"),
    [([0], 5, (5, 0)), ([0, 0], 5, (2, 1)), ([0, 3], 2, (2, 0)), ([0, 3], 4, (3, 1)), ([1, 1, 9], 4, (3, 0))],
)
def test_water_level_fills_the_lowest_floors_first(
    floors: list[int], amount: int, level: tuple[int, int]
) -> None:
    found = water_level(floors, amount)

    assert found == level


SUBSCRIPTIONS = st.frozensets(st.sampled_from([A, B, C]))


@settings(max_examples=examples(150), derandomize=True)
@given(
    wants=st.lists(SUBSCRIPTIONS, min_size=1, max_size=6),
    counts=st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    rounds=st.integers(1, 3),
)
def test_every_partition_is_assigned_once_and_assigning_again_moves_none(
    wants: list[frozenset[bytes]], counts: tuple[int, int, int], rounds: int
) -> None:
    names = [f"m{number}" for number in range(len(wants))]
    subscribed = frozenset().union(*wants)
    counted = {
        topic_id: number for topic_id, number in zip((A, B, C), counts, strict=True) if topic_id in subscribed
    }
    spec = GroupSpec({name: member(*want) for name, want in zip(names, wants, strict=True)}, counted)

    targets = assigned(spec)
    again = assigned(
        GroupSpec(
            {
                name: member(*want, has=frozenset(targets[name]))
                for name, want in zip(names, wants, strict=True)
            },
            counted,
        )
    )

    everything = [partition for owned in targets.values() for partition in owned]
    assert sorted(everything) == sorted(
        (topic_id, index) for topic_id, number in counted.items() for index in range(number)
    )
    assert all(
        {topic_id for topic_id, _ in targets[name]} <= want for name, want in zip(names, wants, strict=True)
    )
    assert again == targets


@settings(max_examples=examples(100), derandomize=True)
@given(owners=st.lists(st.integers(0, 4), min_size=1, max_size=30), members=st.integers(1, 5))
def test_equal_subscriptions_differ_by_at_most_one_and_move_the_fewest(
    owners: list[int], members: int
) -> None:
    has: dict[str, set[TopicPartition]] = {f"m{number}": set() for number in range(members)}
    for index, owner in enumerate(owners):
        if owner < members:
            has[f"m{owner}"].add((A, index))
    spec = GroupSpec({name: member(A, has=frozenset(owned)) for name, owned in has.items()}, {A: len(owners)})

    targets = assigned(spec)

    average, extra = divmod(len(owners), members)
    assert max(sizes(targets)) - min(sizes(targets)) <= 1
    richest = sorted((len(owned) for owned in has.values()), reverse=True)
    least = sum(max(0, size - average - (place < extra)) for place, size in enumerate(richest))
    assert moves(spec, targets) == least
