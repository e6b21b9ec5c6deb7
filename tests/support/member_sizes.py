"""The totals that the members of all groups must have."""

from __future__ import annotations

from odradek.group.classic_group import ClassicGroup
from odradek.group.consumer_group import ConsumerGroup
from odradek.group.group_coordinator import GroupCoordinator
from odradek.group.member_sizes import PARTITION_BYTES, protocols_size, topics_size


def counted(coordinator: GroupCoordinator) -> tuple[int, int]:
    """The members of all groups and their bytes, counted one by one."""
    members, size = 0, 0
    for group in coordinator:
        if isinstance(group, ClassicGroup):
            members += len(group.members) + len(group.pending_members)
            size += sum(protocols_size(each.protocols) + len(each.assignment) for each in group)
        elif isinstance(group, ConsumerGroup):
            members += len(group.members)
            for each in group.members.values():
                size += topics_size(each.subscribed_topic_names, each.subscribed_topic_regex)
                size += PARTITION_BYTES * (len(each.assigned) + len(each.pending_revocation))
                size += protocols_size(each.classic.protocols) if each.classic is not None else 0
    return members, size


def check_totals(coordinator: GroupCoordinator) -> None:
    """Check the running totals."""
    totals = coordinator.totals
    assert (totals.members, totals.bytes) == counted(coordinator)
