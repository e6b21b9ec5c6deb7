"""Group memberships of a client, from the requests and responses of the group coordinator.

A pair answers in the order of the requests, so what a request said waits in a queue until its response comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from odradek.gateway.observation.apis import (
    CONSUMER_GROUP_HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)
from odradek.gateway.observation.request_beginning import beginning, body_at
from odradek.gateway.pair_failure import PairFailure
from odradek.gateway.whole_requests import response_body
from odradek.telemetry import group_incidents
from odradek.wire.codec import decode
from odradek.wire.errors import WireError
from odradek.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.wire.messages.consumer_protocol import ConsumerProtocolAssignment
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.join_group import JoinGroupRequest
from odradek.wire.messages.leave_group import LeaveGroupRequest
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

NONE: Final = 0
UNKNOWN_MEMBER_ID: Final = 25
REBALANCE_IN_PROGRESS: Final = 27
FENCED_INSTANCE_ID: Final = 82
FENCED_MEMBER_EPOCH: Final = 110
EXPULSIONS: Final = frozenset({UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH})
"""Errors that tell a member that it has lost its partitions."""
NO_MEMBERSHIP_AFTER_MS: Final = 120_000
"""A member without any request for this long has left without a word: session time-outs are shorter."""
MAX_MEMBERS: Final = 1_000
"""Bound of the members of one client. Further members are not counted."""
REQUESTS: Final[Mapping[int, type[Any]]] = {
    each.API_KEY: each
    for each in (
        JoinGroupRequest,
        HeartbeatRequest,
        LeaveGroupRequest,
        SyncGroupRequest,
        ConsumerGroupHeartbeatRequest,
    )
}
"""By API key."""
READS: Final = ("group_id", "member_id", "group_instance_id", "instance_id", "member_epoch")
ASSIGNMENT: Final = "topic_partitions"
"""The partitions of a member in ConsumerGroupHeartbeat, null unless it names them."""


@dataclass(slots=True)
class Member:
    """One member of one group."""

    group_id: str
    member_id: str
    instance_id: str | None = None
    partitions: int = 0
    seen_ms: int = 0
    """When its last response came, on the monotonic clock."""
    rebalance_ns: int | None = None
    """When its current rebalance began, on the monotonic clock."""


@dataclass(slots=True)
class Asked:
    """The subject of the response to a request."""

    api_key: int
    version: int
    group_id: str
    member_id: str
    epoch: int
    """Member epoch of a ConsumerGroupHeartbeat."""
    acknowledges: bool
    """The ConsumerGroupHeartbeat names the member's partitions."""
    instance_id: str | None
    asked_ns: int
    reason: str | None = None
    """Of a JoinGroup or LeaveGroup."""

    @property
    def told(self) -> group_incidents.Asked:
        """The request, for the incidents of the client."""
        return group_incidents.Asked(
            api_key=self.api_key,
            group_id=self.group_id,
            member_id=self.member_id,
            epoch=self.epoch if self.api_key == CONSUMER_GROUP_HEARTBEAT else 0,
            reason=self.reason,
        )


@dataclass(slots=True)
class Rebalances:
    """Rebalances that ended in one window."""

    count: int = 0
    total_ns: int = 0
    max_ns: int = 0

    def add(self, took_ns: int) -> None:
        """Count a rebalance."""
        self.count += 1
        self.total_ns += took_ns
        self.max_ns = max(self.max_ns, took_ns)


@dataclass(slots=True)
class Memberships:
    """All memberships of a client."""

    members: dict[tuple[str, str], Member] = field(default_factory=dict)
    """By group id and member id."""
    rebalances: Rebalances = field(default_factory=Rebalances)
    has_joined: bool = False
    """The client has been a member of a group."""

    @property
    def assigned_partitions(self) -> int:
        """Partitions of all members."""
        return sum(member.partitions for member in self.members.values())

    def member(self, group_id: str, member_id: str, instance_id: str | None, now_ms: int) -> Member:
        """A member, known or new."""
        member = self.members.get((group_id, member_id))
        if member is None:
            member = Member(group_id, member_id)
            self.has_joined = True
            if len(self.members) < MAX_MEMBERS:
                self.members[group_id, member_id] = member
        member.instance_id = instance_id or member.instance_id
        member.seen_ms = now_ms
        return member

    def ended(self, member: Member, now_ns: int) -> None:
        """The member's rebalance has ended, if it had one."""
        if member.rebalance_ns is not None:
            self.rebalances.add(now_ns - member.rebalance_ns)
            member.rebalance_ns = None

    def forget_silent(self, now_ms: int) -> None:
        """Forget members that left without a word."""
        silent = [
            key for key, member in self.members.items() if now_ms - member.seen_ms > NO_MEMBERSHIP_AFTER_MS
        ]
        for key in silent:
            del self.members[key]


