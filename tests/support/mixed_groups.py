"""Members of the classic protocol together with those of the consumer protocol, without a broker."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.group import classic_protocol
from odradek.group.classic_join import Joiner
from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_subscription import VERSION
from odradek.group.embedded_protocol import assignment_of, partition_ids, subscription_of
from odradek.wire.codec import encode
from odradek.wire.messages import consumer_protocol
from odradek.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity, MemberResponse
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from support.classic_groups import take
from support.consumer_groups import GROUP, ConsumerGroups

SESSION_MS = 10_000
REBALANCE_MS = 30_000


class MixedGroups(ConsumerGroups):
    """The same coordinator, with classic members too."""

    def metadata(self, topics: Iterable[str], owned: Iterable[TopicPartition] = ()) -> bytes:
        """The subscription metadata of a consumer."""
        by_name: dict[str, list[int]] = {}
        for topic_id, index in sorted(owned):
            by_name.setdefault(self.topics.topic_name(topic_id) or "", []).append(index)
        subscription = ConsumerProtocolSubscription(
            topics=list(topics),
            owned_partitions=[
                consumer_protocol.TopicPartition(topic=name, partitions=indexes)
                for name, indexes in by_name.items()
            ],
        )
        return VERSION.pack(1) + encode(subscription, 1)

    def assignment(self, **topics: list[int]) -> bytes:
        """The assignment computed by a leader."""
        assigned = [
            consumer_protocol.TopicPartition(topic=name, partitions=indexes)
            for name, indexes in topics.items()
        ]
        return VERSION.pack(1) + encode(ConsumerProtocolAssignment(assigned_partitions=assigned), 1)

    def classic_join(
        self,
        member_id: str,
        *topics: str,
        owned: Iterable[TopicPartition] = (),
        instance_id: str | None = None,
        names: Iterable[str] = ("range",),
        version: int = 5,
        protocol_type: str = "consumer",
        metadata: bytes | None = None,
    ) -> list[JoinGroupResponse]:
        """A list that will contain the answer."""
        said = self.metadata(topics, owned) if metadata is None else metadata
        request = JoinGroupRequest(
            group_id=GROUP,
            member_id=member_id,
            group_instance_id=instance_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=said) for name in names],
        )
        answers: list[JoinGroupResponse] = []
        take(
            classic_protocol.join(self.coordinator, request, Joiner("old", "/127.0.0.1", version)),
            answers.append,
        )
        return answers

    def classic_sync(
        self, member_id: str, generation: int, instance_id: str | None = None, **assignments: bytes
    ) -> list[SyncGroupResponse]:
        """A list that will contain the answer."""
        request = SyncGroupRequest(
            group_id=GROUP,
            member_id=member_id,
            group_instance_id=instance_id,
            generation_id=generation,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=data)
                for name, data in assignments.items()
            ],
        )
        answers: list[SyncGroupResponse] = []
        take(classic_protocol.sync(self.coordinator, request), answers.append)
        return answers

    def classic_beat(self, member_id: str, generation: int, instance_id: str | None = None) -> None:
        classic_protocol.heartbeat(
            self.coordinator,
            HeartbeatRequest(
                group_id=GROUP, member_id=member_id, generation_id=generation, group_instance_id=instance_id
            ),
        )

    def classic_leave(self, *members: MemberIdentity) -> list[MemberResponse]:
        return classic_protocol.leave(
            self.coordinator, LeaveGroupRequest(group_id=GROUP, members=list(members))
        )

    def classic_group(self, **assigned: dict[str, list[int]]) -> int:
        """A stable classic group of members with these assignments; return its generation.

        The members subscribe to the topics of their assignments.
        """
        parked = {name: self.classic_join("", *topics, version=3) for name, topics in assigned.items()}
        self.clock.advance(6_000)
        self.ids = {name: answers[0].member_id for name, answers in parked.items()}
        generation = next(iter(parked.values()))[0].generation_id
        shares = {self.ids[name]: self.assignment(**topics) for name, topics in assigned.items()}
        for member_id in reversed(self.ids.values()):
            self.classic_sync(member_id, generation, None, **shares)
        return generation

    def subscribed_topics(self, metadata: bytes) -> list[str]:
        """The topics of a member's subscription."""
        subscription = subscription_of(metadata)
        assert subscription is not None
        return subscription.topics

    def told(self, response: SyncGroupResponse) -> set[TopicPartition]:
        """The assignment in an answer."""
        assignment = assignment_of(response.assignment)
        assert assignment is not None
        return partition_ids(self.topics, assignment.assigned_partitions)
