"""What an assignor of the consumer protocol is asked: who wants which topics, and what everybody has."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from odradek.group.committed_offset import TopicPartition

Targets = dict[str, set[TopicPartition]]
"""What each member should have, by member id."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """One member, as an assignor sees it."""

    instance_id: str | None
    """Of a static member."""
    topic_ids: frozenset[bytes]
    """The topics it wants; only topics that exist."""
    target: AbstractSet[TopicPartition]
    """What it was to have until now."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group at one moment; after org.apache.kafka.coordinator.group.api.assignor.GroupSpec."""

    members: Mapping[str, MemberSubscription]
    """By member id."""
    partitions: Mapping[bytes, int]
    """How many partitions each topic has that anybody wants."""

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members want the same topics."""
        return len({member.topic_ids for member in self.members.values()}) <= 1


class ConsumerGroupPartitionAssignor(Protocol):
    """Divides partitions among members, on the broker (KIP-848)."""

    name: str

    def assign(self, spec: GroupSpec) -> Targets:
        """Give every partition that somebody wants to one who wants it. Every member has an entry."""
