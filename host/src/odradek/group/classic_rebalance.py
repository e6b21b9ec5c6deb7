"""Rebalances of classic groups, from one generation to the next, and their timers.

After the rebalance half of GroupMetadataManager.java (Kafka 4.3). The requests of clients, which start and
advance rebalances, are in `classic_join`, `classic_sync` and `classic_leave`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_member import ClassicMember
from odradek.group.classic_state import ClassicState
from odradek.group.group_config import GroupConfig
from odradek.group.outbox import Outbox
from odradek.waiting.clock import Clock, Timer
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.join_group import JoinGroupResponse
from odradek.wire.messages.sync_group import SyncGroupResponse

CAN_REBALANCE = (ClassicState.EMPTY, ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE)


@dataclass(eq=False)
class ClassicRebalance:
    """Rebalances all classic groups.

    Args:
        config: The delays.
        clock: The current time.
        timer: The timer for delays and sessions.
        outbox: Takes responses. Callers of this class send them; the timers here do so themselves.
        changed: Called with a group that has a new generation, to be stored, or that may never have been
            used, to be dropped.
    """

    config: GroupConfig
    clock: Clock
    timer: Timer
    outbox: Outbox
    changed: Callable[[ClassicGroup], None]
    expelled: Callable[[ClassicMember], None] = lambda _member: None
    """Called with a member whose session has ended."""

    # -- the join phase

    def rebalance_or_complete_join(self, group: ClassicGroup) -> None:
        """After a change of members, start a rebalance; if one is in progress, complete it if all have
        joined.
        """
        if group.state in CAN_REBALANCE:
            self.prepare(group)
        else:
            self.complete_join_if_all_joined(group)

    def prepare(self, group: ClassicGroup) -> None:
        """Start a rebalance: all members must join again. A group that was empty first waits for more
        members.
        """
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self.fail_syncs(group)
        self.stop_sync_timer(group)
        was_empty = group.state is ClassicState.EMPTY
        group.transition(ClassicState.PREPARING_REBALANCE)
        group.note("rebalance begins")
        if was_empty:
            # The members of an application start one after another: one rebalance for all, instead of one for
            # each.
            delay_ms = self.config.initial_rebalance_delay_ms
            group.new_member_added = False
            self.wait_for_more(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.has_all_joined:
            self.complete_join(group)
        else:
            self.wait_for_joins(group)

    def wait_for_more(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Start the initial delay, which may be extended by ``remaining_ms`` in total."""
        group.join_timer = self.timer.schedule(
            self.clock.monotonic_ms() + delay_ms, partial(self.end_delay, group, delay_ms, remaining_ms)
        )

    def end_delay(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """End the initial delay, or extend it while members keep arriving."""
        with self.outbox:
            if group.new_member_added and remaining_ms > 0:
                group.new_member_added = False
                delay_next_ms = min(self.config.initial_rebalance_delay_ms, remaining_ms)
                self.wait_for_more(group, delay_next_ms, max(remaining_ms - delay_ms, 0))
            else:
                self.complete_join(group)

    def wait_for_joins(self, group: ClassicGroup) -> None:
        """Wait for all members to join. At the end, those that have not joined are removed."""
        group.join_timer = self.timer.schedule(
            self.clock.monotonic_ms() + group.rebalance_timeout_ms, partial(self.end_joins, group)
        )

    def end_joins(self, group: ClassicGroup) -> None:
        with self.outbox:
            self.complete_join(group)

    def complete_join_if_all_joined(self, group: ClassicGroup) -> None:
        """End the join phase early, but not the initial delay, which waits for members not known yet."""
        if (
            group.state is ClassicState.PREPARING_REBALANCE
            and group.has_all_joined
            and group.previous_state is not ClassicState.EMPTY
        ):
            self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        """Start the new generation with all members that have joined and all static members, which may be
        away.
        """
        if group.join_timer is not None:
            group.join_timer.cancel()
        for member in list(group):
            if member.join is None and not member.is_static:
                group.remove(member.member_id)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left and none has joined, so there is no leader. Wait again: each may
            # return until its session ends.
            self.wait_for_joins(group)
            return
        group.next_generation(self.clock.now_ms())
        group.note("generation begins", leader=group.leader_id, protocol=group.protocol_name)
        self.changed(group)
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self.announce(group)

    def announce(self, group: ClassicGroup) -> None:
        """Answer the JoinGroup of all members, and wait for their SyncGroup."""
        for member in group:
            self.outbox.put(group.take_join(member), self.generation(group, member))
            member.is_new = False
            self.arm_session(group, member)
            group.pending_syncs.add(member.member_id)
        deadline_ms = self.clock.monotonic_ms() + group.rebalance_timeout_ms
        group.sync_timer = self.timer.schedule(deadline_ms, partial(self.end_syncs, group, group.generation))

    def generation(self, group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
        """The JoinGroup response of the current generation. The leader also gets all members."""
        return JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=group.leader_id or "",
            member_id=member.member_id,
            members=group.joined_members() if group.leader_id == member.member_id else [],
        )

    # -- the sync phase

    def fail_syncs(self, group: ClassicGroup) -> None:
        """Answer parked SyncGroups because the generation ends before its leader has assigned: join again."""
        for member in group:
            member.assignment = b""
            group.measure(member)
            if member.sync is not None:
                self.answer_sync(group, member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))

    def assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        """Store the leader's assignment and answer parked SyncGroups. A member that it leaves out gets
        nothing.
        """
        for member in group:
            member.assignment = assignments.get(member.member_id, b"")
            group.measure(member)
        group.transition(ClassicState.STABLE)
        group.note("rebalance ends")
        for member in group:
            self.answer_sync(group, member, self.assignment(group, member))

    def assignment(self, group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
        """The SyncGroup response with a member's assignment."""
        return SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )

    def answer_sync(self, group: ClassicGroup, member: ClassicMember, response: SyncGroupResponse) -> None:
        """Answer a parked SyncGroup, if any, and restart the session, which ran while the member could not
        send.
        """
        parked, member.sync = member.sync, None
        if parked is not None:
            self.outbox.put(parked, response)
            self.arm_session(group, member)

    def fence_sync(self, member: ClassicMember) -> None:
        """Answer a SyncGroup parked by a former client whose place another client has taken."""
        parked, member.sync = member.sync, None
        self.outbox.put(parked, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        """Note that a member has sent its SyncGroup."""
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self.stop_sync_timer(group)

    def stop_sync_timer(self, group: ClassicGroup) -> None:
        group.pending_syncs.clear()
        if group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None

    def end_syncs(self, group: ClassicGroup, generation: int) -> None:
        """Remove members that joined but have not sent SyncGroup in time, and rebalance."""
        if group.generation != generation or group.state not in CAN_REBALANCE or not group.pending_syncs:
            return
        with self.outbox:
            for member_id in list(group.pending_syncs):
                group.remove(member_id)
            self.prepare(group)

    # -- sessions

    def arm_session(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None) -> None:
        """Start the session timer of a member again."""
        deadline_ms = self.clock.monotonic_ms() + (timeout_ms or member.session_timeout_ms)
        if member.session is not None and member.session.deadline_ms <= deadline_ms:
            member.session.postpone(deadline_ms)
            return
        member.end_session()
        member.session = self.timer.schedule(deadline_ms, partial(self.end_session, group, member))

    def end_session(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Remove a member whose session has ended.

        A member whose request is parked cannot send heartbeats, so it stays. A new member is removed even
        then: its client may have given up and joined again under another id.
        """
        member.session = None
        waits = member.join is not None or member.sync is not None
        if waits and not member.is_new:
            return
        group.note("session ended", member=member.member_id)
        with self.outbox:
            self.remove(group, member)
            self.rebalance_or_complete_join(group)
        self.expelled(member)

    def remove(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Remove a member and answer its parked requests. The caller starts the rebalance."""
        refused = ErrorCode.UNKNOWN_MEMBER_ID
        self.outbox.put(group.take_join(member), JoinGroupResponse(error_code=refused))
        parked, member.sync = member.sync, None
        self.outbox.put(parked, SyncGroupResponse(error_code=refused))
        group.remove(member.member_id)

    def arm_pending(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Start the session timer of a member id that was assigned but not used yet."""
        group.sizes.put(member_id, 0)
        group.pending_members[member_id] = self.timer.schedule(
            self.clock.monotonic_ms() + timeout_ms, partial(self.end_pending, group, member_id)
        )

    def end_pending(self, group: ClassicGroup, member_id: str) -> None:
        """Forget a member id that was not used in time."""
        with self.outbox:
            group.forget_pending(member_id)
            self.complete_join_if_all_joined(group)
            self.changed(group)
