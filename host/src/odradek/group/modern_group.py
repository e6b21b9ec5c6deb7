"""A group whose broker assigns: members, epochs, sessions and targets of consumer and streams groups.

After org.apache.kafka.coordinator.group.modern.ModernGroup and streams.StreamsGroup. A rebalance advances
three epochs. The group epoch counts changes of members, of what they want and of topics. The assignment epoch
is the group epoch for which the assignor has computed the target. A member epoch is the assignment epoch that
the member has reached. `consumer_heartbeat` and `streams_heartbeat` advance them.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Generator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Generic, TypeVar

from odradek.group.assigned_group import AssignedGroup
from odradek.group.group import MEMBER_EPOCH_VERSION, Committer, PartitionCheck
from odradek.group.group_member import STATIC_LEAVE_EPOCH, GroupMember, H, MemberState
from odradek.group.group_subscriptions import Compute
from odradek.group.target_assignment import TargetAssignment
from odradek.waiting.deferred import Deferred
from odradek.waiting.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

M = TypeVar("M", bound=GroupMember[Any])
"""The members."""


class ModernGroup(AssignedGroup[M], Generic[M, H]):
    """One group.

    Invariant, besides that of `AssignedGroup`: the assignment epoch never exceeds the group epoch.
    """

    def __init__(
        self,
        group_id: str,
        *,
        empty_since_ms: int | None = None,
        compute: Compute = result_of,
        **common: Any,
    ) -> None:
        super().__init__(group_id, **common)
        self.empty_since_ms = empty_since_ms
        self.target: TargetAssignment[H] = TargetAssignment(self.group_epoch)
        self.computed_ms: int | None = None
        """When the target was last computed."""
        self.compute = compute

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

    def static_member(self, instance_id: str) -> M | None:
        """The member with this instance id, or None."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def add(self, member: M, instance_id: str | None) -> None:
        """Add a new member, which holds nothing, or give a known member another instance id."""
        is_new = member.member_id not in self.members
        self.members[member.member_id] = member
        self.touch(member.member_id)
        self.measure(member)
        self.forget_instance(member)
        member.instance_id = instance_id
        if instance_id is not None:
            self.static_members[instance_id] = member.member_id
        self.empty_since_ms = None
        if is_new:
            self.note("member joined", member=member.member_id)

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
        self.touch(old.member_id)
        self.sizes.drop(old.member_id)
        self.forget_instance(old)
        self.add(member, old.instance_id)
        self.target.replace(old.member_id, member_id)
        return member

    def remove(self, *members: M) -> None:
        for member in members:
            self.drop(member)
        self.group_epoch += 1
        if not self.members:
            self.target.stop_computing()
            self.target.epoch = self.group_epoch
            self.computed_ms = None  # who joins next is assigned to at once, as from Kafka
            self.empty_since_ms = self.clock.now_ms()

    def drop(self, member: M) -> None:
        """Forget a member and free what it holds."""
        member.stop_timers()
        del self.members[member.member_id]
        self.touch(member.member_id)
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
        self.touch(member.member_id)

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
            self.changed(self)

    def install_target(self, epoch: int, targets: Mapping[str, AbstractSet[H]]) -> None:
        """Begin to move the members to a target."""
        for member_id in self.members:
            if targets.get(member_id, frozenset()) != self.target.of(member_id):
                self.touch(member_id)
        self.target.install(epoch, targets)
        self.note("assignment computed", assignor=self.assignor_name)

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
            self.expel(member)

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

    def close(self) -> None:
        self.target.stop_computing()
        super().close()


def stale(member_epoch: int, member: GroupMember[Any]) -> ApiError:
    """The error for a request with another epoch than the member's."""
    return ApiError(
        ErrorCode.STALE_MEMBER_EPOCH,
        f"the received member epoch {member_epoch} is not the expected one, {member.member_epoch}",
    )
