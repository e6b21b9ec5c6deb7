"""Measures the lag of the host's groups from its own offsets and logs, in steps."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

from odradek.broker.topics import Topic, Topics
from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_state import ClassicState
from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_group import ConsumerGroup
from odradek.group.consumer_subscription import CONSUMER_PROTOCOL_TYPE
from odradek.group.embedded_protocol import assignment_of
from odradek.group.group import Group
from odradek.group.group_coordinator import GroupCoordinator
from odradek.lag.group_lag import GroupLag, PartitionLag, TopicEnds, TopicLag
from odradek.lag.offset_times import OffsetTimes
from odradek.lag.standing import Ends, standing
from odradek.log.partition_log import PartitionLog
from odradek.waiting.clock import Clock
from odradek.waiting.steps import Steps
from odradek.wire.api_error import ApiError
from odradek.wire.record_batch import RecordBatchHeader, TimestampType

MARKERS_MOST: Final = 1_000
"""A larger lag is not looked through for records of producers."""
PARTITIONS_A_STEP: Final = 50
"""Some tenths of a millisecond."""
LOOKUP_WORK: Final = 10
"""A lookup in the log takes as long as this many partitions."""


class MeasuredGroup(NamedTuple):
    """The lag of a group, and the time of its newest commit, epoch milliseconds; 0 without one."""

    lag: GroupLag
    committed_ms: int


class Lookup(NamedTuple):
    """The first batch with records of producers from an offset on."""

    end: int
    """The high watermark at that time."""
    batch: RecordBatchHeader | None
    """None if there were only markers."""


class LagMeter:
    """The ends of partitions over time, and what has been read from their logs.

    Args:
        groups: Of the host.
        topics: Likewise.
        clock: The time.
        wants_topic: Whether a topic of this name counts.
    """

    def __init__(
        self, groups: GroupCoordinator, topics: Topics, clock: Clock, wants_topic: Callable[[str], bool]
    ) -> None:
        self.groups = groups
        self.topics = topics
        self.clock = clock
        self.wants_topic = wants_topic
        self.tables: dict[TopicPartition, OffsetTimes] = {}
        self.still: dict[tuple[str, TopicPartition], tuple[int, int]] = {}
        """Committed offset and high watermark where there was a lag, of this round."""
        self.still_before: dict[tuple[str, TopicPartition], tuple[int, int]] = {}
        self.lookups: dict[tuple[TopicPartition, int], Lookup] = {}
        """By partition and offset, of this round."""
        self.lookups_before: dict[tuple[TopicPartition, int], Lookup] = {}
        self.work = 0
        """Partitions since the last step."""
        self.ageless = 0
        """Partitions of this round whose lag in time is not known."""

    def begin(self) -> None:
        """Begin a round: only what the last one has found is remembered."""
        self.still_before, self.still = self.still, {}
        self.lookups_before, self.lookups = self.lookups, {}
        self.ageless = 0

    def read_topics(self) -> list[Topic]:
        """The topics that groups have offsets of."""
        found = map(self.topics.by_id.get, self.groups.offsets.groups_of_topic)
        return [topic for topic in found if topic is not None and self.wants_topic(topic.name)]

    def note_ends(self) -> Steps:
        """Note the ends of the partitions that groups read, and forget the others."""
        read = self.read_topics()
        for topic in read:
            for index, log in enumerate(topic.partitions):
                if log.has_offsets:
                    self.note(topic, index, log.high_watermark)
                if not index % PARTITIONS_A_STEP:
                    yield None
        ids = {topic.id for topic in read}
        for partition in [each for each in self.tables if each[0] not in ids]:
            del self.tables[partition]

    def note(self, topic: Topic, index: int, end: int) -> OffsetTimes:
        """Note the end of a partition now."""
        table = self.tables.get((topic.id, index))
        if table is None:
            table = self.tables[topic.id, index] = OffsetTimes()
        table.note(end, self.clock.monotonic_ms())
        return table

    def ends_of(self, topic: Topic) -> TopicEnds:
        """The offsets of a topic that can be read."""
        found = [
            (index, log.log_start_offset, log.high_watermark)
            for index, log in enumerate(topic.partitions)
            if not log.offline
        ]
        return TopicEnds(topic.name, found)

    def measured(self, group: Group) -> Generator[None, Any, MeasuredGroup]:
        """The lag of a group."""
        group_id, now_ms = group.group_id, self.clock.now_ms()
        partitions: dict[str, list[PartitionLag]] = {}
        committed_ms: dict[str, int] = {}
        for at, committed in list(self.groups.offsets.of_group(group_id).items()):
            topic = self.topics.by_id.get(at[0])
            log = topic.partition(at[1]) if topic is not None and self.wants_topic(topic.name) else None
            if topic is not None and log is not None and not log.offline:
                found = self.partition_lag(group_id, topic, at[1], log, committed.offset)
                partitions.setdefault(topic.name, []).append(found)
                newest_ms = max(committed_ms.get(topic.name, 0), committed.commit_timestamp_ms)
                committed_ms[topic.name] = newest_ms
            self.work += 1
            if self.work >= PARTITIONS_A_STEP:
                self.work = 0
                yield None
        assigned = self.assigned(group)
        topics = {}
        for name in sorted(partitions.keys() | assigned.keys()):
            read = sorted(partitions.get(name, ()))
            mine = assigned.get(name, set())
            is_behind = any(each.standing.lag for each in read)
            topics[name] = TopicLag(
                partitions=tuple(read),
                uncommitted=len(mine - {each.partition for each in read}),
                assigned=len(mine),
                offset_age_ms=max(now_ms - committed_ms[name], 0) if is_behind else None,
            )
        lag = GroupLag(
            group=group_id,
            type=str(group.group_type),
            state=group.state_name,
            members=len(group.members),
            topics=topics,
        )
        return MeasuredGroup(lag, max(committed_ms.values(), default=0))

    def assigned(self, group: Group) -> dict[str, set[int]]:
        """The partitions that the members have, by topic, of topics that exist."""
        found: dict[str, set[int]] = {}
        for name, indexes in self.assignments(group):
            if name in self.topics.by_name and self.wants_topic(name):
                found.setdefault(name, set()).update(indexes)
        return found

    def assignments(self, group: Group) -> Iterator[tuple[str, Iterable[int]]]:
        """The topic and the partitions that each member has."""
        if isinstance(group, ConsumerGroup):
            for topic_id, index in chain.from_iterable(each.assigned for each in group.members.values()):
                topic = self.topics.by_id.get(topic_id)
                yield ("" if topic is None else topic.name), (index,)
        elif isinstance(group, ClassicGroup) and group.protocol_type == CONSUMER_PROTOCOL_TYPE:
            for member in group if group.state is ClassicState.STABLE else ():
                assignment = assignment_of(member.assignment)
                for each in assignment.assigned_partitions if assignment else ():
                    yield each.topic, each.partitions

    def partition_lag(
        self, group_id: str, topic: Topic, index: int, log: PartitionLog, offset: int
    ) -> PartitionLag:
        """The lag of a group in a partition.

        Markers are looked for only where nothing has moved since the last round: a consumer that is reading
        will commit a later offset anyway.
        """
        ends = Ends(log.log_start_offset, log.high_watermark, log.last_stable_offset)
        found = standing(offset, ends)
        if not found.lag:
            return PartitionLag(index, offset, found, 0)
        end, partition = ends.high_watermark, (topic.id, index)
        table = self.note(topic, index, end)
        self.still[group_id, partition] = offset, end
        is_still = self.still_before.get((group_id, partition)) == (offset, end)
        first, stamp_ms, stamped = found.at, None, False
        if table.is_older(first) or (is_still and found.lag <= MARKERS_MOST):
            try:
                batch = self.lookup(partition, log, first, end).batch
            except ApiError:
                self.ageless += 1
                return PartitionLag(index, offset, found, None)
            if batch is None:
                return PartitionLag(index, offset, standing(offset, ends, only_markers=True), 0)
            first = max(first, batch.base_offset)
            stamp_ms, stamped = self.stamp_of(batch)
        appended = table.appended(first, stamp_ms, stamped=stamped)
        if appended is None:
            self.ageless += 1
            return PartitionLag(index, offset, found, None)
        return PartitionLag(index, offset, found, max(self.clock.monotonic_ms() - appended.time_ms, 0))

    def lookup(self, partition: TopicPartition, log: PartitionLog, offset: int, end: int) -> Lookup:
        """The first batch with records of producers from an offset on. What was found stays found.

        Raises:
            ApiError: The log cannot be read.
        """
        key = partition, offset
        found = self.lookups.get(key) or self.lookups_before.get(key)
        if found is None or (found.batch is None and found.end != end):
            found = Lookup(end, log.data_batch(offset, MARKERS_MOST))
            self.work += LOOKUP_WORK
        self.lookups[key] = found
        return found

    def stamp_of(self, batch: RecordBatchHeader) -> tuple[int | None, bool]:
        """The timestamp of a batch on the monotonic clock, None without one; whether the host has set it."""
        stamped = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
        stamp_ms = batch.max_timestamp_ms if stamped else batch.base_timestamp_ms
        if stamp_ms < 0:
            return None, False
        return self.clock.monotonic_ms() - self.clock.now_ms() + stamp_ms, stamped
