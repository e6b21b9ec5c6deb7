"""The assignor ``uniform``: as even as possible, and who has a partition keeps it if that is not against it.

After org.apache.kafka.coordinator.group.assignor.UniformAssignor. Where all members want the same topics the
answer is exact and takes time in proportion to members and partitions. Where they differ, topic by topic is
made as even as the rest allows, over and over until nothing moves; then partitions are passed along chains of
members, from one with too much over others to one with too little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from odradek.group.assignment_spec import GroupSpec, Targets
from odradek.group.committed_offset import TopicPartition

MAX_ROUNDS = 8
"""Over all topics, in a group whose members want different ones. Every round that moves something makes the
group more even; what is left to move after so many is not worth the loop's time."""
MAX_CHAINS = 32
"""That are looked for, for the same reason."""


class UniformAssignor:
    """Stateless: what members have stands in the question."""

    name = "uniform"

    def assign(self, spec: GroupSpec) -> Targets:
        """An even share for everyone."""
        if not spec.members:
            return {}
        return even(spec) if spec.is_homogeneous else balanced(spec)


def kept(spec: GroupSpec) -> Targets:
    """What members have and may keep: partitions that exist, of topics they want."""
    return {
        member_id: {
            (topic_id, partition)
            for topic_id, partition in member.target
            if topic_id in member.topic_ids and partition < spec.partitions[topic_id]
        }
        for member_id, member in spec.members.items()
    }


def even(spec: GroupSpec) -> Targets:
    """All want the same: each gets the average, some one more."""
    targets = kept(spec)
    wanted = next(iter(spec.members.values())).topic_ids
    total = sum(spec.partitions[topic_id] for topic_id in wanted)
    average, extra = divmod(total, len(spec.members))
    quotas = {}
    # those who have the most keep one more than the average: nothing has to move for it
    for member_id in sorted(targets, key=lambda member_id: (-len(targets[member_id]), member_id)):
        quotas[member_id] = average + (extra > 0)
        extra -= extra > 0
        give_up(targets[member_id], quotas[member_id])
    free = unowned(spec, wanted, targets)
    for member_id, quota in quotas.items():
        owned = targets[member_id]
        for _ in range(quota - len(owned)):
            owned.add(next(free))
    return targets


def give_up(owned: set[TopicPartition], quota: int) -> None:
    """Drop what is above the quota, from the end, so that the same goes each time."""
    if len(owned) > quota:
        owned.difference_update(sorted(owned)[quota:])


def unowned(spec: GroupSpec, wanted: frozenset[bytes], targets: Targets) -> Iterator[TopicPartition]:
    """The partitions that nobody has, in order."""
    owned = set().union(*targets.values())
    return iter(
        [
            (topic_id, partition)
            for topic_id in sorted(wanted)
            for partition in range(spec.partitions[topic_id])
            if (topic_id, partition) not in owned
        ]
    )


def balanced(spec: GroupSpec) -> Targets:
    """Members want different topics: level one topic after the other until all is level."""
    targets = kept(spec)
    loads = {member_id: len(owned) for member_id, owned in targets.items()}
    topics = [TopicShare(spec, topic_id, targets) for topic_id in sorted(spec.partitions)]
    # a topic that few want leaves the least choice: first
    topics.sort(key=lambda topic: len(topic.owned))
    for _ in range(MAX_ROUNDS):
        if sum(topic.level(loads) for topic in topics) == 0:
            break
    pass_along_chains(topics, loads)
    for topic in topics:
        for member_id, partitions in topic.owned.items():
            targets[member_id].update((topic.topic_id, partition) for partition in partitions)
    return targets


def pass_along_chains(topics: list[TopicShare], loads: dict[str, int]) -> None:
    """Where no topic alone can make the group more even, several may: who has too much gives to somebody who
    gives to somebody else.
    """
    for _ in range(MAX_CHAINS):
        least = min(loads.values())
        rich = sorted(
            (member_id for member_id in loads if loads[member_id] >= least + 2), key=loads.__getitem__
        )
        chain = next(filter(None, (chain_from(giver, topics, loads) for giver in reversed(rich[-3:]))), None)
        if chain is None:
            return
        for giver, topic, taker in chain:
            topic.owned[taker].append(topic.owned[giver].pop())
            loads[giver] -= 1
            loads[taker] += 1


Chain = list[tuple[str, "TopicShare", str]]
"""Who gives, of which topic, to whom."""


def chain_from(giver: str, topics: list[TopicShare], loads: dict[str, int]) -> Chain | None:
    """The shortest chain from a member to one that has two less; None if there is none."""
    chains: dict[str, Chain] = {giver: []}
    unseen, waiting = list(topics), deque([giver])
    while waiting:
        middle = waiting.popleft()
        for topic in [topic for topic in unseen if topic.owned.get(middle)]:
            unseen.remove(topic)
            for taker in [taker for taker in topic.owned if taker not in chains]:
                chains[taker] = [*chains[middle], (middle, topic, taker)]
                if loads[taker] <= loads[giver] - 2:
                    return chains[taker]
                waiting.append(taker)
    return None


class TopicShare:
    """Who has which partitions of one topic; takes them out of ``targets``."""

    def __init__(self, spec: GroupSpec, topic_id: bytes, targets: Targets) -> None:
        self.topic_id = topic_id
        self.owned: dict[str, list[int]] = {}
        for member_id in sorted(spec.members):
            if topic_id in spec.members[member_id].topic_ids:
                mine = {owned for owned in targets[member_id] if owned[0] == topic_id}
                targets[member_id] -= mine
                self.owned[member_id] = sorted(partition for _, partition in mine)
        taken = {partition for partitions in self.owned.values() for partition in partitions}
        self.free = [partition for partition in range(spec.partitions[topic_id]) if partition not in taken]
        self.count = spec.partitions[topic_id]

    def level(self, loads: dict[str, int]) -> bool:
        """Divide the topic so that the members' loads become as even as this topic alone can make them.

        Args:
            loads: How much each member has of all topics; kept up to date.

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
        """How many partitions each subscriber should have: water poured over what they have otherwise."""
        others = {member_id: loads[member_id] - len(mine) for member_id, mine in self.owned.items()}
        level, rest = water_level(sorted(others.values()), self.count)
        quotas = {member_id: max(0, level - other) for member_id, other in others.items()}
        # one more for as many as there are left over; those who have it already come first
        low = [member_id for member_id, other in others.items() if other <= level]
        low.sort(key=lambda member_id: len(self.owned[member_id]) <= quotas[member_id])
        for member_id in low[:rest]:
            quotas[member_id] += 1
        return quotas


def water_level(floors: list[int], amount: int) -> tuple[int, int]:
    """How high ``amount`` stands over uneven ground, in whole units, and how many units are left over.

    Args:
        floors: Heights of the ground, ascending; at least one.
        amount: Units to pour.
    """
    for width, floor in enumerate(floors, start=1):
        nearest = floors[width] if width < len(floors) else None
        room = None if nearest is None else (nearest - floor) * width
        if room is None or amount < room:
            rise, rest = divmod(amount, width)
            return floor + rise, rest
        amount -= room
    raise AssertionError("the last floor has no ceiling")
