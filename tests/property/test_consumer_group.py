"""Random runs of a group of the consumer protocol: joins, heartbeats, lost requests and answers, leaves,
silence, topics that are created, grow and are deleted. No partition ever has two owners; an undisturbed group
becomes stable.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.group.committed_offset import TopicPartition
from odradek.group.group_config import GroupConfig
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from support.consumer_groups import GROUP, assigned, by_topic
from support.examples import examples
from support.member_sizes import check_totals
from support.mixed_groups import MixedGroups

TOPICS = ("a", "b", "c")
SUBSCRIPTIONS = (("a",), ("a", "b"), ("b", "c"), ("a", "b", "c"), ())
REJOIN = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
REBALANCE_TIMEOUT_MS = 30_000


@dataclass(slots=True)
class Consumer:
    """A client that follows the protocol, as Kafka's consumers do."""

    member_id: str
    instance_id: str | None
    topics: tuple[str, ...]
    epoch: int = 0
    owned: set[TopicPartition] = field(default_factory=set)
    says_all: bool = True
    """The last answer was lost: the next request has all fields."""
    alive: bool = True
    heard_ms: int = 0

    def request(self) -> ConsumerGroupHeartbeatRequest:
        joins = self.epoch == 0
        everything = joins or self.says_all
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if everything else -1,
            subscribed_topic_names=list(self.topics) if everything else None,
            topic_partitions=[] if joins else by_topic(self.owned),
        )

    def answered(self, response: ConsumerGroupHeartbeatResponse) -> None:
        self.epoch, self.says_all = response.member_epoch, False
        told = assigned(response)
        if told is not None:
            self.owned = told

    def fenced(self) -> None:
        self.epoch, self.owned, self.says_all = 0, set(), True


class LifeOfAGroup:
    """A group, its consumers, and a source of randomness."""

    def __init__(self, seed: int, assignor: str, interval_ms: int) -> None:
        config = GroupConfig(consumer_assignors=(assignor,), consumer_assignment_interval_ms=interval_ms)
        self.chance = Random(seed)
        self.groups = MixedGroups(config, a=3, b=5)
        self.consumers: list[Consumer] = []
        self.born = 0
        self.steps = (
            [self.beat] * 24
            + [self.appear] * 3
            + [self.leave, self.change_subscription, self.change_topic]
            + [self.wait_a_little] * 4
        )

    def live(self, steps: int) -> None:
        """Take this many random steps."""
        self.appear()
        for _ in range(steps):
            self.chance.choice(self.steps)()
            self.check()

    def check(self) -> None:
        check_totals(self.groups.coordinator)
        self.no_partition_has_two_owners()
        self.holders_match_the_members()

    def chosen(self) -> Consumer | None:
        alive = [consumer for consumer in self.consumers if consumer.alive]
        return self.chance.choice(alive) if alive else None

    def appear(self) -> None:
        self.born += 1
        instance_id = f"instance-{self.born}" if self.chance.random() < 0.5 else None
        topics = self.chance.choice(SUBSCRIPTIONS)
        self.consumers.append(Consumer(f"member-{self.born}", instance_id, topics))

    def beat(self) -> None:
        consumer = self.chosen()
        if consumer is not None:
            self.send(consumer, self.chance.choice(("", "", "", "", "request", "answer")))

    def send(self, consumer: Consumer, lost: str = "") -> None:
        request = consumer.request()
        consumer.says_all = bool(lost)
        if lost == "request":
            return
        consumer.heard_ms = self.groups.clock.monotonic_ms()
        try:
            response = self.groups.send(request)
        except ApiError as error:
            if error.code not in REJOIN:
                raise
            consumer.fenced()
            return
        if not lost:
            consumer.answered(response)

    def change_subscription(self) -> None:
        consumer = self.chosen()
        if consumer is not None:
            consumer.topics, consumer.says_all = self.chance.choice(SUBSCRIPTIONS), True

    def leave(self) -> None:
        consumer = self.chosen()
        if consumer is None or consumer.epoch == 0:
            return
        consumer.alive = False
        consumer.owned = set()
        for_a_while = consumer.instance_id is not None and self.chance.random() < 0.7
        if self.chance.random() < 0.3:
            return  # its last request is lost: its session has to end
        try:
            self.groups.beat(consumer.member_id, -2 if for_a_while else -1, instance_id=consumer.instance_id)
        except ApiError as error:
            if error.code not in REJOIN:
                raise
        if for_a_while:
            self.born += 1
            self.consumers.append(Consumer(f"member-{self.born}", consumer.instance_id, consumer.topics))

    def wait_a_little(self) -> None:
        self.wait(self.chance.choice((1, 1_000, 1_000, 5_000, 5_000, 31_000, 46_000)))

    def wait(self, elapsed_ms: int) -> None:
        self.groups.clock.advance(elapsed_ms)
        # a consumer that was silent for too long finds out by itself that it was removed
        for consumer in self.consumers:
            if GROUP not in self.groups.coordinator.groups or not self.groups.group.members.get(
                consumer.member_id
            ):
                consumer.fenced()

    def change_topic(self) -> None:
        name, more = self.chance.choice(TOPICS), self.chance.randrange(4)
        if more:
            self.groups.topics.put(name, self.groups.topics.partition_count(name) + more)
        elif name in self.groups.topics.ids:
            self.groups.topics.delete(name)
        self.groups.topics_changed()

    def no_partition_has_two_owners(self) -> None:
        owners = Counter(partition for consumer in self.consumers for partition in consumer.owned)
        assert not [partition for partition, number in owners.items() if number > 1]

    def holders_match_the_members(self) -> None:
        if GROUP not in self.groups.coordinator.groups:
            return
        group = self.groups.group
        held = {
            partition: member.member_id
            for member in group.members.values()
            for partition in (*member.assigned, *member.pending_revocation)
        }
        assert held == group.holders
        assert sum(len(m.assigned) + len(m.pending_revocation) for m in group.members.values()) == len(held)
        assert group.target.epoch <= group.group_epoch
        assert set(group.static_members.values()) == {
            member.member_id for member in group.members.values() if member.instance_id is not None
        }

    def become_stable(self) -> None:
        """Let the group run without losses or new events."""
        for _ in range(40):
            self.wait(5_000)
            for consumer in self.consumers:
                if consumer.alive:
                    self.send(consumer)

    def wanted(self, alive: list[Consumer]) -> set[TopicPartition]:
        """All partitions of topics with a subscriber."""
        names = {name for consumer in alive for name in consumer.topics} & self.groups.topics.ids.keys()
        return {
            partition
            for name in names
            for partition in self.groups.owned(name, *range(self.groups.topics.partition_count(name)))
        }


@pytest.mark.parametrize("interval_ms", [0, 1_000])
@pytest.mark.parametrize("assignor", ["uniform", "range"])
@settings(max_examples=examples(40), derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_no_partition_has_two_owners_and_the_group_becomes_stable(
    assignor: str, interval_ms: int, seed: int
) -> None:
    life = LifeOfAGroup(seed, assignor, interval_ms)

    life.live(steps=150)
    life.become_stable()
    life.change_topic()
    life.become_stable()

    life.check()
    alive = [consumer for consumer in life.consumers if consumer.alive]
    assert not alive or life.groups.group.state_name == "Stable"
    assert set().union(*(consumer.owned for consumer in alive)) == life.wanted(alive)
