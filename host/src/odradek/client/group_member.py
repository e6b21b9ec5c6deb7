"""A member of a consumer group: joins, keeps up its membership, and commits offsets.

It speaks the classic protocol with Kafka's assignor ``range``, which every broker supports. All methods
block, and are called on one thread.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from odradek.client.cluster import Cluster
from odradek.client.coordinators import Coordinated
from odradek.client.errors import ClientError, RequestFailed, check
from odradek.client.leaders import partition_text
from odradek.wire.codec import decode, encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from odradek.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

CONSUMER: Final = "consumer"
RANGE: Final = "range"
VERSION: Final = 0
"""Of the subscription and the assignment, which a version precedes."""
PREFIX: Final = struct.Struct(">h")
NAMES_VERSION: Final = 9
"""The last version of OffsetCommit that identifies topics by name."""
NOT_A_MEMBER: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
)
NO_GENERATION: Final = -1
PATIENCE_S: Final = 10.0
"""Time for the answer of JoinGroup to arrive after the group's own limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTimes:
    """The times of a member, by their names in Kafka's consumer."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 30_000
    """How long a rebalance waits for a member."""


class ClassicMember:
    """One member of a group of the classic protocol.

    Args:
        cluster: The brokers.
        group_id: The group.
        times: The times of the member.
        protocol_type: What the group is for.
        protocol: The name of the only protocol.
        metadata: What the leader learns about this member.
    """

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        times: GroupTimes,
        protocol_type: str,
        protocol: str,
        metadata: bytes = b"",
    ) -> None:
        self.group_id = group_id
        self.times = times
        self.protocol_type = protocol_type
        self.protocol = protocol
        self.metadata = metadata
        self.coordinator = Coordinated(cluster, group_id)
        self.member_id = ""
        self.generation = NO_GENERATION
        self.is_leader = False

    def join_as(self, shares_of: Callable[[Iterable[JoinGroupResponseMember]], Mapping[str, bytes]]) -> bytes:
        """Join the group, or take part in its rebalance; return what the leader assigned to this member.

        Args:
            shares_of: The assignment of each member, for the case that this member leads.

        Raises:
            ClientError: The group cannot be joined now. `member_id` is empty if a former membership is over.
        """
        self.generation = NO_GENERATION
        try:
            joined = self.joined()
            self.member_id, self.generation = joined.member_id, joined.generation_id
            is_leader = joined.leader == joined.member_id
            found = self.synchronized(shares_of(joined.members) if is_leader else {})
        except RequestFailed as error:
            if error.code in NOT_A_MEMBER:
                self.forget()
            raise
        self.is_leader = is_leader
        return found

    def joined(self) -> JoinGroupResponse:
        """The response to JoinGroup. A broker may first name the member id that it wants."""
        response = self.send_join()
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            response = self.send_join()
        check(response.error_code, subject=self.group_id)
        return response

    def send_join(self) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.times.session_timeout_ms,
            rebalance_timeout_ms=self.times.rebalance_timeout_ms,
            member_id=self.member_id,
            protocol_type=self.protocol_type,
            protocols=[JoinGroupRequestProtocol(name=self.protocol, metadata=self.metadata)],
        )
        response: JoinGroupResponse = self.coordinator.send(
            request, self.times.rebalance_timeout_ms / 1000 + PATIENCE_S
        )
        return response

    def synchronized(self, shares: Mapping[str, bytes]) -> bytes:
        """What the leader assigned to this member."""
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=share)
                for member, share in shares.items()
            ],
        )
        response: SyncGroupResponse = self.coordinator.send(
            request, self.times.rebalance_timeout_ms / 1000 + PATIENCE_S
        )
        check(response.error_code, subject=self.group_id)
        return response.assignment

    def heartbeat(self) -> None:
        """Stay a member.

        Raises:
            RequestFailed: REBALANCE_IN_PROGRESS: join again. One of `NOT_A_MEMBER`: the partitions are lost.
            ClientError: The coordinator cannot be asked now.
        """
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id
        )
        response: HeartbeatResponse = self.coordinator.send(request)
        check(response.error_code, subject=self.group_id)

    def leave(self) -> None:
        """Leave the group, so that others take over at once.

        Raises:
            ClientError: The coordinator cannot be asked; the session ends by itself.
        """
        if self.member_id:
            identity = MemberIdentity(member_id=self.member_id)
            request = LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id, members=[identity])
            self.forget()
            self.coordinator.send(request)

    def forget(self) -> None:
        """Begin again without a membership."""
        self.member_id, self.generation, self.is_leader = "", NO_GENERATION, False


class GroupMember(ClassicMember):
    """One member of a group that reads one topic.

    Args:
        cluster: The brokers.
        group_id: The group.
        topic: The topic.
        times: The times of the member.
    """

    def __init__(self, cluster: Cluster, group_id: str, topic: str, times: GroupTimes) -> None:
        subscription = prefixed(ConsumerProtocolSubscription(topics=[topic]))
        super().__init__(cluster, group_id, times, CONSUMER, RANGE, subscription)
        self.topic = topic

    def join(self, partitions: int) -> frozenset[int]:
        """Join the group, or take part in its rebalance; return the assigned partitions.

        Args:
            partitions: The number of partitions of the topic, for the case that this member assigns them.

        Raises:
            ClientError: The group cannot be joined now. `member_id` is empty if a former membership is over.
        """
        assignment = self.join_as(lambda members: assignments(self.topic, members, partitions))
        if not assignment:
            return frozenset()
        try:
            found = decode(ConsumerProtocolAssignment, VERSION, assignment, PREFIX.size)
        except WireError as error:
            raise ClientError(f"{self.group_id}: unreadable assignment: {error}") from error
        return frozenset(
            index
            for each in found.assigned_partitions
            if each.topic == self.topic
            for index in each.partitions
        )

    def commit(self, positions: Mapping[int, int]) -> None:
        """Commit offsets, as a member.

        Raises:
            ClientError: They are not committed; see `heartbeat`.
        """
        rows = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            for index, offset in positions.items()
        ]
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=self.topic, partitions=rows)],
        )
        response: OffsetCommitResponse = self.coordinator.send(request, most_version=NAMES_VERSION)
        for topic in response.topics:
            for row in topic.partitions:
                check(
                    row.error_code,
                    subject=f"{self.group_id}: {partition_text((topic.name, row.partition_index))}",
                )


def prefixed(message: ConsumerProtocolSubscription | ConsumerProtocolAssignment) -> bytes:
    """A message of the consumer protocol, after its version."""
    return PREFIX.pack(VERSION) + encode(message, VERSION)


def assignments(topic: str, members: Iterable[JoinGroupResponseMember], partitions: int) -> dict[str, bytes]:
    """The share of each member, as Kafka's RangeAssignor: consecutive partitions, the first members get one
    more.
    """
    everyone = list(members)
    readers = sorted(each.member_id for each in everyone if topic in topics_of(each.metadata))
    shares: dict[str, list[int]] = {each.member_id: [] for each in everyone}
    start = 0
    for place, member in enumerate(readers):
        size = partitions // len(readers) + (place < partitions % len(readers))
        shares[member] = list(range(start, start + size))
        start += size
    return {
        member: prefixed(
            ConsumerProtocolAssignment(
                assigned_partitions=[TopicPartition(topic=topic, partitions=share)] if share else []
            )
        )
        for member, share in shares.items()
    }


def topics_of(metadata: bytes) -> list[str]:
    """The topics that a member subscribes to; none if its metadata is unreadable."""
    try:
        found = decode(ConsumerProtocolSubscription, VERSION, metadata, PREFIX.size)
    except WireError:
        return []
    return list(found.topics)
