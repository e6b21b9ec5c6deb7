"""A share group (KIP-932): its members, its epochs, and which partitions each member reads.

After org.apache.kafka.coordinator.group.modern.share.ShareGroup. Members may share a partition, so a member
has its target at once: there is nothing to give up first. A partition is assigned only after its delivery
state was made, which happens after the heartbeat that first names its topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from odradek.group.committed_offset import TopicPartition
from odradek.group.group import Committer, GroupType, PartitionCheck
from odradek.group.group_config import GroupConfig
from odradek.group.member_sizes import PARTITION_BYTES, MemberSizes, topics_size
from odradek.group.share_member import ShareMember
from odradek.group.share_store import ShareMemberRow
from odradek.group.simple_assignor import assign
from odradek.group.topic_view import TopicView
from odradek.waiting.clock import Clock, Timer
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

SHARE_PROTOCOL_TYPE = "share"
FIRST_EPOCH = 1


class ShareGroup:
    """One share group.

    Invariants: the assignment epoch never exceeds the group epoch; members are assigned only partitions in
    ``known``, and all of these that exist and that a member subscribes to, once the assignment is new.
    """

    group_type = GroupType.SHARE
    protocol_type = SHARE_PROTOCOL_TYPE
    empty_since_ms: int | None = None
    """Share groups do not expire."""

    def __init__(
        self,
        group_id: str,
        *,
        config: GroupConfig,
        clock: Clock,
        timer: Timer,
        topics: TopicView,
        generation: int = FIRST_EPOCH,
        changed: Callable[[ShareGroup], None] = lambda _group: None,
        expelled: Callable[[ShareMember], None] = lambda _member: None,
    ) -> None:
        self.group_id = group_id
        self.config = config
        self.clock = clock
        self.timer = timer
        self.topics = topics
        self.group_epoch = max(generation, FIRST_EPOCH)
        self.assignment_epoch = self.group_epoch
        """The group epoch for which the targets were computed."""
        self.members: dict[str, ShareMember] = {}
        self.static_members: dict[str, str] = {}
        """Always empty."""
        self.sizes = MemberSizes()
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
        self.unsaved: set[str] = set()
        """The ids of members that have changed or left since the group was stored."""
        self.changed = changed
        """Called when a session has ended."""
        self.expelled = expelled
        """Called with a member whose session has ended."""

    @property
    def state_name(self) -> str:
        """The state after ShareGroupState.java. ``Dead`` is only for groups that no longer exist."""
        return "Stable" if self.members else "Empty"

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def generation(self) -> int:
        return self.group_epoch

    @property
    def assignor_name(self) -> str:
        return self.config.share.assignors[0]

    def note(self, event: str, **about: object) -> None:
        """Log an event at debug."""
        extra = {"group": self.group_id, "epoch": self.group_epoch, "members": len(self.members)}
        log.debug(event, extra=extra | about)

    def member(self, member_id: str) -> ShareMember:
        """The member with this id.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID.
        """
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def put(self, member: ShareMember) -> None:
        """Add a member, or count one that has changed."""
        if member.member_id not in self.members:
            self.note("member joined", member=member.member_id)
        self.members[member.member_id] = member
        size = topics_size(member.subscribed_topic_names, None) + len(member.assigned) * PARTITION_BYTES
        self.sizes.put(member.member_id, size)
        self.unsaved.add(member.member_id)

    def restore(self, member: ShareMember) -> None:
        """Put back a member after a restart, with a new session."""
        self.put(member)
        self.unsaved.clear()
        self.counts = self.subscribed_counts()
        assigned = {each for known in self.members.values() for each in known.target}
        self.has_new = not assigned.issuperset(self.assignable())
        self.restart_session(member)

    def changes(self) -> tuple[list[ShareMemberRow], list[str]]:
        """The stored form of the members that have changed, and the ids of those that have left."""
        changed = [self.members[each] for each in self.unsaved if each in self.members]
        rows = [(self.group_id, member.member_id, member.stored()) for member in changed]
        return rows, [each for each in self.unsaved if each not in self.members]

    def remove(self, member: ShareMember) -> None:
        """Remove a member: who takes its part is computed with the next heartbeat."""
        member.stop_timers()
        del self.members[member.member_id]
        self.sizes.drop(member.member_id)
        self.unsaved.add(member.member_id)
        self.group_epoch += 1
        self.counts = self.subscribed_counts()
        if not self.members:
            self.computed_ms = None  # who joins next is assigned to at once, as from Kafka
        self.note("member left", member=member.member_id)

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
                self.unsaved.add(member_id)
        self.assignment_epoch = self.group_epoch
        self.has_new = False
        self.note("assignment computed", assignor=self.assignor_name)

    def restart_session(self, member: ShareMember) -> None:
        """Restart the session timer of a member, because it has sent a request."""
        deadline_ms = self.clock.monotonic_ms() + self.config.share.session_timeout_ms
        if member.session is not None and member.session.deadline_ms <= deadline_ms:
            member.session.postpone(deadline_ms)
            return
        if member.session is not None:
            member.session.cancel()
        member.session = self.timer.schedule(deadline_ms, partial(self.end_session, member))

    def end_session(self, member: ShareMember) -> None:
        """Remove a member that was silent for too long."""
        self.note("session ended", member=member.member_id)
        self.remove(member)
        self.changed(self)
        self.expelled(member)

    def validate_offset_commit(self, committer: Committer) -> PartitionCheck | None:
        """See `Group`. A share group has no committed offsets."""
        raise not_of_type(self.group_id, "consumer")

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """See `Group`. There is nothing to fetch."""

    def validate_delete(self) -> None:
        """See `Group`."""
        if self.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"Group {self.group_id} is not empty.")

    def is_subscribed_to(self, topic: str) -> bool:
        """See `Group`."""
        return any(topic in member.subscribed_topic_names for member in self.members.values())

    def topics_changed(self) -> None:
        """See `Group`. The next heartbeat of any member takes in the change."""
        self.is_stale = True

    def close(self) -> None:
        """See `Group`."""
        self.sizes.detach()
        for member in self.members.values():
            member.stop_timers()


def not_of_type(group_id: str, kind: str) -> ApiError:
    """The refusal of a request for another type of group, in Kafka's words."""
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {kind} group.")
