"""How a classic group gets from one generation to the next, and what time does to it.

After the rebalance half of GroupMetadataManager.java (Kafka 4.3). What a client asks for is elsewhere
(`classic_join`, `classic_sync`, `classic_leave`); all of them end up here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from odradek.clock import Clock, Timer
from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_member import ClassicMember
from odradek.group.classic_state import ClassicState
from odradek.group.group_config import GroupConfig
from odradek.group.outbox import Outbox
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.join_group import JoinGroupResponse
from odradek.wire.messages.sync_group import SyncGroupResponse

CAN_REBALANCE = (ClassicState.EMPTY, ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE)


class ClassicRebalance:
    """Rebalances of all classic groups.

    Args:
        config: Delays.
        clock: The time.
        timer: What waits.
        outbox: Where answers go; whoever calls sends them, timers here do it themselves.
        changed: Called with a group that has a new generation, or none that was ever used: it is to be
            stored, or may be dropped.
    """

    def __init__(
        self,
        config: GroupConfig,
        clock: Clock,
        timer: Timer,
        outbox: Outbox,
        changed: Callable[[ClassicGroup], None],
    ) -> None:
        self.config = config
        self.clock = clock
        self.timer = timer
        self.outbox = outbox
        self.changed = changed

    # -- the join phase

    def rebalance_or_complete_join(self, group: ClassicGroup) -> None:
        """Members have changed: rebalance; or, if that is going on, see whether it can end."""
        if group.state in CAN_REBALANCE:
            self.prepare(group)
        else:
            self.complete_join_if_all_joined(group)

    def prepare(self, group: ClassicGroup) -> None:
        """Have everybody join again. A group that was empty waits a while for more members."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self.fail_syncs(group)
        self.stop_sync_timer(group)
        was_empty = group.state is ClassicState.EMPTY
        group.transition(ClassicState.PREPARING_REBALANCE)
        if was_empty:
            delay_ms = self.config.initial_rebalance_delay_ms
            group.new_member_added = False
            self.wait_for_more(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.has_all_joined:
            self.complete_join(group)
        else:
            self.wait_for_joins(group)

    def wait_for_more(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """The initial delay; ``remaining_ms`` is how far it may be extended after that."""
        group.join_timer = self.timer.schedule(
            self.clock.now_ms() + delay_ms, partial(self.end_delay, group, delay_ms, remaining_ms)
        )

    def end_delay(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """The initial delay is over: begin, or wait again for as long as members keep arriving."""
        with self.outbox:
            if group.new_member_added and remaining_ms > 0:
                group.new_member_added = False
                delay_next_ms = min(self.config.initial_rebalance_delay_ms, remaining_ms)
                self.wait_for_more(group, delay_next_ms, max(remaining_ms - delay_ms, 0))
            else:
                self.complete_join(group)

    def wait_for_joins(self, group: ClassicGroup) -> None:
        """Whoever has not joined when this ends is out."""
        group.join_timer = self.timer.schedule(
            self.clock.now_ms() + group.rebalance_timeout_ms, partial(self.end_joins, group)
        )

    def end_joins(self, group: ClassicGroup) -> None:
        with self.outbox:
            self.complete_join(group)

    def complete_join_if_all_joined(self, group: ClassicGroup) -> None:
        """End the join phase early; not the initial delay, which waits for members that nobody knows yet."""
        if (
            group.state is ClassicState.PREPARING_REBALANCE
            and group.has_all_joined
            and group.previous_state is not ClassicState.EMPTY
        ):
            self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        """Make up the new generation of those who have joined, and of static members, who may be away."""
        if group.join_timer is not None:
            group.join_timer.cancel()
        for member in list(group):
            if member.join_reply is None and not member.is_static:
                group.remove(member.member_id)
        if not group.elect_joined_leader() and group.members:
            # static members alone, and none has come: their sessions decide
            self.wait_for_joins(group)
            return
        group.next_generation(self.clock.now_ms())
        self.changed(group)
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self.announce(group)

    def announce(self, group: ClassicGroup) -> None:
        """Answer all that joined, and wait for their SyncGroup."""
        for member in group:
            self.outbox.put(group.take_join(member), self.generation(group, member))
            member.is_new = False
            self.arm_session(group, member)
            group.pending_syncs.add(member.member_id)
        deadline_ms = self.clock.now_ms() + group.rebalance_timeout_ms
        group.sync_timer = self.timer.schedule(deadline_ms, partial(self.end_syncs, group, group.generation))

    def generation(self, group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
        """What a member is told about the current generation; the leader learns about everybody."""
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
        """The generation ends before its leader has assigned: who waits for that shall join again."""
        for member in group:
            member.assignment = b""
            if member.sync_reply is not None:
                self.answer_sync(group, member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))

    def assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        """The leader's word: everybody who waits learns its part; who is left out has nothing."""
        for member in group:
            member.assignment = assignments.get(member.member_id, b"")
        group.transition(ClassicState.STABLE)
        for member in group:
            self.answer_sync(group, member, self.assignment(group, member))

    def assignment(self, group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
        """A member's part."""
        return SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )

    def answer_sync(self, group: ClassicGroup, member: ClassicMember, response: SyncGroupResponse) -> None:
        """Answer a parked SyncGroup, if there is one. Its session has run on unheeded: it starts anew."""
        reply, member.sync_reply = member.sync_reply, None
        if reply is not None:
            self.outbox.put(reply, response)
            self.arm_session(group, member)

    def fence_sync(self, member: ClassicMember) -> None:
        """Another client has taken the member's place: answer a SyncGroup that the former one has parked."""
        reply, member.sync_reply = member.sync_reply, None
        self.outbox.put(reply, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        """A member has sent its SyncGroup."""
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self.stop_sync_timer(group)

    def stop_sync_timer(self, group: ClassicGroup) -> None:
        group.pending_syncs.clear()
        if group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None

    def end_syncs(self, group: ClassicGroup, generation: int) -> None:
        """Members that joined and then never asked for their part are out."""
        if group.generation != generation or group.state not in CAN_REBALANCE or not group.pending_syncs:
            return
        with self.outbox:
            for member_id in list(group.pending_syncs):
                group.remove(member_id)
            self.prepare(group)

    # -- sessions

    def arm_session(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None) -> None:
        """Wait for the member's next sign of life."""
        deadline_ms = self.clock.now_ms() + (timeout_ms or member.session_timeout_ms)
        if member.session is not None and member.session.deadline_ms <= deadline_ms:
            member.session.postpone(deadline_ms)
            return
        member.end_session()
        member.session = self.timer.schedule(deadline_ms, partial(self.end_session, group, member))

    def end_session(self, group: ClassicGroup, member: ClassicMember) -> None:
        """The member was silent for too long. One that waits for us is not silent, unless it is new: a new
        one cannot send heartbeats, and may be a client that went away and joined again under another id.
        """
        member.session = None
        waits = member.join_reply is not None or member.sync_reply is not None
        if waits and not member.is_new:
            return
        with self.outbox:
            self.remove(group, member)
            self.rebalance_or_complete_join(group)

    def remove(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Take a member out and tell it, if it waits for something. The caller sees to the rebalance."""
        refused = ErrorCode.UNKNOWN_MEMBER_ID
        self.outbox.put(group.take_join(member), JoinGroupResponse(error_code=refused))
        reply, member.sync_reply = member.sync_reply, None
        self.outbox.put(reply, SyncGroupResponse(error_code=refused))
        group.remove(member.member_id)

    def arm_pending(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Wait for somebody to use a member id that was given out."""
        group.pending_members[member_id] = self.timer.schedule(
            self.clock.now_ms() + timeout_ms, partial(self.end_pending, group, member_id)
        )

    def end_pending(self, group: ClassicGroup, member_id: str) -> None:
        """Nobody came with this member id."""
        with self.outbox:
            group.forget_pending(member_id)
            self.complete_join_if_all_joined(group)
            self.changed(group)
