"""Groups of the consumer protocol without a broker: topics of the test, and members that it directs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_group import ConsumerGroup
from odradek.group.consumer_heartbeat import Client
from odradek.group.consumer_protocol import answer_heartbeat
from odradek.group.group_config import GroupConfig
from odradek.group.group_coordinator import GroupCoordinator
from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.testing.clock import MockClock
from odradek.waiting.step_runner import StepRunner
from odradek.waiting.steps import result_of
from odradek.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from support.ticking_clock import TickingClock

GROUP = "readers"
AT_ONCE = GroupConfig(consumer_assignment_interval_ms=0)
"""A new target may be computed at every heartbeat."""


@dataclass(slots=True)
class MadeUpTopics:
    """A `odradek.group.topic_view.TopicView`."""

    ids: dict[str, bytes] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    serial: count[int] = field(default_factory=lambda: count(1))

    def put(self, name: str, partitions: int) -> bytes:
        """Create a topic, or add partitions."""
        self.ids.setdefault(name, next(self.serial).to_bytes(16))
        self.partitions[name] = partitions
        return self.ids[name]

    def delete(self, name: str) -> None:
        del self.ids[name], self.partitions[name]

    def topic_id(self, name: str) -> bytes | None:
        return self.ids.get(name)

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name, known in self.ids.items() if known == topic_id), None)

    def partition_count(self, name: str) -> int:
        return self.partitions.get(name, 0)

    def matchable_names(self) -> Iterable[str]:
        return list(self.ids)


class ConsumerGroups:
    """A coordinator on a mock clock. With ``in_steps`` a turn of the clock ends after ten steps of work."""

    def __init__(self, config: GroupConfig = AT_ONCE, *, in_steps: bool = False, **topics: int) -> None:
        self.clock = TickingClock() if in_steps else MockClock()
        runner = StepRunner.of_requests(self.clock.timer, self.clock, 1)
        self.topics = MadeUpTopics()
        self.store = SqliteOffsetStore(":memory:")
        for name, partitions in topics.items():
            self.topics.put(name, partitions)
        serial = count(100)
        self.coordinator = GroupCoordinator(
            config=config,
            clock=self.clock,
            timer=self.clock.timer,
            random_uuid=lambda: next(serial).to_bytes(16),
            store=self.store,
            topics=self.topics,
            compute=partial(runner.answer, droppable=True) if in_steps else result_of,
        )

    @property
    def group(self) -> ConsumerGroup:
        group = self.coordinator.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def topics_changed(self) -> None:
        self.coordinator.topics_changed()

    def send(
        self, request: ConsumerGroupHeartbeatRequest, version: int = 1
    ) -> ConsumerGroupHeartbeatResponse:
        return answer_heartbeat(self.coordinator, request, version, Client("client", "/127.0.0.1"))

    def join(
        self,
        member_id: str,
        *topics: str,
        instance_id: str | None = None,
        regex: str | None = None,
        assignor: str | None = None,
        rebalance_timeout_ms: int = 60_000,
    ) -> ConsumerGroupHeartbeatResponse:
        """A member's first heartbeat."""
        return self.send(
            ConsumerGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=member_id,
                member_epoch=0,
                instance_id=instance_id,
                rebalance_timeout_ms=rebalance_timeout_ms,
                subscribed_topic_names=None if regex is not None and not topics else list(topics),
                subscribed_topic_regex=regex,
                server_assignor=assignor,
                topic_partitions=[],
            )
        )

    def beat(
        self,
        member_id: str,
        member_epoch: int,
        owned: Iterable[TopicPartition] | None = None,
        topics: Iterable[str] | None = None,
        instance_id: str | None = None,
    ) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat without the unchanged fields."""
        return self.send(
            ConsumerGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=member_id,
                member_epoch=member_epoch,
                instance_id=instance_id,
                subscribed_topic_names=None if topics is None else list(topics),
                topic_partitions=None if owned is None else by_topic(owned),
            )
        )

    def owned(self, topic: str, *partitions: int) -> set[TopicPartition]:
        """Partitions of a topic by its name."""
        return {(self.topics.ids[topic], partition) for partition in partitions}


def by_topic(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    """The partitions in the form of a request."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        topics.setdefault(topic_id, []).append(index)
    return [TopicPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in topics.items()]


def assigned(response: ConsumerGroupHeartbeatResponse) -> set[TopicPartition] | None:
    """The assignment in an answer; None if it is unchanged."""
    if response.assignment is None:
        return None
    return {
        (topic.topic_id, index)
        for topic in response.assignment.topic_partitions
        for index in topic.partitions
    }
