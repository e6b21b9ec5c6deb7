"""The assignor ``range``: of each topic a contiguous range for each member.

After org.apache.kafka.coordinator.group.assignor.RangeAssignor. Members stand in the same order for every
topic, so topics with the same number of partitions and the same subscribers are co-partitioned: partition 3
of one and partition 3 of the other go to the same member, which can join them.
"""

from __future__ import annotations

from odradek.group.assignment_spec import GroupSpec, Targets


class RangeAssignor:
    """Stateless: ranges follow from the order of the members alone, not from what they have."""

    name = "range"

    def assign(self, spec: GroupSpec) -> Targets:
        """Ranges of all topics."""
        targets: Targets = {member_id: set() for member_id in spec.members}
        subscribers: dict[bytes, list[str]] = {}
        for member_id in sorted(spec.members, key=lambda member_id: place(spec, member_id)):
            for topic_id in spec.members[member_id].topic_ids:
                subscribers.setdefault(topic_id, []).append(member_id)
        for topic_id, member_ids in subscribers.items():
            each, extra = divmod(spec.partitions[topic_id], len(member_ids))
            start = 0
            for index, member_id in enumerate(member_ids):
                end = start + each + (index < extra)
                targets[member_id].update((topic_id, partition) for partition in range(start, end))
                start = end
        return targets


def place(spec: GroupSpec, member_id: str) -> tuple[bool, str]:
    """Where a member stands: static ones first, by their instance id, which outlives a restart and so keeps
    them their ranges; then the dynamic ones by member id.
    """
    instance_id = spec.members[member_id].instance_id
    return (instance_id is None, member_id if instance_id is None else instance_id)
