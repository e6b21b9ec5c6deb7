"""The positions of all groups of a cluster, read from its brokers in rounds.

What a broker said is kept for a minute while it does not answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Any, Final, NamedTuple

from odradek.client.asked_brokers import AskedBrokers
from odradek.client.errors import RequestFailed
from odradek.client.group_readings import BrokerReading, GroupReading, read_groups
from odradek.client.leaders import Partition as Named
from odradek.client.offset_lookups import OffsetLookups, Place
from odradek.client.partition_reading import LeaderEnds, read_ends
from odradek.client.resources import Offset
from odradek.lag.group_lag import GroupLag, PartitionLag, SeriesCount, TopicEnds, series_count
from odradek.lag.meter import LagMeter, MeasuredGroup, Partition, topic_lag
from odradek.lag.standing import Ends, Standing
from odradek.waiting.clock import Clock
from odradek.waiting.steps import Steps
from odradek.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

KEPT_MS: Final = 60_000
"""The last answer of a broker is shown for so long while it does not answer."""
PARTITIONS_A_STEP: Final = 50
"""Some tenths of a millisecond."""


@dataclass(slots=True)
class PolledGroup:
    """A group as its coordinator described it last."""

    reading: GroupReading
    node: int
    """The coordinator."""
    seen_ms: int
    moved_ms: dict[str, int] = field(default_factory=dict)
    """When an offset was seen to move, by topic, epoch milliseconds."""


class SeenEnds(NamedTuple):
    """The offsets of a partition, and when they were told."""

    ends: Ends
    seen_ms: int


class Topic(NamedTuple):
    """A topic that exists."""

    id: bytes
    """Its name, if the brokers have no ids (before 2.8)."""
    leaders: Mapping[int, int]
    """By index; below 0 for none."""


class Phase(Enum):
    """The phases of a round. Ends are noted between its steps, too."""

    BETWEEN = auto()
    ASKING = auto()
    MEASURING = auto()


class ClusterPositions:
    """The groups of a cluster.

    Args:
        brokers: Of the cluster.
        clock: The time.
        wants_group: Whether a group of this id counts.
        wants_topic: Whether a topic of this name counts.
        reads: Whether records may be read, to tell markers of transactions from them.
    """

    def __init__(
        self,
        brokers: AskedBrokers,
        clock: Clock,
        wants_group: Callable[[str], bool],
        wants_topic: Callable[[str], bool],
        *,
        reads: bool = True,
    ) -> None:
        self.clock = clock
        self.wants_group = wants_group
        self.wants_topic = wants_topic
        self.brokers = brokers
        self.lookups = OffsetLookups(brokers, clock, reads=reads)
        self.meter = LagMeter(self.want, clock.monotonic_ms)
        self.topics: dict[str, Topic] = {}
        self.names: dict[bytes, str] = {}
        self.polled: dict[str, PolledGroup] = {}
        self.lags: dict[str, MeasuredGroup] = {}
        """Of the round."""
        self.wanted: dict[Place, None] = {}
        """Offsets to look at before the lag is known."""
        self.seen: dict[Partition, SeenEnds] = {}
        self.by_leader: dict[int, list[Named]] = {}
        """The partitions that groups read."""
        self.read: dict[str, set[int]] = {}
        """The same, by topic."""
        self.hidden: set[str] = set()
        """Topics that members read and this client may not see, or that are gone."""
        self.refused: frozenset[str] = frozenset()
        """Groups that this client may not see the offsets of."""
        self.invalid = 0
        self.phase = Phase.BETWEEN
        self.outcome = "completed"
        """Of the round."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """The number of things that this round does not measure, by reason."""
        return {
            "rights": len(self.refused),
            "hidden": len(self.hidden),
            "invalid": self.invalid,
        }

    # Rounds

    def begin(self) -> Steps:
        """Ask for everything: committed offsets first, then ends, so that no lag is negative."""
        self.meter.begin()
        self.invalid = 0
        self.outcome = "completed"
        try:
            self.phase = Phase.ASKING
            yield from self.learn_topics()
            yield from self.learn_groups()
            yield from self.choose_partitions()
            yield from self.learn_ends()
            self.phase = Phase.MEASURING
            yield from self.measure()
        finally:
            self.phase = Phase.BETWEEN

    def learn_topics(self) -> Steps:
        """Ask for brokers, topics and leaders."""
        found: MetadataResponse | None = yield from self.brokers.metadata()
        if found is None:
            self.outcome = "failed"
            return
        topics = {}
        for place, row in enumerate(found.topics):
            if row.name and not row.error_code and self.wants_topic(row.name):
                topics[row.name] = Topic(id_of(row), leaders_of(row))
            if not place % PARTITIONS_A_STEP:
                yield None
        self.topics = topics
        self.names = {topic.id: name for name, topic in topics.items()}

    def learn_groups(self) -> Steps:
        """Ask each broker for its groups. What it does not tell is kept for a while."""
        before, polled = self.polled, dict[str, PolledGroup]()
        refused: set[str] = set()
        unknown: set[str] = set()
        silent = {each.node for each in before.values()}
        for node_id, node in list(self.brokers.nodes.items()):
            found: BrokerReading | None = yield from self.brokers.answer(
                node_id, partial(read_groups, node=node, wants=self.wants_group)
            )
            if found is None:
                self.outcome = "failed"
                continue
            silent.discard(node_id)
            refused |= found.refused
            unknown |= found.unknown
            for group, reading in found.groups.items():
                known = before.pop(group, None) or polled.get(group)
                polled[group] = self.taken(known, reading, node_id)
                yield None
        now_ms = self.clock.monotonic_ms()
        for group, each in before.items():
            if (each.node in silent or group in unknown) and now_ms - each.seen_ms <= KEPT_MS:
                polled[group] = each
        self.polled = polled
        self.refused = frozenset(refused)
        self.tell_of_rights()

    def taken(self, before: PolledGroup | None, reading: GroupReading, node: int) -> PolledGroup:
        """A group as it is now."""
        now_ms = self.clock.now_ms()
        moved_ms = {
            topic: before.moved_ms[topic]
            if before is not None and before.reading.offsets.get(topic) == offsets
            else now_ms
            for topic, offsets in reading.offsets.items()
        }
        return PolledGroup(reading, node, self.clock.monotonic_ms(), moved_ms)

    def choose_partitions(self) -> Steps:
        """The partitions that groups read, by leader; the others are forgotten."""
        chosen: dict[str, set[int]] = defaultdict(set)
        for each in list(self.polled.values()):
            for name, offsets in each.reading.offsets.items():
                topic = self.topics.get(name)
                if topic is not None:
                    chosen[name] |= offsets.keys() & topic.leaders.keys()
            yield None
        self.read = dict(chosen)
        by_leader: dict[int, list[Named]] = defaultdict(list)
        for name, indexes in chosen.items():
            for index in sorted(indexes):
                by_leader[self.topics[name].leaders[index]].append((name, index))
            yield None
        self.by_leader = dict(by_leader)
        ids = {self.topics[name].id for name in chosen}
        self.meter.keep(ids)
        self.seen = {at: each for at, each in self.seen.items() if at[0] in ids}

    def note_ends(self) -> Steps:
        """Note the ends of the partitions that groups read, unless a round is about to."""
        if self.phase is Phase.ASKING:
            return
        if self.phase is Phase.BETWEEN and self.brokers.outdated and self.polled:
            yield from self.learn_topics()
            yield from self.choose_partitions()
        yield from self.learn_ends(whole=False)

    def learn_ends(self, *, whole: bool = True) -> Steps:
        """Ask each leader for the ends of its partitions."""
        for leader, names in list(self.by_leader.items()):
            found: LeaderEnds | None = yield from self.brokers.answer(
                leader, partial(read_ends, partitions=names, clock=self.clock, whole=whole)
            )
            if found is None:
                continue
            for place, name in enumerate(names):
                end = found.high_watermarks.get(name)
                topic = self.topics.get(name[0])
                if isinstance(end, Offset) and topic is not None and end.offset >= 0:
                    at = topic.id, name[1]
                    self.meter.note(at, end.offset, found.sent_ms, found.received_ms)
                    if whole:
                        self.note_bounds(at, end.offset, found.stable.get(name), found.starts.get(name))
                else:
                    self.brokers.outdated = True
                if not place % PARTITIONS_A_STEP:
                    yield None

    def note_bounds(
        self,
        at: Partition,
        end: int,
        stable: Offset | RequestFailed | None,
        start: Offset | RequestFailed | None,
    ) -> None:
        """Note what bounds the records of a partition. A broker that does not know transactions has none."""
        last_stable = min(stable.offset, end) if isinstance(stable, Offset) else end
        ends = Ends(start.offset if isinstance(start, Offset) else -1, end, last_stable)
        if ends.is_valid:
            self.seen[at] = SeenEnds(ends, self.clock.monotonic_ms())
        else:
            self.seen.pop(at, None)
            self.invalid += 1

    def measure(self) -> Steps:
        """Measure all groups, and those again whose offsets do not tell the lag, once they were looked at."""
        for group in self.lags.keys() - self.polled.keys():
            del self.lags[group]
        self.hidden.clear()
        self.wanted.clear()
        doubtful: list[str] = []
        for group in list(self.polled):
            before = len(self.wanted)
            self.lags[group] = yield from self.lag_of(group)
            if len(self.wanted) > before:
                doubtful.append(group)
        yield from self.lookups.look(list(self.wanted), self.meter.lookups)
        for group in doubtful:
            self.lags[group] = yield from self.lag_of(group)

    def want(self, at: Partition, offset: int, end: int) -> None:
        """Note that an offset has to be looked at."""
        name = self.names[at[0]]
        leader = self.topics[name].leaders.get(at[1], -1)
        is_old = self.meter.tables[at].is_older(offset)
        self.wanted[Place(at, offset, end, (name, at[1]), leader, is_old)] = None

    def places(self, reading: GroupReading) -> Iterator[tuple[str, Partition, int, Ends]]:
        """Topic, partition, offset and ends where the ends were told a short time ago."""
        told_ms = self.clock.monotonic_ms() - KEPT_MS
        for name, offsets in reading.offsets.items():
            topic = self.topics.get(name)
            if topic is None:
                continue
            for index, offset in offsets.items():
                at = topic.id, index
                seen = self.seen.get(at)
                if seen is not None and seen.seen_ms >= told_ms:
                    yield name, at, offset, seen.ends

    # Results

    def groups(self) -> dict[str, SeriesCount]:
        """The groups of this round."""
        counts = {}
        for group, each in self.polled.items():
            offsets = each.reading.offsets
            counts[group] = series_count(sum(map(len, offsets.values())), len(offsets))
        return counts

    def is_empty(self, group: str) -> bool:
        """Whether a group has no members."""
        return not self.polled[group].reading.members

    def measured(self, group: str) -> Generator[None, Any, MeasuredGroup | None]:
        """The lag of a group."""
        yield None
        return self.lags.get(group)

    def lag_of(self, group: str) -> Generator[None, Any, MeasuredGroup]:
        """Measure a group."""
        each = self.polled[group]
        reading, now_ms = each.reading, self.clock.now_ms()
        partitions: dict[str, list[PartitionLag]] = defaultdict(list)
        for place, (name, at, offset, ends) in enumerate(self.places(reading)):
            if reading.lags is None:
                partitions[name].append(self.meter.partition_lag(group, at, offset, ends))
            else:
                lag = reading.lags[name][at[1]]
                told = Standing(offset, lag, 0, 0, 0)
                partitions[name].append(PartitionLag(at[1], offset, told, None if lag else 0))
            if place % PARTITIONS_A_STEP == PARTITIONS_A_STEP - 1:
                yield None
        assigned = {name: those for name, those in reading.assigned.items() if name in self.topics}
        self.hidden |= {name for name in reading.assigned.keys() - assigned.keys() if self.wants_topic(name)}
        lag_of_group = GroupLag(
            group=group,
            type=reading.listed.type.lower(),
            state=reading.listed.state,
            members=reading.members,
            topics={
                name: topic_lag(
                    partitions.get(name, ()),
                    assigned.get(name, {}),
                    max(now_ms - each.moved_ms.get(name, now_ms), 0),
                )
                for name in sorted(partitions.keys() | assigned.keys())
            },
        )
        return MeasuredGroup(lag_of_group, max(each.moved_ms.values(), default=now_ms))

    def ends(self) -> Iterator[TopicEnds]:
        """The offsets of the topics that groups read."""
        told_ms = self.clock.monotonic_ms() - KEPT_MS
        for name, indexes in self.read.items():
            topic = self.topics.get(name)
            if topic is not None:
                told = [(index, self.seen.get((topic.id, index))) for index in sorted(indexes)]
                found = [
                    (index, each.ends.start, each.ends.high_watermark)
                    for index, each in told
                    if each is not None and each.seen_ms >= told_ms
                ]
                yield TopicEnds(name, found)

    def tell_of_rights(self) -> None:
        """Say which rights on groups are missing."""
        if not self.refused:
            self.brokers.well("groups")
            return
        some = ", ".join(sorted(self.refused)[:3])
        self.brokers.tell("groups", f"no right DESCRIBE on {len(self.refused)} groups, such as {some}")
        if not self.polled:
            self.outcome = "refused"


def id_of(topic: MetadataResponseTopic) -> bytes:
    """The id of a topic; its name from brokers without ids."""
    return topic.topic_id if any(topic.topic_id) else (topic.name or "").encode()


def leaders_of(topic: MetadataResponseTopic) -> dict[int, int]:
    """The leader of each partition."""
    return {row.partition_index: row.leader_id for row in topic.partitions}
