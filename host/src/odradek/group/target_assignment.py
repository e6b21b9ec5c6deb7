"""The target assignment of a consumer group and its epoch.

After org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder. The target of a large group is
computed in steps, while its members go on with the previous one. If the group changes in the meantime,
members get only what is still valid, and the group, whose epoch is then ahead of the target's, computes the
next target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from odradek.group.assignment_spec import (
    Assignor,
    GroupSpec,
    MemberSubscription,
    Targets,
)
from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_member import ConsumerMember
from odradek.group.group_subscriptions import GroupSubscriptions
from odradek.group.range_assignor import range_assignor
from odradek.group.uniform_assignor import uniform_assignor
from odradek.waiting.deferred import Deferred

ASSIGNORS: Mapping[str, Assignor] = {"uniform": uniform_assignor, "range": range_assignor}
"""All assignors, by name; ``group.consumer.assignors`` lists the ones that may be used."""

NOTHING: frozenset[TopicPartition] = frozenset()


@dataclass(slots=True, eq=False)
class TargetAssignment:
    """The latest target of one group."""

    epoch: int
    """The group epoch for which it was computed."""
    by_member: dict[str, AbstractSet[TopicPartition]] = field(default_factory=dict)
    computing: Deferred[Targets] | None = None
    """The target that is being computed; None if none is."""
    renamed: dict[str, str] = field(default_factory=dict)
    """The new ids of static members that have returned since the computation began, by their old ids."""

    def of(self, member_id: str) -> AbstractSet[TopicPartition]:
        """The target of one member; empty if it joined after the computation."""
        return self.by_member.get(member_id, NOTHING)

    def spec(self, members: Iterable[ConsumerMember], subscriptions: GroupSubscriptions) -> GroupSpec:
        """The group as it is now."""
        asked = {
            # The assignor gets the current target, not what members hold: it is where they are heading.
            member.member_id: MemberSubscription(
                member.instance_id, subscriptions.topic_ids(member), self.of(member.member_id)
            )
            for member in members
        }
        return GroupSpec(asked, subscriptions.partitions)

    def install(self, epoch: int, targets: Targets) -> None:
        """Use the target that was computed for a group epoch."""
        self.by_member = dict(targets)
        self.epoch = epoch

    def wait_for(self, targets: Deferred[Targets]) -> None:
        """Remember that a target is being computed."""
        self.computing, self.renamed = targets, {}

    def stop_computing(self) -> None:
        """The target that is being computed is not needed."""
        if self.computing is not None:
            self.computing.lost()
            self.computing = None

    def valid(
        self, targets: Targets, members: Mapping[str, ConsumerMember], subscriptions: GroupSubscriptions
    ) -> Targets:
        """The part of computed targets that is valid for the group as it is now: members that are still
        there, topics that they are still subscribed to, partitions that still exist.
        """
        found: Targets = {}
        for old_id, partitions in targets.items():
            member = members.get(self.renamed.get(old_id, old_id))
            if member is not None:
                wanted, counts = subscriptions.topic_ids(member), subscriptions.partitions
                found[member.member_id] = {
                    (topic_id, partition)
                    for topic_id, partition in partitions
                    if topic_id in wanted and partition < counts.get(topic_id, 0)
                }
        return found

    def replace(self, old_member_id: str, new_member_id: str) -> None:
        """Transfer the target of a static member that has returned under another id."""
        if self.computing is not None:
            for old, new in self.renamed.items():
                if new == old_member_id:
                    self.renamed[old] = new_member_id
            self.renamed[old_member_id] = new_member_id
        if old_member_id in self.by_member:
            self.by_member[new_member_id] = self.by_member.pop(old_member_id)


def preferred_assignor(members: Iterable[ConsumerMember], default: str) -> str:
    """The assignor that most members prefer, the first by name if several have as many votes."""
    votes = Counter(member.server_assignor for member in members if member.server_assignor)
    return min(votes, key=lambda name: (-votes[name], name)) if votes else default