class Coordination:
    """The requests to the coordinator that one pair has sent and that have no response yet."""

    __slots__ = ("asked", "joining_ns")

    def __init__(self) -> None:
        self.asked: deque[Asked | None] = deque()
        self.joining_ns: int | None = None
        """When the rebalance began that the pair's member is in."""

    def request(self, api_key: int, version: int, head: bytes, at: int, now_ns: int) -> None:
        """Remember what a request asks for."""
        try:
            asked = read_request(api_key, version, head, at, now_ns)
        except (WireError, PairFailure, IndexError, ValueError):
            asked = None
        if api_key == JOIN_GROUP and self.joining_ns is None:
            self.joining_ns = now_ns
        self.asked.append(asked)

    def response(
        self, memberships: Memberships, error_code: int, head: bytes, at: int, size: int, now_ns: int
    ) -> Asked | None:
        """Apply the response to the oldest request, which is returned if it could be read."""
        asked = self.asked.popleft() if self.asked else None
        if asked is not None:
            self.apply(memberships, asked, error_code, head, at, size, now_ns)
        return asked

    def apply(
        self,
        memberships: Memberships,
        asked: Asked,
        error_code: int,
        head: bytes,
        at: int,
        size: int,
        now_ns: int,
    ) -> None:
        """Apply the response to a request."""
        if asked.api_key == CONSUMER_GROUP_HEARTBEAT:
            heartbeat_answered(memberships, asked, error_code, head[at : at + size], now_ns)
        elif asked.api_key == SYNC_GROUP:
            self.synced(memberships, asked, error_code, head[at : at + size], now_ns)
        elif asked.api_key == LEAVE_GROUP:
            if error_code == NONE:
                memberships.members.pop((asked.group_id, asked.member_id), None)
            self.joining_ns = None
        elif asked.member_id:
            self.classic(memberships, asked, error_code, now_ns)

    def left(self, memberships: Memberships) -> None:
        """The connection is closed: a client that wants to leave has left, answered or not."""
        for asked in self.asked:
            if asked is not None and (asked.api_key == LEAVE_GROUP or asked.epoch < 0):
                memberships.members.pop((asked.group_id, asked.member_id), None)

    def classic(self, memberships: Memberships, asked: Asked, error_code: int, now_ns: int) -> None:
        """A response to Heartbeat or to JoinGroup with a member id."""
        member = memberships.members.get((asked.group_id, asked.member_id))
        if member is None:
            return
        member.seen_ms = now_ns // 1_000_000
        if error_code in EXPULSIONS:
            del memberships.members[asked.group_id, asked.member_id]
        elif error_code == REBALANCE_IN_PROGRESS and self.joining_ns is None:
            self.joining_ns = now_ns

    def synced(
        self, memberships: Memberships, asked: Asked, error_code: int, frame: bytes, now_ns: int
    ) -> None:
        """A response to SyncGroup: it has the assignment and ends the rebalance."""
        if error_code in EXPULSIONS:
            memberships.members.pop((asked.group_id, asked.member_id), None)
        if error_code != NONE:
            return
        member = memberships.member(asked.group_id, asked.member_id, asked.instance_id, now_ns // 1_000_000)
        partitions = classic_partitions(asked.version, frame)
        if partitions is not None:
            member.partitions = partitions
        if self.joining_ns is not None:
            memberships.rebalances.add(now_ns - self.joining_ns)
            self.joining_ns = None


def heartbeat_answered(
    memberships: Memberships, asked: Asked, error_code: int, frame: bytes, now_ns: int
) -> None:
    """A response to ConsumerGroupHeartbeat."""
    key = (asked.group_id, asked.member_id)
    if asked.epoch < 0 or error_code in EXPULSIONS:
        memberships.members.pop(key, None)
        return
    if error_code != NONE:
        return
    answer = response_body(ConsumerGroupHeartbeatResponse, asked.version, frame)
    if answer is None:
        return
    member_id = asked.member_id or answer.member_id or ""
    member = memberships.member(asked.group_id, member_id, asked.instance_id, now_ns // 1_000_000)
    if asked.acknowledges and member.rebalance_ns is not None and asked.asked_ns >= member.rebalance_ns:
        memberships.ended(member, asked.asked_ns)
    if answer.assignment is not None:
        member.partitions = sum(len(topic.partitions) for topic in answer.assignment.topic_partitions)
        if member.rebalance_ns is None:
            member.rebalance_ns = now_ns


def classic_partitions(version: int, frame: bytes) -> int | None:
    """The number of partitions in a SyncGroup response; None if it has no assignment of a consumer."""
    answer = response_body(SyncGroupResponse, version, frame)
    if answer is None:
        return None
    if len(answer.assignment) < 6:
        return 0
    try:
        assignment = decode(ConsumerProtocolAssignment, 0, answer.assignment, 2)
    except WireError:
        return None
    return sum(len(topic.partitions) for topic in assignment.assigned_partitions)


def read_request(api_key: int, version: int, head: bytes, at: int, now_ns: int) -> Asked:
    """The subject of a request to the coordinator.

    Raises:
        WireError, PairFailure, IndexError, ValueError: Its beginning is malformed, or longer than ``head``.
    """
    request = REQUESTS[api_key]
    if api_key == LEAVE_GROUP:
        leave = decode(LeaveGroupRequest, version, head, body_at(request, version, head, at))
        # From version 3 on a list, in which a consumer names only itself.
        member_id = leave.members[0].member_id if leave.members else leave.member_id
        reason = leave.members[0].reason if leave.members else None
        return Asked(api_key, version, leave.group_id, member_id, 0, False, None, now_ns, reason)
    end, found = beginning(request, version, head, at, READS, before=ASSIGNMENT)
    group_id, member_id, classic_instance, instance_id, epoch = found
    acknowledges = api_key == CONSUMER_GROUP_HEARTBEAT and head[end] != 0
    instance_id = instance_id or classic_instance or None
    asked = Asked(api_key, version, group_id, member_id, epoch or 0, acknowledges, instance_id, now_ns)
    if api_key == JOIN_GROUP and member_id:
        asked.reason = join_reason(version, head, body_at(request, version, head, at))
    return asked


def join_reason(version: int, head: bytes, at: int) -> str | None:
    """The reason of a JoinGroup; None if it has none, or is not all there."""
    try:
        return decode(JoinGroupRequest, version, head, at).reason
    except WireError:
        return None
