"""The classic protocol over all groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Refusals are raised, answers are given to ``reply``, at once or later. Nothing of the metadata and
assignments that members exchange is understood here.
"""

from __future__ import annotations

from typing import Protocol

from odradek.clock import Clock, Timer
from odradek.group import classic_leave, classic_sync, mixed_group
from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_join import ClassicJoin, Joiner
from odradek.group.classic_member import JoinReply, SyncReply
from odradek.group.classic_rebalance import ClassicRebalance
from odradek.group.consumer_group import ConsumerGroup
from odradek.group.group import Group
from odradek.group.group_config import GroupConfig
from odradek.group.mixed_group import MixedJoin
from odradek.group.outbox import Outbox
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.join_group import JoinGroupRequest
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberResponse
from odradek.wire.messages.sync_group import SyncGroupRequest


class Registry(Protocol):
    """What the protocol needs of `GroupCoordinator`."""

    config: GroupConfig
    clock: Clock
    timer: Timer
    groups: dict[str, Group]

    def random_uuid(self) -> bytes:
        """16 random bytes."""

    def put(self, group: Group) -> None:
        """Put a group in the place of an empty one."""

    def classic_group_changed(self, group: ClassicGroup) -> None:
        """Store a group, or forget it if it was never used."""

    def check_not_owned(self, group_id: str) -> None:
        """Refuse to let somebody into a group of the host's own."""


class ClassicProtocol:
    """One per host."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.outbox = Outbox()
        self.rebalance = ClassicRebalance(
            registry.config, registry.clock, registry.timer, self.outbox, registry.classic_group_changed
        )

    def join(self, request: JoinGroupRequest, joiner: Joiner, reply: JoinReply) -> None:
        """Enter a group, or take part in its rebalance; a group that nobody knows is made.

        Raises:
            ApiError: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, or one of `ClassicJoin.run`.
        """
        check_group_id(request.group_id)
        self.registry.check_not_owned(request.group_id)
        config = self.registry.config
        if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
            raise ApiError(ErrorCode.INVALID_SESSION_TIMEOUT)
        mixed = self.mixed_group(request.group_id)
        if mixed is not None:
            with self.outbox:
                answer = MixedJoin(mixed, request, joiner, self.registry.random_uuid()).answer()
                self.outbox.put(reply, answer)
            return
        group = self.group_to_join(request)
        with self.outbox:
            try:
                ClassicJoin(self.rebalance, group, request, joiner, reply, self.registry.random_uuid()).run()
            finally:
                self.forget_if_unused(group)

    def group_to_join(self, request: JoinGroupRequest) -> ClassicGroup:
        """The group that is meant. An empty one of the other protocol becomes a classic one.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID: a member of a group that does not exist.
        """
        known = self.registry.groups.get(request.group_id)
        if isinstance(known, ClassicGroup):
            return known
        if request.member_id and known is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        group = ClassicGroup(request.group_id, generation=0 if known is None else known.generation)
        if known is None:
            self.registry.groups[request.group_id] = group
        else:
            self.registry.put(group)
        return group

    def mixed_group(self, group_id: str) -> ConsumerGroup | None:
        """A group of the consumer protocol with members: they may be of both."""
        group = self.registry.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) and not group.is_empty else None

    def forget_if_unused(self, group: ClassicGroup) -> None:
        """A refused join, or an id that is not used, leaves no group behind."""
        if group.is_unused:
            self.registry.classic_group_changed(group)

    def sync(self, request: SyncGroupRequest, reply: SyncReply) -> None:
        """Fetch the assignment; the leader brings it.

        Raises:
            ApiError: See `classic_sync.sync`, and INVALID_GROUP_ID.
        """
        mixed = self.mixed_group(request.group_id)
        if mixed is not None:
            with self.outbox:
                self.outbox.put(reply, mixed_group.sync(mixed, request))
            return
        group = self.group_of_member(request.group_id)
        with self.outbox:
            classic_sync.sync(self.rebalance, group, request, reply)

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
        """Members go.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID: there is no such group; INVALID_GROUP_ID.
        """
        mixed = self.mixed_group(request.group_id)
        if mixed is not None:
            with self.outbox:
                return mixed_group.leave(mixed, request)
        group = self.group_of_member(request.group_id)
        with self.outbox:
            answers = classic_leave.leave(self.rebalance, group, request)
            self.forget_if_unused(group)
        return answers

    def group_of_member(self, group_id: str) -> ClassicGroup:
        """The group that somebody claims to be in."""
        check_group_id(group_id)
        group = self.registry.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    def seen(self, group: Group, member_id: str) -> None:
        """A commit is a sign of life, too."""
        if isinstance(group, ClassicGroup) and (member := group.members.get(member_id)) is not None:
            self.rebalance.arm_session(group, member)


def check_group_id(group_id: str) -> None:
    """Members need a group with a name; only committed offsets may go without one.

    Raises:
        ApiError: INVALID_GROUP_ID.
    """
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
