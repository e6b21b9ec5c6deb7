"""What the members of a consumer group should have, and as of which epoch; after
org.apache.kafka.coordinator.group.modern.TargetAssignmentBuilder.
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
"""All that there are; ``group.consumer.assignors`` says which of them may be used."""

NOTHING: frozenset[TopicPartition] = frozenset()


@dataclass(slots=True, eq=False)
class TargetAssignment:
    """The newest answer of an assignor for one group."""

    epoch: int
    """The group epoch it was computed for."""
    by_member: dict[str, AbstractSet[TopicPartition]] = field(default_factory=dict)

    def of(self, member_id: str) -> AbstractSet[TopicPartition]:
        """One member's share; nothing if it came later."""
        return self.by_member.get(member_id, NOTHING)

    def compute(
        self,
        epoch: int,
        assignor: ConsumerGroupPartitionAssignor,
        members: Iterable[ConsumerMember],
        subscriptions: GroupSubscriptions,
    ) -> None:
        """Ask the assignor for the target of a group epoch."""
        asked = {
            member.member_id: MemberSubscription(
                member.instance_id, subscriptions.topic_ids(member), self.of(member.member_id)
            )
            for member in members
        }
        self.by_member = dict(assignor.assign(GroupSpec(asked, subscriptions.partitions)))
        self.epoch = epoch

    def replace(self, old_member_id: str, new_member_id: str) -> None:
        """A static member has come back under another id."""
        if old_member_id in self.by_member:
            self.by_member[new_member_id] = self.by_member.pop(old_member_id)


def preferred_assignor(members: Iterable[ConsumerMember], default: str) -> str:
    """The name that most members ask for; of several the first in the alphabet."""
    votes = Counter(member.server_assignor for member in members if member.server_assignor)
    return min(votes, key=lambda name: (-votes[name], name)) if votes else default
