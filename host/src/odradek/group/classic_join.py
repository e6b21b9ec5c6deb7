"""JoinGroup of the classic protocol: which members a group admits, and how they enter.

After the join half of GroupMetadataManager.java (Kafka 4.3); the order of the checks is Kafka's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_member import ClassicMember, Protocols
from odradek.group.classic_rebalance import ClassicRebalance
from odradek.group.classic_state import ClassicState
from odradek.group.group_config import (
    MAX_MEMBER_METADATA_BYTES,
    MAX_PENDING_MEMBERS,
    NEW_MEMBER_JOIN_TIMEOUT_MS,
)
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

Answer = JoinGroupResponse | Deferred[JoinGroupResponse]
REQUIRES_MEMBER_ID = 4  # JoinGroupRequest.requiresKnownMemberId
SKIPS_ASSIGNMENT = 9  # JoinGroupRequest.supportsSkippingAssignment


@dataclass(frozen=True, slots=True)
class Joiner:
    """The client that joins."""

    client_id: str
    client_host: str
    api_version: int


@dataclass(slots=True, eq=False)
class Join:
    """One JoinGroup."""

    request: JoinGroupRequest
    joiner: Joiner
    random_uuid: bytes

    @property
    def protocols(self) -> Protocols:
        return tuple((protocol.name, protocol.metadata) for protocol in self.request.protocols)

    @property
    def rebalance_timeout_ms(self) -> int:
        """In ms. v0 has none: the session timeout is used."""
        if self.joiner.api_version == 0:
            return self.request.session_timeout_ms
        return max(self.request.rebalance_timeout_ms, 0)

    def check_size(self) -> None:
        """Check that the member does not send too much metadata.

        Raises:
            ApiError: INVALID_REQUEST.
        """
        if sum(len(name) + len(metadata) for name, metadata in self.protocols) > MAX_MEMBER_METADATA_BYTES:
            raise ApiError(ErrorCode.INVALID_REQUEST)

    def new_member_id(self) -> str:
        """An id for a member without one."""
        prefix = self.request.group_instance_id or self.joiner.client_id
        return f"{prefix}-{UUID(bytes=self.random_uuid)}"


@dataclass(slots=True, eq=False)
class ClassicJoin(Join):
    """One JoinGroup of a group of the classic protocol."""

    rebalance: ClassicRebalance
    group: ClassicGroup
    parked: Deferred[JoinGroupResponse] = field(default_factory=Deferred)
    """The response, if it has to wait for the generation."""

    def run(self) -> Answer:
        """Answer now, or park the request until the next generation begins.

        Raises:
            ApiError: GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID,
                FENCED_INSTANCE_ID, or INVALID_REQUEST: there is too much metadata, or a pending member became
                a static one.
        """
        self.check_size()
        if not self.has_room():
            return self.refuse_full()
        if not self.group.supports(self.request.protocol_type, self.protocols):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if self.request.member_id:
            return self.rejoin()
        if self.request.group_instance_id is not None:
            return self.join_static()
        if self.joiner.api_version >= REQUIRES_MEMBER_ID:
            return self.give_out_id()
        return self.enter(self.new_member_id())

    # -- admission

    def has_room(self) -> bool:
        """Whether ``group.max.size`` admits this member. In a rebalance the first members to join count."""
        limit = self.rebalance.config.max_size
        known = self.group.members.get(self.request.member_id)
        if self.group.state is ClassicState.EMPTY:
            return True
        if self.group.state is ClassicState.PREPARING_REBALANCE:
            return (known is not None and known.join is not None) or self.group.joins_parked < limit
        return known is not None or len(self.group.members) < limit

    def refuse_full(self) -> JoinGroupResponse:
        """Refuse because the group is full. A member that comes back too late loses its place."""
        member = self.group.members.get(self.request.member_id)
        if member is not None:
            self.rebalance.remove(self.group, member)
        self.group.forget_pending(self.request.member_id)
        return JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED)

    # -- a new member

    def give_out_id(self) -> JoinGroupResponse:
        """Give the client an id to join with, so that a join that it gives up leaves no ghost member
        (KIP-394).
        """
        if len(self.group.pending_members) >= MAX_PENDING_MEMBERS:
            return self.refuse_full()
        member_id = self.new_member_id()
        self.rebalance.arm_pending(self.group, member_id, self.request.session_timeout_ms)
        return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)

    def enter(self, member_id: str) -> Answer:
        """Add a new member, parked until the next generation."""
        member = ClassicMember(
            member_id=member_id,
            group_instance_id=self.request.group_instance_id,
            client_id=self.joiner.client_id,
            client_host=self.joiner.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.request.session_timeout_ms,
            protocols=self.protocols,
            is_new=True,
        )
        self.group.new_member_added = True
        self.group.add(member, self.request.protocol_type)
        self.group.park_join(member, self.parked)
        self.rebalance.arm_session(self.group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self.rebalance.rebalance_or_complete_join(self.group)
        return self.parked

    # -- static members

    def join_static(self) -> Answer:
        """Join with an instance id only: as a new member, or as the replacement of a known one (KIP-345)."""
        instance_id = self.request.group_instance_id or ""
        if instance_id in self.group.static_members:
            return self.replace_static(instance_id)
        return self.enter(self.new_member_id())

    def replace_static(self, instance_id: str) -> Answer:
        """Take over the place of a static member. Its former client is fenced, now and later."""
        group = self.group
        leader_before = group.leader_id
        member = group.members[group.static_members[instance_id]]
        self.fence(member)
        group.replace_static(instance_id, self.new_member_id())
        self.rebalance.arm_session(group, member)
        self.update(member)
        if group.state is ClassicState.STABLE and group.protocol_name == group.selected_protocol():
            return self.answer_without_rebalance(member, leader_before)
        self.rebalance.rebalance_or_complete_join(group)
        return self.parked

    def fence(self, member: ClassicMember) -> None:
        """Answer the parked requests of the former client."""
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self.rebalance.outbox.put(
            self.group.take_join(member), JoinGroupResponse(error_code=fenced, member_id=member.member_id)
        )
        self.rebalance.fence_sync(member)

    def answer_without_rebalance(self, member: ClassicMember, leader_before: str | None) -> JoinGroupResponse:
        """Keep the assignment. From v9 on, the answer says that the leader need not assign again (KIP-814).
        An older leader must not learn that it leads, because it would assign again.
        """
        self.group.take_join(member)
        response = self.rebalance.generation(self.group, member)
        if self.joiner.api_version >= SKIPS_ASSIGNMENT:
            response.skip_assignment = self.group.leader_id == member.member_id
        else:
            response.leader = leader_before or ""
            response.members = []
        return response

    # -- a known member

    def rejoin(self) -> Answer:
        """Join with a member id that the host gave out."""
        group, member_id = self.group, self.request.member_id
        if member_id in group.pending_members:
            if self.request.group_instance_id is not None:
                raise ApiError(ErrorCode.INVALID_REQUEST)
            return self.enter(member_id)
        group.check_member(member_id, self.request.group_instance_id)
        member = group.members[member_id]
        if group.state is ClassicState.PREPARING_REBALANCE or self.is_reason_to_rebalance(member):
            self.update(member)
            self.rebalance.rebalance_or_complete_join(group)
            return self.parked
        return self.rebalance.generation(group, member)

    def is_reason_to_rebalance(self, member: ClassicMember) -> bool:
        """Whether a member's join starts a rebalance: it has new metadata; or it leads, and may see changes
        that its metadata does not show, such as new partitions. Any other member has missed an answer.
        """
        leads = self.group.state is ClassicState.STABLE and self.group.leader_id == member.member_id
        return leads or member.protocols != self.protocols

    def update(self, member: ClassicMember) -> None:
        """Take over the client's metadata and park its join. A join that was parked before is given up."""
        self.group.update_protocols(member, self.protocols)
        member.rebalance_timeout_ms = self.rebalance_timeout_ms
        member.session_timeout_ms = self.request.session_timeout_ms
        replaced = self.group.park_join(member, self.parked)
        given_up = JoinGroupResponse(
            error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=self.request.member_id
        )
        self.rebalance.outbox.put(replaced, given_up)
