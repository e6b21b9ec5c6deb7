"""The assignor ``uniform``: balances the members, and otherwise leaves partitions where they are.

After org.apache.kafka.coordinator.group.assignor.UniformAssignor. If all members have the same subscription,
the result is exact and takes time in proportion to members and partitions. If they differ, each topic in turn
is balanced as far as the others allow, again and again until nothing moves. Then partitions are passed along
chains of members, from one with too many to one with too few.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from itertools import islice

from odradek.group.assignment_spec import GroupSpec, Targets
from odradek.group.committed_offset import TopicPartition

MAX_ROUNDS = 8
"""The most rounds over all topics, in a group with different subscriptions. Every round that moves something
improves the balance; after this many, the rest is not worth the loop's time."""
MAX_CHAINS = 32
"""The most chains to look for, for the same reason."""


def uniform_assignor(spec: GroupSpec) -> Generator[None, None, Targets]:
    """Assign all partitions as evenly as possible."""
    if not spec.members:
        return {}
    if spec.is_homogeneous:
        return (yield from even(spec))
    return (yield from balanced(spec))


def kept(spec: GroupSpec) -> Generator[None, None, Targets]:
    """The partitions that members may keep: existing ones of topics that they still want."""
    targets = {}
    for member_id, member in spec.members.items():
        targets[member_id] = {
            (topic_id, partition)
            for topic_id, partition in member.target
            if topic_id in member.topic_ids and partition < spec.partitions[topic_id]
        }
        yield
    return targets


def even(spec: GroupSpec) -> Generator[None, None, Targets]:
    """Assign the average to each member, and one more to some. All have the same subscription."""
    targets = yield from kept(spec)
    wanted = next(iter(spec.members.values())).topic_ids
    total = sum(spec.partitions[topic_id] for topic_id in wanted)
    average, extra = divmod(total, len(spec.members))
    quotas = {}
    # The members with the most partitions keep one above the average, so that fewer partitions move.
    for member_id in sorted(targets, key=lambda member_id: (-len(targets[member_id]), member_id)):
        quotas[member_id] = average + (extra > 0)
        extra -= extra > 0
        give_up(targets[member_id], quotas[member_id])
        yield
    free = unowned(spec, wanted, targets)
    for member_id, quota in quotas.items():
        owned = targets[member_id]
        owned.update(islice(free, max(quota - len(owned), 0)))
        yield
    return targets


def give_up(owned: set[TopicPartition], quota: int) -> None:
    """Drop the partitions above the quota, from the end of their order, so that the result is
    deterministic.
    """
    if len(owned) > quota:
        owned.difference_update(sorted(owned)[quota:])


def unowned(spec: GroupSpec, wanted: frozenset[bytes], targets: Targets) -> Iterator[TopicPartition]:
    """The partitions without an owner, in order."""
    owned = set().union(*targets.values())
    return (
        (topic_id, partition)
        for topic_id in sorted(wanted)
        for partition in range(spec.partitions[topic_id])
        if (topic_id, partition) not in owned
    )


def balanced(spec: GroupSpec) -> Generator[None, None, Targets]:
    """Balance members with different subscriptions: one topic after another, until nothing moves."""
    targets = yield from kept(spec)
    loads = {member_id: len(owned) for member_id, owned in targets.items()}
    topics = yield from shares(spec, targets)
    for _ in range(MAX_ROUNDS):
        moved = False
        for topic in topics:
            moved |= topic.level(loads)
            yield
        if not moved:
            break
    yield from pass_along_chains(topics, loads)
    balance: Targets = {member_id: set() for member_id in spec.members}
    for topic in topics:
        for member_id, partitions in topic.owned.items():
            if partitions:
                balance[member_id].update((topic.topic_id, partition) for partition in partitions)
        yield
    return balance


def shares(spec: GroupSpec, targets: Targets) -> Generator[None, None, list[TopicShare]]:
    """The owners of each topic. Topics with few subscribers leave the least choice, so they come first."""
    owners: dict[bytes, dict[str, list[int]]] = {topic_id: {} for topic_id in sorted(spec.partitions)}
    for member_id in sorted(spec.members):
        for topic_id in spec.members[member_id].topic_ids:
            owners[topic_id][member_id] = []
        for topic_id, partition in targets[member_id]:
            owners[topic_id][member_id].append(partition)
        yield
    topics = []
    for topic_id, owned in owners.items():
        topics.append(TopicShare(topic_id, spec.partitions[topic_id], owned))
        yield
    topics.sort(key=lambda topic: len(topic.owned))
    return topics


