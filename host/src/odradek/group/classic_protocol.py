"""The classic protocol over all groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Refusals are raised. An answer that has to wait for other members is a `Deferred`. The metadata and
assignments that members exchange are opaque here.
"""

from __future__ import annotations

from typing import Protocol

from odradek.group import classic_leave, classic_sync, mixed_group
from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_join import ClassicJoin, Joiner
from odradek.group.classic_rebalance import ClassicRebalance
from odradek.group.consumer_group import ConsumerGroup
from odradek.group.group import Group
from odradek.group.group_config import GroupConfig
from odradek.group.member_sizes import GroupTotals
from odradek.group.mixed_group import MixedJoin
from odradek.group.outbox import Outbox
from odradek.settings.state_limit import StateLimit
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberResponse
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class Registry(Protocol):
    """The part of `GroupCoordinator` that the protocol uses."""

    config: GroupConfig
    clock: Clock
    timer: Timer
    groups: dict[str, Group]

    def random_uuid(self) -> bytes:
        """16 random bytes."""

    def replace(self, group: Group) -> None:
        """Register a group, which may replace an empty one."""

    def put(self, group: Group) -> None:
        """Replace an empty group."""

    def classic_group_changed(self, group: ClassicGroup) -> None:
        """Store a group, or forget it if it was never used."""

    groups_limit: StateLimit
    totals: GroupTotals

    def check_not_owned(self, group_id: str) -> None:
        """Refuse members for a group of the host's own."""


class ClassicProtocol:
    """One per host."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.outbox = Outbox()
        self.rebalance = ClassicRebalance(
            registry.config, registry.clock, registry.timer, self.outbox, registry.classic_group_changed
        )

    def join(
        self, request: JoinGroupRequest, joiner: Joiner
    ) -> JoinGroupResponse | Deferred[JoinGroupResponse]:
        """Enter a group, or take part in its rebalance. An unknown group is created.

        Raises:
            ApiError: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, or one of `check_room`, `group_to_join` and
                `ClassicJoin.run`.
        """
        check_group_id(request.group_id)
        self.registry.check_not_owned(request.group_id)
        config = self.registry.config
        if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
            raise ApiError(ErrorCode.INVALID_SESSION_TIMEOUT)
        self.check_room(request)
        mixed = self.mixed_group(request.group_id)
        if mixed is not None:
            with self.outbox:
                return MixedJoin(request, joiner, self.registry.random_uuid(), mixed).answer()
        group = self.group_to_join(request)
        with self.outbox:
            try:
                return ClassicJoin(request, joiner, self.registry.random_uuid(), self.rebalance, group).run()
            finally:
                self.forget_if_unused(group)

    def check_room(self, request: JoinGroupRequest) -> None:
        """Check that all groups together have room for the member.

        Raises:
            ApiError: POLICY_VIOLATION.
        """
        group = self.registry.groups.get(request.group_id)
        sizes, place = None, None
        if group is not None:
            sizes, place = group.sizes, group.static_members.get(request.group_instance_id or "")
        size = sum(len(protocol.name) + len(protocol.metadata) for protocol in request.protocols)
        self.registry.totals.check(sizes, (request.member_id, place), size)

    def group_to_join(self, request: JoinGroupRequest) -> ClassicGroup:
        """The group to join. An empty one of the other protocol becomes a classic one.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID: a member of a group that does not exist; POLICY_VIOLATION.
        """
        known = self.registry.groups.get(request.group_id)
        if isinstance(known, ClassicGroup):
            return known
        if request.member_id and known is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if known is None:
            self.registry.groups_limit.check()
        group = ClassicGroup(request.group_id, generation=0 if known is None else known.generation)
        if known is None:
            self.registry.replace(group)
        else:
            self.registry.put(group)
        return group

    def mixed_group(self, group_id: str) -> ConsumerGroup | None:
        """A group of the consumer protocol that has members, perhaps of both protocols; None if it is not
        one.
        """
        group = self.registry.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) and not group.is_empty else None

    def forget_if_unused(self, group: ClassicGroup) -> None:
        """Remove a group that was only made for a refused join or an unused member id."""
        if group.is_unused:
            self.registry.classic_group_changed(group)

    def sync(self, request: SyncGroupRequest) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
        """Fetch the member's assignment. The leader brings the assignments of all members.

        Raises:
            ApiError: See `classic_sync.sync`, and INVALID_GROUP_ID.
        """
        mixed = self.mixed_group(request.group_id)
        if mixed is not None:
            with self.outbox:
                return mixed_group.sync(mixed, request)
        self.registry.totals.bytes_limit.check(sum(len(each.assignment) for each in request.assignments))
        group = self.group_of_member(request.group_id)
        with self.outbox:
            return classic_sync.sync(self.rebalance, group, request)

    def heartbeat(self, request: HeartbeatRequest) -> None:
        """A member is alive.

        Raises:
            ApiError: See `classic_sync.heartbeat`, and INVALID_GROUP_ID.
        """
        mixed = self.mixed_group(request.group_id)
        if mixed is not None:
            mixed_group.heartbeat(mixed, request)
            return
        classic_sync.heartbeat(self.rebalance, self.group_of_member(request.group_id), request)

    def leave(self, request: LeaveGroupRequest) -> list[MemberResponse]:
        """Remove members from a group. Those of an unknown group are unknown, too.

        Raises:
            ApiError: INVALID_GROUP_ID.
        """
        check_group_id(request.group_id)
        mixed = self.mixed_group(request.group_id)
        if mixed is not None:
            with self.outbox:
                return mixed_group.leave(mixed, request)
        group = self.registry.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            return [
                classic_leave.answer(identity, ErrorCode.UNKNOWN_MEMBER_ID) for identity in request.members
            ]
        with self.outbox:
            answers = classic_leave.leave(self.rebalance, group, request)
            self.forget_if_unused(group)
        return answers

    def group_of_member(self, group_id: str) -> ClassicGroup:
        """The group that a request names as its own."""
        check_group_id(group_id)
        group = self.registry.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    def seen(self, group: Group, member_id: str) -> None:
        """Prolong a member's session: an offset commit counts as a heartbeat."""
        if isinstance(group, ClassicGroup) and (member := group.members.get(member_id)) is not None:
            self.rebalance.arm_session(group, member)


def check_group_id(group_id: str) -> None:
    """Refuse an empty group id: only committed offsets may have one.

    Raises:
        ApiError: INVALID_GROUP_ID.
    """
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
