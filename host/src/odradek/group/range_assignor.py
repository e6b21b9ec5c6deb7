"""The assignor ``range``, which gives each member a contiguous range of each topic.

After org.apache.kafka.coordinator.group.assignor.RangeAssignor. The order of members is the same for every
topic. So topics with the same number of partitions and the same subscribers are co-partitioned: partition 3
of both goes to the same member, which can join them.
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.group.assignment_spec import GroupSpec, Targets


def range_assignor(spec: GroupSpec) -> Generator[None, None, Targets]:
    """Assign ranges of all topics; a step for each member and each topic.

    They depend only on the order of the members, not on their current targets.
    """
    targets: Targets = {member_id: set() for member_id in spec.members}
    subscribers: dict[bytes, list[str]] = {}
    for member_id in sorted(spec.members, key=lambda member_id: place(spec, member_id)):
        for topic_id in spec.members[member_id].topic_ids:
            subscribers.setdefault(topic_id, []).append(member_id)
        yield
    for topic_id, member_ids in subscribers.items():
        each, extra = divmod(spec.partitions[topic_id], len(member_ids))
        start = 0
        for index, member_id in enumerate(member_ids if each else member_ids[:extra]):
            end = start + each + (index < extra)
            targets[member_id].update((topic_id, partition) for partition in range(start, end))
            start = end
        yield
    return targets


def place(spec: GroupSpec, member_id: str) -> tuple[bool, str]:
    """Sort key of a member: static members by instance id, then dynamic members by member id. An instance id
    survives a restart of the client, so its ranges do, too.
    """
    instance_id = spec.members[member_id].instance_id
    return (instance_id is None, member_id if instance_id is None else instance_id)
