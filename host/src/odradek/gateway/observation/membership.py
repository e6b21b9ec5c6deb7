"""Group memberships of a client, from the requests and responses of the group coordinator.

A pair answers in the order of the requests, so what a request said waits in a queue until its response comes.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from odradek.gateway.observation.apis import (
    CONSUMER_GROUP_HEARTBEAT,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)
from odradek.wire.codec import decode
from odradek.wire.errors import WireError
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from odradek.wire.messages.consumer_protocol import ConsumerProtocolAssignment
from odradek.wire.messages.sync_group import SyncGroupResponse

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
FLEXIBLE_SINCE: Final = {
    JOIN_GROUP: 6,
    HEARTBEAT: 4,
    LEAVE_GROUP: 4,
    SYNC_GROUP: 4,
    CONSUMER_GROUP_HEARTBEAT: 0,
}
"""The first flexible version of each."""
short = struct.Struct(">h").unpack_from
number = struct.Struct(">i").unpack_from


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
        except (IndexError, struct.error, ValueError):
            asked = None
        if api_key == JOIN_GROUP and self.joining_ns is None:
            self.joining_ns = now_ns
        self.asked.append(asked)

    def response(
        self, memberships: Memberships, error_code: int, head: bytes, at: int, size: int, now_ns: int
    ) -> None:
        """Apply the response to the oldest request."""
        asked = self.asked.popleft() if self.asked else None
        if asked is None:
            return
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
    try:
        answer = decode(ConsumerGroupHeartbeatResponse, asked.version, frame, 5)
    except WireError:
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
    try:
        flexible = version in SyncGroupResponse.FLEXIBLE
        answer = decode(SyncGroupResponse, version, frame, 5 if flexible else 4)
        if len(answer.assignment) < 6:
            return 0
        assignment = decode(ConsumerProtocolAssignment, 0, answer.assignment, 2)
    except WireError:
        return None
    return sum(len(topic.partitions) for topic in assignment.assigned_partitions)


class Texts:
    """Reads the strings at the beginning of a request."""

    __slots__ = ("at", "data", "flexible")

    def __init__(self, data: bytes, at: int, flexible: bool) -> None:
        (length,) = short(data, at + 8)
        at += 10 + max(length, 0)
        if flexible:
            if data[at]:
                raise ValueError("the request header has tags")
            at += 1
        self.data, self.at, self.flexible = data, at, flexible

    def text(self) -> str | None:
        """The next string."""
        if self.flexible:
            length = self.data[self.at] - 1
            self.at += 1
            if length > 0x7E:
                length = (length + 1 & 0x7F | self.data[self.at] << 7) - 1
                self.at += 1
        else:
            (length,) = short(self.data, self.at)
            self.at += 2
        if length < 0:
            return None
        found = self.data[self.at : self.at + length]
        if len(found) < length:
            raise IndexError
        self.at += length
        return found.decode()

    def int32(self) -> int:
        """The next number."""
        (found,) = number(self.data, self.at)
        self.at += 4
        return int(found)


def read_request(api_key: int, version: int, head: bytes, at: int, now_ns: int) -> Asked:
    """The subject of a request to the coordinator.

    Raises:
        IndexError, struct.error, ValueError: Its beginning is malformed, or longer than ``head``.
    """
    texts = Texts(head, at, version >= FLEXIBLE_SINCE[api_key])
    group_id = texts.text() or ""
    member_id = ""
    instance_id: str | None = None
    epoch, acknowledges = 0, False
    if api_key == JOIN_GROUP:
        texts.at += 8 if version >= 1 else 4
        member_id = texts.text() or ""
        instance_id = texts.text() if version >= 5 else None
    elif api_key == LEAVE_GROUP:
        # From version 3 on a list, in which a consumer names only itself.
        if version >= 3:
            texts.at += 1 if texts.flexible else 4
        member_id = texts.text() or ""
    elif api_key == CONSUMER_GROUP_HEARTBEAT:
        member_id = texts.text() or ""
        epoch = texts.int32()
        instance_id = texts.text()
        acknowledges = names_partitions(texts, version)
    else:  # Heartbeat and SyncGroup
        texts.int32()
        member_id = texts.text() or ""
        instance_id = texts.text() if version >= 3 else None
    return Asked(api_key, version, group_id, member_id, epoch, acknowledges, instance_id, now_ns)


def names_partitions(texts: Texts, version: int) -> bool:
    """Whether a ConsumerGroupHeartbeat whose instance id was read names the member's partitions."""
    texts.text()  # rack
    texts.int32()  # rebalance time-out
    topics = texts.data[texts.at]
    texts.at += 1
    for _ in range(max(topics - 1, 0)):
        texts.text()
    if version >= 1:
        texts.text()  # pattern
    texts.text()  # assignor
    return texts.data[texts.at] != 0
