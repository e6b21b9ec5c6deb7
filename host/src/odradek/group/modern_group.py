"""A group whose broker assigns: members, epochs, sessions and targets of consumer and streams groups.

After org.apache.kafka.coordinator.group.modern.ModernGroup and streams.StreamsGroup. A rebalance advances
three epochs. The group epoch counts changes of members, of what they want and of topics. The assignment epoch
is the group epoch for which the assignor has computed the target. A member epoch is the assignment epoch that
the member has reached. `consumer_heartbeat` and `streams_heartbeat` advance them.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Generic, TypeVar

from odradek.group.group import MEMBER_EPOCH_VERSION, Committer, GroupType, PartitionCheck
from odradek.group.group_config import GroupConfig
from odradek.group.group_member import STATIC_LEAVE_EPOCH, GroupMember, H, MemberState
from odradek.group.group_subscriptions import Compute
from odradek.group.member_sizes import MemberSizes
from odradek.group.target_assignment import TargetAssignment
from odradek.group.topic_view import TopicView
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Deferred
from odradek.waiting.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

FIRST_EPOCH = 1

M = TypeVar("M", bound=GroupMember[Any])
"""The members."""


class ModernGroup(ABC, Generic[M, H]):
    """One group.

    Invariants: the assignment epoch never exceeds the group epoch; each static member's instance id maps to
    its current member id.
    """

    group_type: GroupType
    protocol_type: str

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
        emptied: Callable[[Any], None] | None = None,
        expelled: Callable[[M], None] | None = None,
        compute: Compute = result_of,
    ) -> None:
        self.group_id = group_id
        self.config = config
        self.clock = clock
        self.timer = timer
        self.topics = topics
        self.group_epoch = max(generation, FIRST_EPOCH)
        self.empty_since_ms = empty_since_ms
        self.members: dict[str, M] = {}
        self.sizes = MemberSizes()
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.target: TargetAssignment[H] = TargetAssignment(self.group_epoch)
        self.computed_ms: int | None = None
        """When the target was last computed."""
        self.compute = compute
        self.expelled = expelled
        """Called with a member whose session has ended."""
        self.emptied = emptied
        """Called when the last member has left."""

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
    @abstractmethod
    def assignor_name(self) -> str:
        """The assignor of the next target."""

    @property
    @abstractmethod
    def max_size(self) -> int:
        """Most members."""

    @property
    @abstractmethod
    def assignment_interval_ms(self) -> int:
        """Shortest time between two targets."""

    @abstractmethod
    def session_timeout_ms(self, member: M) -> int:
        """How long a member may be silent."""

    @abstractmethod
    def new_member(self, member_id: str) -> M:
        """A member that has nothing yet."""

    @abstractmethod
    def successor(self, old: M, member_id: str) -> M:
        """The same static member under another id, without timers and without its instance id."""

    @abstractmethod
    def size_of(self, member: M) -> int:
        """The bytes that a member keeps."""

    @abstractmethod
    def assignment(self) -> Generator[None, None, Mapping[str, AbstractSet[H]]]:
        """Compute a target of the group as it is now, by member id, in steps."""

    @abstractmethod
    def valid(self, targets: Mapping[str, AbstractSet[H]]) -> Mapping[str, AbstractSet[H]]:
        """The part of computed targets that is valid for the group as it is now."""

    @abstractmethod
    def check_held_since(self, member: M, member_epoch: int, topic_id: bytes, index: int) -> None:
        """Check that a member has had a partition since the older epoch of a commit (KIP-1251).

        Raises:
            ApiError: STALE_MEMBER_EPOCH.
        """

    def member(self, member_id: str) -> M:
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

    def static_member(self, instance_id: str) -> M | None:
        """The member with this instance id, or None."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def add(self, member: M, instance_id: str | None) -> None:
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

    def measure(self, member: M) -> None:
        """Count the present size of a member."""
        self.sizes.put(member.member_id, self.size_of(member))

    def forget_instance(self, member: M) -> None:
        """Release the instance id of a member."""
        if member.instance_id is not None:
            del self.static_members[member.instance_id]

    def replace(self, old: M, member_id: str) -> M:
        """Let a static member return under another id, with its place, its target and what it holds."""
        namesake = self.members.get(member_id)
        if namesake is not None:
            self.drop(namesake)
            self.group_epoch += 1  # what it held is free
        member = self.successor(old, member_id)
        old.stop_timers()
        del self.members[old.member_id]
        self.sizes.drop(old.member_id)
        self.forget_instance(old)
        self.add(member, old.instance_id)
        self.target.replace(old.member_id, member_id)
        return member

    def remove(self, *members: M) -> None:
        """Remove members: what they held is free, and the target must be computed again."""
        for member in members:
            self.drop(member)
        self.group_epoch += 1
        if not self.members:
            self.target.stop_computing()
            self.computed_ms = None  # who joins next is assigned to at once, as from Kafka
            self.empty_since_ms = self.clock.now_ms()
            if self.emptied is not None:
                self.emptied(self)

    def drop(self, member: M) -> None:
        """Forget a member and free what it holds."""
        member.stop_timers()
        del self.members[member.member_id]
        self.sizes.drop(member.member_id)
        self.forget_instance(member)
        self.target.by_member.pop(member.member_id, None)
        self.note("member left", member=member.member_id)

    def has_left(self, member: M) -> bool:
        """Whether a static member has left for a while, so that another one may take its place."""
        return member.member_epoch == STATIC_LEAVE_EPOCH

    def leave_for_a_while(self, member: M) -> None:
        """Note that a static member leaves but will return. What it holds waits until its session ends."""
        member.stop_rebalance()
        member.pending_revocation = {}
        self.measure(member)
        member.previous_member_epoch = member.member_epoch
        member.member_epoch = STATIC_LEAVE_EPOCH

    def update_target(self) -> None:
        """Compute the target of the current group epoch, unless the last one was computed too recently."""
        if self.group_epoch <= self.target.epoch or self.target.computing is not None or self.is_fresh:
            return
        targets = self.compute(self.assignment())
        self.computed_ms = self.clock.monotonic_ms()
        if isinstance(targets, Deferred):
            self.target.wait_for(targets)
            targets.when_done(partial(self.use_target, self.group_epoch))
        else:
            self.install_target(self.group_epoch, targets)

    @property
    def is_fresh(self) -> bool:
        """Whether the last target was computed too recently for another one."""
        now_ms = self.clock.monotonic_ms()
        return self.computed_ms is not None and now_ms - self.computed_ms < self.assignment_interval_ms

    def use_target(self, epoch: int, targets: Mapping[str, AbstractSet[H]] | Exception) -> None:
        """Use a target that was computed in steps. The group may have changed since then."""
        self.target.computing = None
        if isinstance(targets, Exception):
            log.error("cannot compute a target", exc_info=targets, extra={"group": self.group_id})
        else:
            if epoch != self.group_epoch or self.target.renamed:
                targets = self.valid(targets)
            self.install_target(epoch, targets)

    def install_target(self, epoch: int, targets: Mapping[str, AbstractSet[H]]) -> None:
        """Begin to move the members to a target."""
        self.target.install(epoch, targets)
        self.note("assignment computed", assignor=self.assignor_name)

    def start_sessions(self) -> None:
        """Start the session timers of members that have none."""
        for member in self.members.values():
            if member.session is None:
                self.restart_session(member)

    def restart_session(self, member: M) -> None:
        """Restart the session timer of a member, because it has sent a request."""
        deadline_ms = self.clock.monotonic_ms() + self.session_timeout_ms(member)
        if member.session is not None and member.session.deadline_ms <= deadline_ms:
            member.session.postpone(deadline_ms)
            return
        if member.session is not None:
            member.session.cancel()
        member.session = self.timer.schedule(deadline_ms, partial(self.end_session, member))

    def end_session(self, member: M) -> None:
        """Remove a member that was silent for too long."""
        self.note("session ended", member=member.member_id)
        self.remove(member)
        if self.expelled is not None:
            self.expelled(member)

    def restart_rebalance(self, member: M) -> None:
        """If a member must give something up, start its rebalance timeout; at its end the member is
        removed.
        """
        member.stop_rebalance()
        if member.state is MemberState.UNREVOKED:
            deadline_ms = self.clock.monotonic_ms() + max(member.rebalance_timeout_ms, 0)
            late = partial(self.fence_late, member, member.member_epoch)
            member.rebalance = self.timer.schedule(deadline_ms, late)

    def fence_late(self, member: M, member_epoch: int) -> None:
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
        return self.check_commit(committer, self.member(committer.member_id))

    def check_commit(self, committer: Committer, member: M) -> PartitionCheck | None:
        """Check the epoch of a commit.

        Raises:
            ApiError: UNSUPPORTED_VERSION or STALE_MEMBER_EPOCH.
        """
        if not committer.is_transactional and not committer.knows_member_epochs:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"members of the {self.group_type} protocol need OffsetCommit version "
                f"{MEMBER_EPOCH_VERSION} or above",
            )
        if committer.generation_id == member.member_epoch:
            return None
        if committer.generation_id > member.member_epoch:
            raise stale(committer.generation_id, member)
        return partial(self.check_held_since, member, committer.generation_id)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """See `Group`."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise stale(member_epoch, member)

    def validate_delete(self) -> None:
        """See `Group`."""
        if self.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"Group {self.group_id} is not empty.")

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """See `Group`."""

    @abstractmethod
    def topics_changed(self) -> None:
        """See `Group`. The next heartbeat of any member takes in the change."""

    def close(self) -> None:
        """See `Group`."""
        self.target.stop_computing()
        self.sizes.detach()
        for member in self.members.values():
            member.stop_timers()


def stale(member_epoch: int, member: GroupMember[Any]) -> ApiError:
    """The error for a request with another epoch than the member's."""
    return ApiError(
        ErrorCode.STALE_MEMBER_EPOCH,
        f"the received member epoch {member_epoch} is not the expected one, {member.member_epoch}",
    )
