"""A group of the consumer protocol (KIP-848): its subscriptions, and the holder of each partition.

After org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from odradek.group.assignment_spec import GroupSpec, MemberSubscription, Targets
from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_member import ConsumerMember
from odradek.group.consumer_subscription import CONSUMER_PROTOCOL_TYPE
from odradek.group.group import Committer, GroupType, PartitionCheck
from odradek.group.group_subscriptions import GroupSubscriptions
from odradek.group.member_sizes import PARTITION_BYTES, protocols_size, topics_size
from odradek.group.modern_group import ModernGroup, stale
from odradek.group.target_assignment import ASSIGNORS, preferred_assignor
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


class ConsumerGroup(ModernGroup[ConsumerMember, TopicPartition]):
    """One group of the consumer protocol.

    Invariants, besides those of `ModernGroup`: a partition has at most one holder, and ``holders`` has
    exactly the partitions that are assigned to members or that they have not given up yet.
    """

    group_type = GroupType.CONSUMER
    protocol_type = CONSUMER_PROTOCOL_TYPE

    def __init__(
        self, group_id: str, *, all_classic: Callable[[ConsumerGroup], None] | None = None, **common: Any
    ) -> None:
        super().__init__(group_id, **common)
        self.subscriptions = GroupSubscriptions(self.topics, self.config.regex_bounds, self.compute)
        self.holders: dict[TopicPartition, str] = {}
        """The member id of the holder, by partition."""
        self.all_classic = all_classic
        """Called when the last member of the consumer protocol has left and members of the classic one
        remain.
        """

    @property
    def assignor_name(self) -> str:
        return preferred_assignor(self.members.values(), self.config.consumer_assignors[0])

    @property
    def max_size(self) -> int:
        return self.config.consumer_max_size

    @property
    def assignment_interval_ms(self) -> int:
        return self.config.consumer_assignment_interval_ms

    def session_timeout_ms(self, member: ConsumerMember) -> int:
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return self.config.consumer_session_timeout_ms

    def new_member(self, member_id: str) -> ConsumerMember:
        return ConsumerMember(member_id)

    def successor(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        return old.successor(member_id)

    def size_of(self, member: ConsumerMember) -> int:
        size = topics_size(member.subscribed_topic_names, member.subscribed_topic_regex)
        if member.classic is not None:
            size += protocols_size(member.classic.protocols)
        partitions = len(member.assigned) + len(member.pending_revocation)
        return size + partitions * PARTITION_BYTES

    def replace(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        member = super().replace(old, member_id)
        for partition in (*member.assigned, *member.pending_revocation):
            self.holders[partition] = member_id
        return member

    def remove(self, *members: ConsumerMember) -> None:
        super().remove(*members)
        self.subscriptions.refresh(self.members.values())
        self.settle_protocol()

    def settle_protocol(self) -> None:
        """Let the group become a classic one if only members of the classic protocol are left."""
        consumers = any(member.classic is None for member in self.members.values())
        if self.members and not consumers and self.all_classic is not None:
            self.all_classic(self)

    def drop(self, member: ConsumerMember) -> None:
        super().drop(member)
        for partition in (*member.assigned, *member.pending_revocation):
            del self.holders[partition]

    def has_left(self, member: ConsumerMember) -> bool:
        return super().has_left(member) or member.classic is not None

    def leave_for_a_while(self, member: ConsumerMember) -> None:
        for partition in member.pending_revocation:
            del self.holders[partition]
        super().leave_for_a_while(member)

    def catch_up(self, subscription_changed: bool) -> None:
        """Take in changes of subscriptions and topics, and compute a new target if one is due."""
        if subscription_changed or self.subscriptions.is_stale:
            topics_changed = self.subscriptions.refresh(self.members.values())
            self.group_epoch += subscription_changed or topics_changed
        self.update_target()

    def assignment(self) -> Generator[None, None, Targets]:
        asked = {
            # The assignor gets the current target, not what members hold: it is where they are heading.
            member.member_id: MemberSubscription(
                member.instance_id, self.subscriptions.topic_ids(member), self.target.of(member.member_id)
            )
            for member in self.members.values()
        }
        return ASSIGNORS[self.assignor_name](GroupSpec(asked, self.subscriptions.partitions))

    def valid(self, targets: Mapping[str, AbstractSet[TopicPartition]]) -> Targets:
        """Members, subscribed topics and partitions that still exist."""
        found: Targets = {}
        for old_id, partitions in targets.items():
            member = self.members.get(self.target.renamed.get(old_id, old_id))
            if member is not None:
                wanted, counts = self.subscriptions.topic_ids(member), self.subscriptions.partitions
                found[member.member_id] = {
                    (topic_id, partition)
                    for topic_id, partition in partitions
                    if topic_id in wanted and partition < counts.get(topic_id, 0)
                }
        return found

    def hold(
        self, member: ConsumerMember, assigned: dict[TopicPartition, int], pending: dict[TopicPartition, int]
    ) -> None:
        """Update the holders after a member has changed.

        Args:
            member: The member after the change.
            assigned: Its assigned partitions before the change.
            pending: The partitions that it had to give up before the change.
        """
        for partition in (*assigned, *pending):
            if partition not in member.assigned and partition not in member.pending_revocation:
                del self.holders[partition]
        for partition in (*member.assigned, *member.pending_revocation):
            self.holders[partition] = member.member_id

    def check_commit(self, committer: Committer, member: ConsumerMember) -> PartitionCheck | None:
        if member.classic is not None:
            check_generation(committer.generation_id, member)
            return None
        return super().check_commit(committer, member)

    def check_held_since(
        self, member: ConsumerMember, member_epoch: int, topic_id: bytes, index: int
    ) -> None:
        partition = (topic_id, index)
        since = member.assigned.get(partition, member.pending_revocation.get(partition))
        if since is None or member_epoch < since:
            raise stale(member_epoch, member)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        known = self.members.get(member_id or "")
        if known is not None and known.classic is not None:
            check_generation(member_epoch, known)
        super().validate_offset_fetch(member_id, member_epoch)

    def is_subscribed_to(self, topic: str) -> bool:
        return self.topics.topic_id(topic) in self.subscriptions.partitions

    def topics_changed(self) -> None:
        self.subscriptions.is_stale = True

    def close(self) -> None:
        super().close()
        self.subscriptions.close()


def check_generation(generation_id: int, member: ConsumerMember) -> None:
    """Check the generation of a member of the classic protocol, which is its member epoch.

    Raises:
        ApiError: ILLEGAL_GENERATION.
    """
    if generation_id != member.member_epoch:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
