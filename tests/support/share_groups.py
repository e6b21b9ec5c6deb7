"""Share groups without a broker: topics of the test, and members that it directs."""

from __future__ import annotations

from itertools import count

from odradek.group.consumer_heartbeat import Client
from odradek.group.group_config import GroupConfig
from odradek.group.group_coordinator import GroupCoordinator
from odradek.group.share_config import ShareGroupConfig
from odradek.group.share_group import ShareGroup
from odradek.group.share_protocol import answer_heartbeat
from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.testing.clock import MockClock
from odradek.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from support.consumer_groups import MadeUpTopics

GROUP = "sharers"


class ShareGroups:
    """A coordinator on a mock clock."""

    def __init__(
        self, config: ShareGroupConfig | None = None, before: ShareGroups | None = None, **topics: int
    ) -> None:
        self.clock = MockClock()
        self.topics: MadeUpTopics = MadeUpTopics() if before is None else before.topics
        self.store: SqliteOffsetStore = SqliteOffsetStore(":memory:") if before is None else before.store
        for name, partitions in topics.items():
            self.topics.put(name, partitions)
        serial = count(100)
        self.coordinator = GroupCoordinator(
            config=GroupConfig(share=config or ShareGroupConfig()),
            clock=self.clock,
            timer=self.clock.timer,
            random_uuid=lambda: next(serial).to_bytes(16),
            store=self.store,
            topics=self.topics,
        )
        self.coordinator.start()

    @property
    def group(self) -> ShareGroup:
        group = self.coordinator.groups[GROUP]
        assert isinstance(group, ShareGroup)
        return group

    def send(self, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
        return answer_heartbeat(self.coordinator, request, Client("client", "/127.0.0.1"))

    def join(self, member_id: str, *topics: str) -> ShareGroupHeartbeatResponse:
        """A member's first heartbeat."""
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id=member_id, subscribed_topic_names=list(topics)
        )
        return self.send(request)

    def beat(
        self, member_id: str, epoch: int | None = None, *topics: str, after_ms: int = 0
    ) -> ShareGroupHeartbeatResponse:
        """A heartbeat; with the member's epoch if none is given."""
        self.clock.advance(after_ms)
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            member_epoch=self.group.members[member_id].member_epoch if epoch is None else epoch,
            subscribed_topic_names=list(topics) or None,
        )
        return self.send(request)

    def settle(self) -> dict[str, list[int]]:
        """Let all members have their newest targets; return the indexes that each has."""
        for _ in range(2):
            for member_id in self.group.members:
                self.beat(member_id, after_ms=1_000)
        return {
            member.member_id: sorted(index for _, index in member.assigned)
            for member in self.group.members.values()
        }


def assigned(response: ShareGroupHeartbeatResponse) -> dict[bytes, list[int]] | None:
    """The assignment in an answer; None if it is unchanged."""
    if response.assignment is None:
        return None
    return {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}
