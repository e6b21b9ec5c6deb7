"""The target assignment of a group and its epoch.

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
from typing import Generic

from odradek.group.assignment_spec import Assignor
from odradek.group.consumer_member import ConsumerMember
from odradek.group.group_member import H
from odradek.group.range_assignor import range_assignor
from odradek.group.uniform_assignor import uniform_assignor
from odradek.waiting.deferred import Deferred

ASSIGNORS: Mapping[str, Assignor] = {"uniform": uniform_assignor, "range": range_assignor}
"""All assignors, by name; ``group.consumer.assignors`` lists the ones that may be used."""


@dataclass(slots=True, eq=False)
class TargetAssignment(Generic[H]):
    """The latest target of one group."""

    epoch: int
    """The group epoch for which it was computed."""
    by_member: dict[str, AbstractSet[H]] = field(default_factory=dict)
    computing: Deferred[Mapping[str, AbstractSet[H]]] | None = None
    """The target that is being computed; None if none is."""
    renamed: dict[str, str] = field(default_factory=dict)
    """The new ids of static members that have returned since the computation began, by their old ids."""

    def of(self, member_id: str) -> AbstractSet[H]:
        """The target of one member; empty if it joined after the computation."""
        return self.by_member.get(member_id, frozenset())

    def install(self, epoch: int, targets: Mapping[str, AbstractSet[H]]) -> None:
        """Use the target that was computed for a group epoch."""
        self.by_member = dict(targets)
        self.epoch = epoch

    def wait_for(self, targets: Deferred[Mapping[str, AbstractSet[H]]]) -> None:
        """Remember that a target is being computed."""
        self.computing, self.renamed = targets, {}

    def stop_computing(self) -> None:
        """The target that is being computed is not needed."""
        if self.computing is not None:
            self.computing.lost()
            self.computing = None

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
