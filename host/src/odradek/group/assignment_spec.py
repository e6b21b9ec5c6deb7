"""The input of an assignor of the consumer protocol: subscriptions, partitions and the current target."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from odradek.group.committed_offset import TopicPartition

Targets = dict[str, set[TopicPartition]]
"""The partitions assigned to each member, by member id."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """One member for an assignor."""

    instance_id: str | None
    """The instance id of a static member, else None."""
    topic_ids: frozenset[bytes]
    """The existing topics that it is subscribed to."""
    target: AbstractSet[TopicPartition]
    """Its current target."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group for an assignor; after org.apache.kafka.coordinator.group.api.assignor.GroupSpec."""

    members: Mapping[str, MemberSubscription]
    """By member id."""
    partitions: Mapping[bytes, int]
    """The number of partitions of each subscribed topic."""

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members are subscribed to the same topics."""
        return len({member.topic_ids for member in self.members.values()}) <= 1


Assignor = Callable[[GroupSpec], Generator[None, None, Targets]]
"""Assigns every partition of a subscribed topic to one of its subscribers, in steps (KIP-848). Every member
gets an entry."""
