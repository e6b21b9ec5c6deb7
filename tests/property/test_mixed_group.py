"""Random runs of a group with members of both protocols, so that it is converted again and again.

Members of the classic protocol are eager: they revoke all partitions before they join again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.group.classic_group import ClassicGroup
from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_group import ConsumerGroup
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.leave_group import MemberIdentity
from property.test_consumer_group import SUBSCRIPTIONS, Consumer, LifeOfAGroup
from support.consumer_groups import GROUP
from support.examples import examples
from support.member_sizes import check_totals
from support.mixed_groups import MixedGroups

TOLD_TO_JOIN = (
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.MEMBER_ID_REQUIRED,
)


@dataclass(slots=True)
class ClassicConsumer:
    """A client that follows the classic protocol."""

    topics: tuple[str, ...]
    member_id: str = ""
    generation: int = -1
    owned: set[TopicPartition] = field(default_factory=set)
    phase: str = "join"
    waiting: list[Any] | None = None
    """Receives the answer of a waiting request."""
    shares: dict[str, bytes] = field(default_factory=dict)
    """The assignment that it computes as leader."""
    alive: bool = True

    def beat(self, groups: MixedGroups) -> None:
        """Take the next step."""
        if self.waiting is None:
            try:
                self.send(groups)
            except ApiError as error:
                self.refused(error.code)
        if self.waiting:
            answer, self.waiting = self.waiting[0], None
            if answer.error_code:
                self.member_id = getattr(answer, "member_id", "") or self.member_id
                self.refused(ErrorCode(answer.error_code))
            elif self.phase == "join":
                self.joined(groups, answer)
            else:
                self.owned, self.phase = groups.told(answer), "stable"

    def send(self, groups: MixedGroups) -> None:
        if self.phase == "join":
            self.owned = set()
            self.waiting = groups.classic_join(self.member_id, *self.topics)
        elif self.phase == "sync":
            self.waiting = groups.classic_sync(self.member_id, self.generation, None, **self.shares)
        else:
            groups.classic_beat(self.member_id, self.generation)

    def joined(self, groups: MixedGroups, answer: Any) -> None:
        self.generation, self.member_id, self.phase = answer.generation_id, answer.member_id, "sync"
        self.shares = {}
        takers: dict[str, list[str]] = {}
        for member in answer.members:
            for name in groups.subscribed_topics(member.metadata):
                takers.setdefault(name, []).append(member.member_id)
        parts: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in answer.members}
        for name, members in takers.items():
            for index in range(groups.topics.partition_count(name)):
                parts[members[index % len(members)]].setdefault(name, []).append(index)
        if answer.leader == self.member_id:
            self.shares = {member_id: groups.assignment(**part) for member_id, part in parts.items()}

    def refused(self, code: ErrorCode) -> None:
        if code not in TOLD_TO_JOIN:
            raise AssertionError(code)
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if code is not ErrorCode.REBALANCE_IN_PROGRESS:
            self.owned = set()
        self.phase = "join"

    def fenced(self) -> None:
        self.owned, self.member_id, self.phase, self.waiting = set(), "", "join", None


class LifeOfAMixedGroup(LifeOfAGroup):
    """The same, with consumers of both protocols."""

    def __init__(self, seed: int, assignor: str, interval_ms: int) -> None:
        super().__init__(seed, assignor, interval_ms)
        self.classics: list[ClassicConsumer] = []
        self.steps += [self.appear_classic] * 2 + [self.beat_classic] * 24 + [self.leave_classic]
        self.steps += [self.leave] * 3
        self.kinds: Counter[type[object]] = Counter()

    def appear_classic(self) -> None:
        self.classics.append(ClassicConsumer(self.chance.choice(SUBSCRIPTIONS)))

    def beat_classic(self) -> None:
        alive = [consumer for consumer in self.classics if consumer.alive]
        if alive:
            self.chance.choice(alive).beat(self.groups)

    def leave_classic(self) -> None:
        alive = [consumer for consumer in self.classics if consumer.alive and consumer.phase == "stable"]
        if alive:
            consumer = self.chance.choice(alive)
            consumer.alive, consumer.owned = False, set()
            if self.chance.random() < 0.7:
                self.groups.classic_leave(MemberIdentity(member_id=consumer.member_id))

    def wait(self, elapsed_ms: int) -> None:
        self.groups.clock.advance(elapsed_ms)
        group = self.groups.coordinator.groups.get(GROUP)
        known = group.members if isinstance(group, ConsumerGroup | ClassicGroup) else {}
        for consumer in self.consumers:
            if consumer.member_id not in known:
                consumer.fenced()
        for classic in self.classics:
            if classic.member_id not in known and not classic.waiting:
                classic.fenced()

    def check(self) -> None:
        check_totals(self.groups.coordinator)
        group = self.groups.coordinator.groups.get(GROUP)
        self.kinds[type(group)] += 1
        everybody: list[Consumer | ClassicConsumer] = [*self.consumers, *self.classics]
        owned = [partition for each in everybody for partition in each.owned]
        assert len(owned) == len(set(owned))
        if isinstance(group, ConsumerGroup):
            self.holders_match_the_members()

    def become_stable(self) -> None:
        for _ in range(60):
            self.wait(1_500)
            for consumer in self.consumers:
                if consumer.alive:
                    self.send(consumer)
            for classic in self.classics:
                for _ in range(3):
                    if classic.alive:
                        classic.beat(self.groups)


@pytest.mark.parametrize("interval_ms", [0, 1_000])
@pytest.mark.parametrize("assignor", ["uniform", "range"])
@settings(max_examples=examples(30), derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_a_group_of_both_protocols_is_safe_and_becomes_stable(
    assignor: str, interval_ms: int, seed: int
) -> None:
    life = LifeOfAMixedGroup(seed, assignor, interval_ms)

    life.live(steps=250)
    life.become_stable()

    life.check()
    everybody: list[Consumer | ClassicConsumer] = [*life.consumers, *life.classics]
    alive = [each for each in everybody if each.alive]
    assert not alive or life.groups.coordinator.groups[GROUP].state_name == "Stable"
    names = {name for each in alive for name in each.topics} & life.groups.topics.ids.keys()
    wanted = {
        partition
        for name in names
        for partition in life.groups.owned(name, *range(life.groups.topics.partition_count(name)))
    }
    assert set().union(*(each.owned for each in alive)) == wanted
