"""A share group (KIP-932): its members, its epochs, and which partitions each member reads.

After org.apache.kafka.coordinator.group.modern.share.ShareGroup. Members may share a partition, so a member
has its target at once: there is nothing to give up first. A partition is assigned only after its delivery
state was made, which happens after the heartbeat that first names its topic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from odradek.group.committed_offset import TopicPartition
from odradek.group.group import Committer, GroupType, PartitionCheck, not_of_type
from odradek.group.kept_group import KeptGroup
from odradek.group.member_sizes import PARTITION_BYTES, topics_size
from odradek.group.share_member import ShareMember
from odradek.group.simple_assignor import assign

SHARE_PROTOCOL_TYPE = "share"


class ShareGroup(KeptGroup[ShareMember]):
    """One share group.

    Invariants: the assignment epoch never exceeds the group epoch; members are assigned only partitions in
    ``known``, and all of these that exist and that a member subscribes to, once the assignment is new.
    """

    group_type = GroupType.SHARE
    protocol_type = SHARE_PROTOCOL_TYPE
    empty_since_ms: int | None = None
    """Share groups do not expire."""

    def __init__(self, group_id: str, **common: Any) -> None:
        super().__init__(group_id, **common)
        self.assignment_epoch = self.group_epoch
        """The group epoch for which the targets were computed."""
        self.computed_ms: int | None = None
        """When the targets were last computed."""
        self.known: dict[bytes, set[int]] = {}
        """The partitions with a delivery state, by topic id."""
        self.counts: dict[bytes, int] = {}
        """The numbers of partitions of the topics that members subscribe to, by topic id."""
        self.has_new = False
        """Whether there are partitions in `known` that were not there for the last assignment."""
        self.is_stale = True
        """Whether topics may have changed since `counts` was made."""

    @property
    def epochs(self) -> tuple[int, int]:
        return self.group_epoch, self.assignment_epoch

    @property
    def state_name(self) -> str:
        """The state after ShareGroupState.java. ``Dead`` is only for groups that no longer exist."""
        return "Stable" if self.members else "Empty"

    @property
    def assignor_name(self) -> str:
        return self.config.share.assignors[0]

    def session_timeout_ms(self, member: ShareMember) -> int:
        return self.config.share.session_timeout_ms

    def put(self, member: ShareMember) -> None:
        """Add a member, or count one that has changed."""
        if member.member_id not in self.members:
            self.note("member joined", member=member.member_id)
        self.members[member.member_id] = member
        size = topics_size(member.subscribed_topic_names, None) + len(member.assigned) * PARTITION_BYTES
        self.sizes.put(member.member_id, size)
        self.touch(member.member_id)

    def stored(self) -> str:
        return json.dumps({"assignment_epoch": self.assignment_epoch})

    def stored_member(self, member: ShareMember) -> str:
        return member.stored()

    def restore(self, state: str) -> None:
        self.assignment_epoch = json.loads(state)["assignment_epoch"]

    def restore_member(self, member_id: str, state: str) -> None:
        member = ShareMember.restored(member_id, state)
        self.put(member)
        self.counts = self.subscribed_counts()
        assigned = {each for known in self.members.values() for each in known.target}
        self.has_new = not assigned.issuperset(self.assignable())

    def remove(self, *members: ShareMember) -> None:
        """Remove members: who takes their part is computed with the next heartbeat."""
        for member in members:
            member.stop_timers()
            del self.members[member.member_id]
            self.sizes.drop(member.member_id)
            self.touch(member.member_id)
            self.note("member left", member=member.member_id)
        self.group_epoch += 1
        self.counts = self.subscribed_counts()
        if not self.members:
            self.assignment_epoch = self.group_epoch
            self.computed_ms = None  # who joins next is assigned to at once, as from Kafka

    def catch_up(self, subscription_changed: bool) -> None:
        """Take in changes of subscriptions, topics and delivery states; compute targets if they are due."""
        changed = subscription_changed
        if subscription_changed or self.is_stale:
            before, self.counts = self.counts, self.subscribed_counts()
            changed |= before != self.counts
            self.is_stale = False
        if changed or (self.group_epoch == self.assignment_epoch and self.has_new):
            self.group_epoch += 1
        now_ms = self.clock.monotonic_ms()
        interval_ms = self.config.share.assignment_interval_ms
        is_fresh = self.computed_ms is not None and now_ms - self.computed_ms < interval_ms
        if self.group_epoch > self.assignment_epoch and not is_fresh:
            self.assign()
            self.computed_ms = now_ms

    def subscribed_counts(self) -> dict[bytes, int]:
        names = {name for member in self.members.values() for name in member.subscribed_topic_names}
        found = ((self.topics.topic_id(name), self.topics.partition_count(name)) for name in names)
        return {topic_id: count for topic_id, count in found if topic_id is not None}

    def assignable(self) -> Iterator[TopicPartition]:
        """The partitions that may be assigned."""
        for topic_id, count in self.counts.items():
            for index in self.known.get(topic_id, ()):
                if index < count:
                    yield topic_id, index

    def unknown(self) -> list[TopicPartition]:
        """The partitions of subscribed topics that have no delivery state yet."""
        return [
            (topic_id, index)
            for topic_id, count in self.counts.items()
            if len(self.known.get(topic_id, ())) < count
            for index in range(count)
            if index not in self.known.get(topic_id, ())
        ]

    def learn(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that partitions have a delivery state."""
        for topic_id, index in partitions:
            self.known.setdefault(topic_id, set()).add(index)
            self.has_new = True

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that partitions have no delivery state any more."""
        for topic_id, index in partitions:
            indexes = self.known.get(topic_id, set())
            indexes.discard(index)
            if not indexes:
                self.known.pop(topic_id, None)

    def knows(self, topic_id: bytes, index: int) -> bool:
        """Whether a partition has a delivery state."""
        return index in self.known.get(topic_id, ())

    def assign(self) -> None:
        """Compute the targets of all members for the present group epoch."""
        partitions: dict[bytes, list[int]] = {}
        for topic_id, index in self.assignable():
            partitions.setdefault(topic_id, []).append(index)
        ids = self.topics.topic_id
        subscriptions = {
            member_id: {found for name in member.subscribed_topic_names if (found := ids(name)) is not None}
            for member_id, member in self.members.items()
        }
        before = {member_id: member.target for member_id, member in self.members.items()}
        for member_id, target in assign(subscriptions, partitions, before).items():
            if target != before[member_id]:
                self.members[member_id].target = frozenset(target)
                self.touch(member_id)
        self.assignment_epoch = self.group_epoch
        self.has_new = False
        self.note("assignment computed", assignor=self.assignor_name)

    def validate_offset_commit(self, committer: Committer) -> PartitionCheck | None:
        """See `Group`. A share group has no committed offsets."""
        raise not_of_type(self.group_id, GroupType.CONSUMER)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """See `Group`. There is nothing to fetch."""

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in member.subscribed_topic_names for member in self.members.values())

    def topics_changed(self) -> None:
        self.is_stale = True
