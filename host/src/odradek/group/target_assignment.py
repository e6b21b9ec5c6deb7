"""The target assignment of a consumer group and its epoch.

After org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from odradek.group.assignment_spec import ConsumerGroupPartitionAssignor, GroupSpec, MemberSubscription
from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_member import ConsumerMember
from odradek.group.group_subscriptions import GroupSubscriptions
from odradek.group.range_assignor import RangeAssignor
from odradek.group.uniform_assignor import UniformAssignor

ASSIGNORS: Mapping[str, ConsumerGroupPartitionAssignor] = {
    UniformAssignor.name: UniformAssignor(),
    RangeAssignor.name: RangeAssignor(),
}
"""All assignors, by name; ``group.consumer.assignors`` lists the ones that may be used."""

NOTHING: frozenset[TopicPartition] = frozenset()


@dataclass(slots=True, eq=False)
class TargetAssignment:
    """The latest target of one group."""

    epoch: int
    """The group epoch for which it was computed."""
    by_member: dict[str, AbstractSet[TopicPartition]] = field(default_factory=dict)

    def of(self, member_id: str) -> AbstractSet[TopicPartition]:
        """The target of one member; empty if it joined after the computation."""
        return self.by_member.get(member_id, NOTHING)

    def compute(
        self,
        epoch: int,
        assignor: ConsumerGroupPartitionAssignor,
        members: Iterable[ConsumerMember],
        subscriptions: GroupSubscriptions,
    ) -> None:
        """Compute the target of a group epoch."""
        asked = {
            # The assignor gets the current target, not what members hold: it is where they are heading.
            member.member_id: MemberSubscription(
                member.instance_id, subscriptions.topic_ids(member), self.of(member.member_id)
            )
            for member in members
        }
        self.by_member = dict(assignor.assign(GroupSpec(asked, subscriptions.partitions)))
        self.epoch = epoch

    def replace(self, old_member_id: str, new_member_id: str) -> None:
        """Transfer the target of a static member that has returned under another id."""
        if old_member_id in self.by_member:
            self.by_member[new_member_id] = self.by_member.pop(old_member_id)


def preferred_assignor(members: Iterable[ConsumerMember], default: str) -> str:
    """The assignor that most members prefer, the first by name if several have as many votes."""
    votes = Counter(member.server_assignor for member in members if member.server_assignor)
    return min(votes, key=lambda name: (-votes[name], name)) if votes else default
