"""The assignor of share groups, whose members may share a partition; after SimpleAssignor.java (KIP-932).

Every partition has a member, and every member has a partition of the topics that it subscribes to. If there
are more members than partitions, each partition has as many members as it takes to give one to each. Balance
comes first, then a member keeps what it had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from odradek.group.committed_offset import TopicPartition

Shares = dict[str, set[TopicPartition]]
"""Partitions by member id."""


def assign(
    subscriptions: Mapping[str, AbstractSet[bytes]],
    partitions: Mapping[bytes, Iterable[int]],
    before: Mapping[str, AbstractSet[TopicPartition]],
) -> Shares:
    """Assign partitions to the members of a share group.

    Args:
        subscriptions: The ids of the topics that each member subscribes to, by member id.
        partitions: The partitions that may be assigned, by topic id.
        before: What the members have now.
    """
    found: Shares = {member: set() for member in subscriptions}
    for members, topics in pools(subscriptions, partitions):
        pool = [(topic_id, index) for topic_id in topics for index in partitions[topic_id]]
        if pool:
            assign_pool(members, pool, before, found)
    return found


def pools(
    subscriptions: Mapping[str, AbstractSet[bytes]], topics: Iterable[bytes]
) -> Iterable[tuple[Sequence[str], Sequence[bytes]]]:
    """Members and topics that are assigned together: all, if the members subscribe to the same topics."""
    members, ids = sorted(subscriptions), sorted(topics)
    if len(set(map(frozenset, subscriptions.values()))) == 1:
        subscribed = subscriptions[members[0]]
        yield members, [topic_id for topic_id in ids if topic_id in subscribed]
        return
    for topic_id in ids:
        subscribers = [member for member in members if topic_id in subscriptions[member]]
        if subscribers:
            yield subscribers, [topic_id]


def assign_pool(
    members: Sequence[str],
    pool: Sequence[TopicPartition],
    before: Mapping[str, AbstractSet[TopicPartition]],
    found: Shares,
) -> None:
    """Give each partition of a pool its members."""
    sharing = -(-len(members) // len(pool)) if len(members) > len(pool) else 1
    room = dict.fromkeys(pool, sharing)
    """How many members each partition lacks."""
    mine: Shares = {}
    least, more = divmod(sharing * len(pool), len(members))
    for member in members:
        kept = [each for each in sorted(before.get(member, ())) if room.get(each)]
        most = least
        if len(kept) > least and more:
            most, more = least + 1, more - 1
        mine[member] = set(kept[:most])
        for each in kept[:most]:
            room[each] -= 1
    left = [each for each, number in room.items() for _ in range(number)]
    for most in (least, least + 1, len(pool)):
        left = fill(members, mine, left, most)
    for member, partitions in mine.items():
        found[member] |= partitions


def fill(members: Sequence[str], mine: Shares, left: list[TopicPartition], most: int) -> list[TopicPartition]:
    """Give what is left to members that have less than ``most``; return what is left then."""
    for member in sorted(members, key=lambda each: len(mine[each])):
        refused = []
        while left and len(mine[member]) < most:
            each = left.pop()
            if each in mine[member]:
                refused.append(each)
            else:
                mine[member].add(each)
        left.extend(refused)
    return left
