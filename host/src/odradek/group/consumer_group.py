"""A group of the consumer protocol (KIP-848): its members, its epochs, and the holder of each partition.

After org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup. A rebalance advances three epochs. The
group epoch counts changes of members, subscriptions and topics. The assignment epoch is the group epoch for
which the assignor has computed the target. A member epoch is the assignment epoch that the member has
reached. `consumer_heartbeat` advances them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from odradek.group.assignment_spec import Targets
from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_member import STATIC_LEAVE_EPOCH, ConsumerMember, MemberState
from odradek.group.consumer_subscription import CONSUMER_PROTOCOL_TYPE
from odradek.group.group import MEMBER_EPOCH_VERSION, Committer, GroupType, PartitionCheck
from odradek.group.group_config import GroupConfig
from odradek.group.group_subscriptions import Compute, GroupSubscriptions
from odradek.group.member_sizes import PARTITION_BYTES, MemberSizes, protocols_size, topics_size
from odradek.group.target_assignment import ASSIGNORS, TargetAssignment, preferred_assignor
from odradek.group.topic_view import TopicView
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Deferred
from odradek.waiting.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

FIRST_EPOCH = 1


class ConsumerGroup:
    """One group of the consumer protocol.

    Invariants: a partition has at most one holder, and ``holders`` has exactly the partitions that are
    assigned to members or that they have not given up yet; the assignment epoch never exceeds the group
    epoch; each static member's instance id maps to its current member id.
    """

    group_type = GroupType.CONSUMER
    protocol_type = CONSUMER_PROTOCOL_TYPE

    def __init__(
        self,
        group_id: str,
        *,
        config: GroupConfig,
        clock: Clock,
        timer: Timer,
        topics: TopicView,
        generation: int = FIRST_EPOCH,
        empty_since_ms: int | None = None,
        emptied: Callable[[ConsumerGroup], None] | None = None,
        expelled: Callable[[ConsumerMember], None] | None = None,
        all_classic: Callable[[ConsumerGroup], None] | None = None,
        compute: Compute = result_of,
    ) -> None:
        self.group_id = group_id
        self.config = config
        self.clock = clock
        self.timer = timer
        self.group_epoch = max(generation, FIRST_EPOCH)
        self.empty_since_ms = empty_since_ms
        self.members: dict[str, ConsumerMember] = {}
        self.sizes = MemberSizes()
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.subscriptions = GroupSubscriptions(topics, config.regex_bounds, compute)
        self.target = TargetAssignment(self.group_epoch)
        self.computed_ms: int | None = None
        """When the target was last computed."""
        self.holders: dict[TopicPartition, str] = {}
        """The member id of the holder, by partition."""
        self.compute = compute
        self.expelled = expelled
        """Called with a member whose session has ended."""
        self.emptied = emptied
        """Called when the last member has left."""
        self.all_classic = all_classic
        """Called when the last member of the consumer protocol has left and members of the classic one
        remain.
        """

    @property
    def state_name(self) -> str:
        """The state after ConsumerGroupState.java. ``Dead`` is only for groups that no longer exist."""
        if not self.members:
            return "Empty"
        if self.group_epoch > self.target.epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.target.epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def generation(self) -> int:
        return self.group_epoch

    @property
    def assignor_name(self) -> str:
        """The assignor of the next target."""
        return preferred_assignor(self.members.values(), self.config.consumer_assignors[0])

    def member(self, member_id: str) -> ConsumerMember:
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

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """The member with this instance id, or None."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def add(self, member: ConsumerMember, instance_id: str | None) -> None:
        """Add a new member, which holds nothing, or give a known member another instance id."""
        is_new = member.member_id not in self.members
        self.members[member.member_id] = member
        self.measure(member)
        self.forget_instance(member)
        member.instance_id = instance_id
        if instance_id is not None:
            self.static_members[instance_id] = member.member_id
        self.empty_since_ms = None
        if is_new:
            self.note("member joined", member=member.member_id)

    def note(self, event: str, **about: object) -> None:
        """Log an event at debug."""
        extra = {"group": self.group_id, "epoch": self.group_epoch, "members": len(self.members)}
        log.debug(event, extra=extra | about)

    def measure(self, member: ConsumerMember) -> None:
        """Count the present size of a member."""
        size = topics_size(member.subscribed_topic_names, member.subscribed_topic_regex)
        if member.classic is not None:
            size += protocols_size(member.classic.protocols)
        partitions = len(member.assigned) + len(member.pending_revocation)
        self.sizes.put(member.member_id, size + partitions * PARTITION_BYTES)

    def forget_instance(self, member: ConsumerMember) -> None:
        """Release the instance id of a member."""
        if member.instance_id is not None:
            del self.static_members[member.instance_id]

    def replace(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        """Let a static member return under another id, with its place, its target and its partitions."""
        namesake = self.members.get(member_id)
        if namesake is not None:
            self.drop(namesake)
            self.group_epoch += 1  # its partitions are free
        member = old.successor(member_id)
        old.stop_timers()
        del self.members[old.member_id]
        self.sizes.drop(old.member_id)
        self.forget_instance(old)
        self.add(member, old.instance_id)
        self.target.replace(old.member_id, member_id)
        for partition in (*member.assigned, *member.pending_revocation):
            self.holders[partition] = member_id
        return member

    def remove(self, *members: ConsumerMember) -> None:
        """Remove members: their partitions are free, and the target must be computed again."""
        for member in members:
            self.drop(member)
        self.subscriptions.refresh(self.members.values())
        self.group_epoch += 1
        if not self.members:
            self.target.stop_computing()
            self.computed_ms = None  # who joins next gets partitions at once, as from Kafka
            self.empty_since_ms = self.clock.now_ms()
            if self.emptied is not None:
                self.emptied(self)
        self.settle_protocol()

    def settle_protocol(self) -> None:
        """Let the group become a classic one if only members of the classic protocol are left."""
        consumers = any(member.classic is None for member in self.members.values())
        if self.members and not consumers and self.all_classic is not None:
            self.all_classic(self)

    def drop(self, member: ConsumerMember) -> None:
        """Forget a member and free its partitions."""
        member.stop_timers()
        del self.members[member.member_id]
        self.sizes.drop(member.member_id)
        self.forget_instance(member)
        self.target.by_member.pop(member.member_id, None)
        for partition in (*member.assigned, *member.pending_revocation):
            del self.holders[partition]
        self.note("member left", member=member.member_id)

    def leave_for_a_while(self, member: ConsumerMember) -> None:
        """Note that a static member leaves but will return. Its partitions wait until its session ends."""
        member.stop_rebalance()
        for partition in member.pending_revocation:
            del self.holders[partition]
        member.pending_revocation = {}
        self.measure(member)
        member.previous_member_epoch = member.member_epoch
        member.member_epoch = STATIC_LEAVE_EPOCH

    def catch_up(self, subscription_changed: bool) -> None:
        """Take in changes of subscriptions and topics, and compute a new target if one is due."""
        if subscription_changed or self.subscriptions.is_stale:
            topics_changed = self.subscriptions.refresh(self.members.values())
            self.group_epoch += subscription_changed or topics_changed
        self.update_target()

    def update_target(self) -> None:
        """Compute the target of the current group epoch, unless the last one was computed too recently."""
        now_ms = self.clock.monotonic_ms()
        interval_ms = self.config.consumer_assignment_interval_ms
        fresh = self.computed_ms is not None and now_ms - self.computed_ms < interval_ms
        if self.group_epoch <= self.target.epoch or self.target.computing is not None or fresh:
            return
        spec = self.target.spec(self.members.values(), self.subscriptions)
        targets = self.compute(ASSIGNORS[self.assignor_name](spec))
        self.computed_ms = now_ms
        if isinstance(targets, Deferred):
            self.target.wait_for(targets)
            targets.when_done(partial(self.use_target, self.group_epoch))
        else:
            self.install_target(self.group_epoch, targets)

    def use_target(self, epoch: int, targets: Targets | Exception) -> None:
        """Use a target that was computed in steps. The group may have changed since then."""
        self.target.computing = None
        if isinstance(targets, Exception):
            log.error("cannot assign partitions", exc_info=targets, extra={"group": self.group_id})
        else:
            if epoch != self.group_epoch or self.target.renamed:
                targets = self.target.valid(targets, self.members, self.subscriptions)
            self.install_target(epoch, targets)

    def install_target(self, epoch: int, targets: Targets) -> None:
        """Begin to move the members to a target."""
        self.target.install(epoch, targets)
        self.note("assignment computed", assignor=self.assignor_name)

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

    def restart_session(self, member: ConsumerMember) -> None:
        """Restart the session timer of a member, because it has sent a request."""
        timeout_ms = self.config.consumer_session_timeout_ms
        if member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        if member.session is not None and member.session.deadline_ms <= deadline_ms:
            member.session.postpone(deadline_ms)
            return
        if member.session is not None:
            member.session.cancel()
        member.session = self.timer.schedule(deadline_ms, partial(self.end_session, member))

    def end_session(self, member: ConsumerMember) -> None:
        """Remove a member that was silent for too long."""
        self.note("session ended", member=member.member_id)
        self.remove(member)
        if self.expelled is not None:
            self.expelled(member)

    def restart_rebalance(self, member: ConsumerMember) -> None:
        """If a member must give up partitions, start its rebalance timeout; at its end the member is
        removed.
        """
        member.stop_rebalance()
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            deadline_ms = self.clock.monotonic_ms() + max(member.rebalance_timeout_ms, 0)
            late = partial(self.fence_late, member, member.member_epoch)
            member.rebalance = self.timer.schedule(deadline_ms, late)

    def fence_late(self, member: ConsumerMember, member_epoch: int) -> None:
        """Remove a member whose rebalance timeout has ended, unless it has advanced to another epoch."""
        member.rebalance = None
        if member.member_epoch == member_epoch:
            self.remove(member)

    def validate_offset_commit(self, committer: Committer) -> PartitionCheck | None:
        """See `Group`. A commit with an older epoch is valid for partitions that the member has had since
        then (KIP-1251).
        """
        if committer.generation_id < 0 and not self.members:
            return None
        anonymous = committer.generation_id == -1 and not committer.member_id
        if committer.is_transactional and anonymous and committer.group_instance_id is None:
            return None
        member = self.member(committer.member_id)
        if member.classic is not None:
            check_generation(committer.generation_id, member)
            return None
        if not committer.is_transactional and not committer.knows_member_epochs:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"members of the consumer protocol need OffsetCommit version {MEMBER_EPOCH_VERSION} or above",
            )
        if committer.generation_id == member.member_epoch:
            return None
        if committer.generation_id > member.member_epoch:
            raise stale(committer.generation_id, member)
        return partial(check_assignment_epoch, member, committer.generation_id)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """See `Group`."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member.classic is not None:
            check_generation(member_epoch, member)
        if member_epoch != member.member_epoch:
            raise stale(member_epoch, member)

    def validate_delete(self) -> None:
        """See `Group`."""
        if self.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"Group {self.group_id} is not empty.")

    def is_subscribed_to(self, topic: str) -> bool:
        """See `Group`."""
        return self.subscriptions.topics.topic_id(topic) in self.subscriptions.partitions

    def topics_changed(self) -> None:
        """See `Group`. The next heartbeat of any member takes in the change."""
        self.subscriptions.is_stale = True

    def close(self) -> None:
        """See `Group`."""
        self.target.stop_computing()
        self.subscriptions.close()
        self.sizes.detach()
        for member in self.members.values():
            member.stop_timers()


def check_assignment_epoch(member: ConsumerMember, member_epoch: int, topic_id: bytes, index: int) -> None:
    """Check that a member has had a partition since the older epoch of a commit.

    Raises:
        ApiError: STALE_MEMBER_EPOCH.
    """
    partition = (topic_id, index)
    since = member.assigned.get(partition, member.pending_revocation.get(partition))
    if since is None or member_epoch < since:
        raise stale(member_epoch, member)


def check_generation(generation_id: int, member: ConsumerMember) -> None:
    """Check the generation of a member of the classic protocol, which is its member epoch.

    Raises:
        ApiError: ILLEGAL_GENERATION.
    """
    if generation_id != member.member_epoch:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)


def stale(member_epoch: int, member: ConsumerMember) -> ApiError:
    """The error for a request with another epoch than the member's."""
    return ApiError(
        ErrorCode.STALE_MEMBER_EPOCH,
        f"the received member epoch {member_epoch} is not the expected one, {member.member_epoch}",
    )