def pass_along_chains(topics: list[TopicShare], loads: dict[str, int]) -> Generator[None, None, None]:
    """Improve the balance where no single topic can: a member with too many partitions gives one to a member
    that gives one of another topic to a third, and so on.
    """
    if max(loads.values()) < min(loads.values()) + 2:
        return
    givers = yield from numbers_by_owner(topics)
    for _ in range(MAX_CHAINS):
        least = min(loads.values())
        # A chain takes one from its first member and gives one to its last, which must have two less to gain
        # by it.
        rich = sorted(
            (member_id for member_id in loads if loads[member_id] >= least + 2), key=loads.__getitem__
        )
        chain = None
        for giver in reversed(rich[-3:]):
            chain = yield from chain_from(giver, topics, givers, loads)
            if chain is not None:
                break
        if chain is None:
            return
        for giver, number, taker in chain:
            owned = topics[number].owned
            owned[taker].append(owned[giver].pop())
            givers.setdefault(taker, set()).add(number)
            if not owned[giver]:
                givers[giver].discard(number)
            loads[giver] -= 1
            loads[taker] += 1


Chain = list[tuple[str, int, str]]
"""Steps of a chain: giver, number of the topic, taker."""


def numbers_by_owner(topics: list[TopicShare]) -> Generator[None, None, dict[str, set[int]]]:
    """The numbers of the topics of which each member has partitions."""
    numbers: dict[str, set[int]] = {}
    for number, topic in enumerate(topics):
        for member_id, partitions in topic.owned.items():
            if partitions:
                numbers.setdefault(member_id, set()).add(number)
        yield
    return numbers


def chain_from(
    giver: str, topics: list[TopicShare], givers: dict[str, set[int]], loads: dict[str, int]
) -> Generator[None, None, Chain | None]:
    """The shortest chain from a member to one with at least two partitions less; None if there is none."""
    chains: dict[str, Chain] = {giver: []}
    seen: set[int] = set()
    waiting = deque([giver])
    # Breadth first. All takers of a topic are reached by its first giver, so each topic is visited once.
    while waiting:
        middle = waiting.popleft()
        for number in sorted(givers.get(middle, set()) - seen):
            seen.add(number)
            yield
            for taker in [taker for taker in topics[number].owned if taker not in chains]:
                chains[taker] = [*chains[middle], (middle, number, taker)]
                if loads[taker] <= loads[giver] - 2:
                    return chains[taker]
                waiting.append(taker)
    return None


class TopicShare:
    """The owners of the partitions of one topic.

    Args:
        topic_id: The topic.
        count: The number of its partitions.
        owned: The partitions of each subscriber.
    """

    def __init__(self, topic_id: bytes, count: int, owned: dict[str, list[int]]) -> None:
        self.topic_id = topic_id
        self.count = count
        self.owned = owned
        for partitions in owned.values():
            partitions.sort()
        taken = {partition for partitions in owned.values() for partition in partitions}
        self.free = [partition for partition in range(count) if partition not in taken]

    def level(self, loads: dict[str, int]) -> bool:
        """Distribute the topic so that it evens out the members' loads as far as it can.

        Args:
            loads: The number of partitions of each member, over all topics. Updated.

        Returns:
            Whether anything moved.
        """
        quotas = self.quotas(loads)
        moved = False
        for member_id, partitions in self.owned.items():
            while len(partitions) > quotas[member_id]:
                self.free.append(partitions.pop())
                loads[member_id] -= 1
        for member_id, partitions in self.owned.items():
            while len(partitions) < quotas[member_id]:
                partitions.append(self.free.pop())
                loads[member_id] += 1
                moved = True
        return moved

    def quotas(self, loads: dict[str, int]) -> dict[str, int]:
        """How many partitions each subscriber should get.

        As water fills uneven ground, the partitions first go to the members with the fewest partitions of
        other topics.
        """
        others = {member_id: loads[member_id] - len(mine) for member_id, mine in self.owned.items()}
        level, rest = water_level(sorted(others.values()), self.count)
        quotas = {member_id: max(0, level - other) for member_id, other in others.items()}
        # The rest goes one each to the lowest members, first to those that already have one more, so that
        # less moves.
        low = [member_id for member_id, other in others.items() if other <= level]
        low.sort(key=lambda member_id: len(self.owned[member_id]) <= quotas[member_id])
        for member_id in low[:rest]:
            quotas[member_id] += 1
        return quotas


def water_level(floors: list[int], amount: int) -> tuple[int, int]:
    """The level that ``amount`` reaches over uneven ground, in whole units, and the units left over.

    Args:
        floors: The heights of the ground, ascending; at least one.
        amount: The units to pour.
    """
    for width, floor in enumerate(floors, start=1):
        nearest = floors[width] if width < len(floors) else None
        room = None if nearest is None else (nearest - floor) * width
        if room is None or amount < room:
            rise, rest = divmod(amount, width)
            return floor + rise, rest
        amount -= room
    raise AssertionError("the last floor has no ceiling")
