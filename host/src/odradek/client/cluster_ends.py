"""The ends of the partitions of a cluster that somebody reads, asked for in rounds.

What a broker said is kept for a minute while it does not answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping
from enum import Enum, auto
from functools import partial
from typing import Any, Final, Generic, NamedTuple

from odradek.client.asked_brokers import AskedBrokers
from odradek.client.errors import RequestFailed
from odradek.client.leaders import Partition as Named
from odradek.client.offset_lookups import OffsetLookups, Place
from odradek.client.partition_reading import LeaderEnds, read_ends
from odradek.client.resources import Offset
from odradek.lag.group_lag import SeriesCount
from odradek.lag.meter import L, LagMeter, Measured, Partition, Who
from odradek.lag.standing import Ends
from odradek.waiting.clock import Clock
from odradek.waiting.steps import Steps
from odradek.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

KEPT_MS: Final = 60_000
"""The last answer of a broker is shown for so long while it does not answer."""
PARTITIONS_A_STEP: Final = 50
"""Some tenths of a millisecond."""


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


class ClusterEnds(ABC, Generic[Who, L]):
    """The topics of a cluster, and the ends of those partitions that are read. A subclass knows the readers.

    Args:
        brokers: Of the cluster.
        clock: The time.
        wants_topic: Whether a topic of this name counts.
        reads: Whether records may be read, to tell markers of transactions from them.
    """

    def __init__(
        self, brokers: AskedBrokers, clock: Clock, wants_topic: Callable[[str], bool], *, reads: bool = True
    ) -> None:
        self.clock = clock
        self.wants_topic = wants_topic
        self.brokers = brokers
        self.lookups = OffsetLookups(brokers, clock, reads=reads)
        self.meter = LagMeter(self.want, clock.monotonic_ms)
        self.topics: dict[str, Topic] = {}
        self.names: dict[bytes, str] = {}
        self.lags: dict[Who, Measured[L]] = {}
        """Of the round."""
        self.wanted: dict[Place, None] = {}
        """Offsets to look at before the lag is known."""
        self.seen: dict[Partition, SeenEnds] = {}
        self.by_leader: dict[int, list[Named]] = {}
        """The partitions that are read."""
        self.read: dict[str, set[int]] = {}
        """The same, by topic."""
        self.invalid = 0
        self.phase = Phase.BETWEEN
        self.outcome = "completed"
        """Of the round."""

    # Of the subclass

    @abstractmethod
    def learn_readers(self) -> Steps:
        """Learn who reads what, and from where."""

    @abstractmethod
    def places_read(self) -> Iterable[tuple[str, Iterable[int]]]:
        """Topics and indexes that the readers read, each as often as it likes."""

    @abstractmethod
    def groups(self) -> Mapping[Who, SeriesCount]:
        """The readers of this round."""

    @abstractmethod
    def lag_of(self, reader: Who) -> Generator[None, Any, Measured[L]]:
        """Measure a reader, when the ends are known."""

    # Rounds

    def begin(self) -> Steps:
        """Ask for everything: offsets of readers first, then ends, so that no lag is negative."""
        self.meter.begin()
        self.invalid = 0
        self.outcome = "completed"
        try:
            self.phase = Phase.ASKING
            yield from self.learn_topics()
            yield from self.learn_readers()
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

    def choose_partitions(self) -> Steps:
        """The partitions that are read, by leader; the others are forgotten."""
        chosen: dict[str, set[int]] = defaultdict(set)
        for name, indexes in self.places_read():
            topic = self.topics.get(name)
            if topic is not None:
                chosen[name].update(topic.leaders.keys() & indexes)
            yield None
        self.read = dict(chosen)
        by_leader: dict[int, list[Named]] = defaultdict(list)
        for name, found in chosen.items():
            for index in sorted(found):
                by_leader[self.topics[name].leaders[index]].append((name, index))
            yield None
        self.by_leader = dict(by_leader)
        ids = {self.topics[name].id for name in chosen}
        self.meter.keep(ids)
        self.seen = {at: each for at, each in self.seen.items() if at[0] in ids}

    def note_ends(self) -> Steps:
        """Note the ends of the partitions that are read, unless a round is about to."""
        if self.phase is Phase.ASKING:
            return
        if self.phase is Phase.BETWEEN and self.brokers.outdated and self.by_leader:
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
        """Measure all readers, and those again whose offsets had to be looked at."""
        readers = self.groups()
        for gone in self.lags.keys() - readers.keys():
            del self.lags[gone]
        self.wanted.clear()
        doubtful: list[Who] = []
        for reader in readers:
            before = len(self.wanted)
            self.lags[reader] = yield from self.lag_of(reader)
            if len(self.wanted) > before:
                doubtful.append(reader)
        yield from self.lookups.look(list(self.wanted), self.meter.lookups)
        for reader in doubtful:
            self.lags[reader] = yield from self.lag_of(reader)

    def measured(self, reader: Who) -> Generator[None, Any, Measured[L] | None]:
        """The lag of a reader."""
        yield None
        return self.lags.get(reader)

    def want(self, at: Partition, offset: int, end: int) -> None:
        """Note that an offset has to be looked at."""
        name = self.names[at[0]]
        leader = self.topics[name].leaders.get(at[1], -1)
        is_old = self.meter.tables[at].is_older(offset)
        self.wanted[Place(at, offset, end, (name, at[1]), leader, is_old)] = None

    def ends_at(self, at: Partition) -> Ends | None:
        """The ends of a partition, if they were told a short time ago."""
        seen = self.seen.get(at)
        if seen is None or self.clock.monotonic_ms() - seen.seen_ms > KEPT_MS:
            return None
        return seen.ends


def id_of(topic: MetadataResponseTopic) -> bytes:
    """The id of a topic; its name from brokers without ids."""
    return topic.topic_id if any(topic.topic_id) else (topic.name or "").encode()


def leaders_of(topic: MetadataResponseTopic) -> dict[int, int]:
    """The leader of each partition."""
    return {row.partition_index: row.leader_id for row in topic.partitions}
