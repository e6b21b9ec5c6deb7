"""The assignor of share groups: the sizes that Kafka 4.4.0 gives, and what members keep."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.group.simple_assignor import Shares, assign

T, U = b"t" * 16, b"u" * 16


def assigned(members: int, partitions: int, before: Shares | None = None) -> Shares:
    subscriptions = {f"m{index:02}": {T} for index in range(members)}
    return assign(subscriptions, {T: range(partitions)}, before or {})


@pytest.mark.parametrize(
    ("members", "partitions", "sizes"),
    [
        (3, 2, [2, 1, 1]),
        (5, 2, [2, 1, 1, 1, 1]),
        (2, 5, [3, 2]),
        (3, 7, [3, 2, 2]),
        (7, 3, [2, 2, 1, 1, 1, 1, 1]),
        (2, 2, [1, 1]),
        (4, 2, [1, 1, 1, 1]),
        (1, 5, [5]),
        (2, 7, [4, 3]),
        (6, 3, [1, 1, 1, 1, 1, 1]),
    ],
)
def test_members_have_as_much_as_from_kafka(members: int, partitions: int, sizes: list[int]) -> None:
    found = assigned(members, partitions)

    assert sorted(map(len, found.values()), reverse=True) == sizes
    owners = Counter(each for shares in found.values() for each in shares)
    assert set(owners.values()) == {-(-members // partitions) if members > partitions else 1}
    assert len(owners) == partitions


@pytest.mark.parametrize(("members", "partitions"), [(3, 7), (2, 5), (4, 2)])
def test_members_keep_what_they_have(members: int, partitions: int) -> None:
    before = assigned(members, partitions)

    assert assigned(members, partitions, before) == before


def test_members_keep_what_they_have_when_one_leaves() -> None:
    before = assigned(3, 7)
    gone = before.pop("m02")

    found = assigned(2, 7, before)

    assert all(before[member] <= shares for member, shares in found.items())
    assert gone <= set.union(*found.values())


def test_without_members_or_partitions_nothing_is_assigned() -> None:
    assert assign({}, {T: [0]}, {}) == {}
    assert assign({"m": {U}}, {T: [0]}, {}) == {"m": set()}


@given(
    subscriptions=st.dictionaries(st.sampled_from("abcdefgh"), st.sets(st.sampled_from([T, U])), min_size=1),
    counts=st.fixed_dictionaries({T: st.integers(0, 6), U: st.integers(0, 6)}),
    others=st.sets(st.sampled_from("abcdefgh")),
)
def test_every_partition_has_a_member_and_every_member_a_partition(
    subscriptions: dict[str, set[bytes]], counts: dict[bytes, int], others: set[str]
) -> None:
    partitions = {topic: range(count) for topic, count in counts.items()}
    before = assign({member: {T, U} for member in others}, partitions, {})

    found = assign(subscriptions, partitions, before)

    shared = {each for shares in found.values() for each in shares}
    subscribed = {topic for topics in subscriptions.values() for topic in topics}
    assert shared == {(topic, index) for topic in subscribed for index in partitions[topic]}
    for member, topics in subscriptions.items():
        assert {topic for topic, _ in found[member]} <= topics
        assert found[member] or not any(counts[topic] for topic in topics)
