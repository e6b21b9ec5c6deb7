"""The positions of a host's own groups, from its offsets and logs, in steps."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Final, NamedTuple

from odradek.broker.topics import Topic, Topics
from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_member import ClassicMember
from odradek.group.classic_state import ClassicState
from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_group import ConsumerGroup
from odradek.group.consumer_member import ConsumerMember
from odradek.group.consumer_subscription import CONSUMER_PROTOCOL_TYPE
from odradek.group.embedded_protocol import assignment_of
from odradek.group.group_coordinator import Group, GroupCoordinator
from odradek.group.share_group import ShareGroup
from odradek.group.share_member import ShareMember
from odradek.lag.group_lag import GroupLag, Owner, PartitionLag, SeriesCount, TopicEnds, series_count
from odradek.lag.meter import (
    MARKERS_MOST,
    LagMeter,
    Lookup,
    MeasuredGroup,
    Partition,
    first_record,
    topic_lag,
)
from odradek.lag.standing import Ends
from odradek.share.deliveries import Deliveries
from odradek.waiting.clock import Clock
from odradek.waiting.steps import Steps
from odradek.wire.api_error import ApiError

PARTITIONS_A_STEP: Final = 50
"""Some tenths of a millisecond."""
LOOKUP_WORK: Final = 10
"""A lookup in the log takes as long as this many partitions."""


class Position(NamedTuple):
    """How far a group is in a partition."""

    offset: int
    """The first record that it is not done with."""
    changed_ms: int
    """When that changed last; wall time."""
    done: int = 0
    """Records after the offset that it is done with."""


class LogLooks:
    """Looks at records of a host's logs.

    Args:
        topics: Of the host.
        clock: The time.
    """

    def __init__(self, topics: Topics, clock: Clock) -> None:
        self.topics = topics
        self.clock = clock
        self.meter = LagMeter(self.look, clock.monotonic_ms)
        self.work = 0
        """Partitions since the last step."""

    def look(self, partition: Partition, offset: int, end: int) -> Lookup | None:
        """The first batch with records of producers from an offset on; None if the log cannot be read."""
        self.work += LOOKUP_WORK
        topic = self.topics.by_id[partition[0]]
        log = topic.partition(partition[1])
        if log is None:
            return None
        try:
            batch = log.data_batch(offset, MARKERS_MOST)
        except ApiError:
            return None
        to_monotonic_ms = self.clock.monotonic_ms() - self.clock.now_ms()
        return Lookup(end, None if batch is None else first_record(batch, to_monotonic_ms))


class HostPositions(LogLooks):
    """The offsets of groups, and the logs that they read.

    Args:
        groups: Of the host. Those in which it consumes itself are left out: each record about them would move
            them.
        topics: Likewise.
        clock: The time.
        wants_group: Whether a group of this id counts.
        wants_topic: Whether a topic of this name counts.
        shared: The deliveries to share groups.
    """

    def __init__(
        self,
        groups: GroupCoordinator,
        topics: Topics,
        clock: Clock,
        wants_group: Callable[[str], bool],
        wants_topic: Callable[[str], bool],
        shared: Deliveries,
    ) -> None:
        super().__init__(topics, clock)
        self.coordinator = groups
        self.shared = shared
        self.wants_group = wants_group
        self.wants_topic = wants_topic
        self.outcome = "completed"
        self.left_out: dict[str, int] = {}
        """Nothing."""
        self.chosen: dict[str, tuple[Group, SeriesCount]] = {}
        """The groups of this round."""

    def begin(self) -> Steps:
        """Begin a round."""
        self.meter.begin()
        self.chosen = {}
        for group in list(self.coordinator):
            group_id, offsets = group.group_id, self.coordinator.offsets
            if group_id not in offsets.owned and self.wants_group(group_id):
                mine = [at for at, _ in self.positions(group)]
                count = series_count(len(mine), len({topic_id for topic_id, _ in mine}))
                self.chosen[group_id] = group, count
                yield None

    def positions(self, group: Group) -> list[tuple[TopicPartition, Position]]:
        """How far a group is in each partition. A share group is so far in those that it has read from since
        the start of the host.
        """
        if not isinstance(group, ShareGroup):
            offsets = self.coordinator.offsets.of_group(group.group_id)
            return [(at, Position(each.offset, each.commit_timestamp_ms)) for at, each in offsets.items()]
        deliveries = self.shared.groups.get(group.group_id, {})
        return [
            (at, Position(each.partition.start, each.stored_ms, each.partition.done))
            for at, each in deliveries.items()
            if each.is_started
        ]

    def groups(self) -> dict[str, SeriesCount]:
        """The groups of this round."""
        return {group_id: count for group_id, (_, count) in self.chosen.items()}

    def is_empty(self, group: str) -> bool:
        """Whether a group has no members."""
        return self.chosen[group][0].is_empty

    def read_topics(self) -> list[Topic]:
        """The topics that groups have offsets of."""
        shared = (key[0] for group in self.shared.groups.values() for key in group)
        found = map(self.topics.by_id.get, {*self.coordinator.offsets.groups_of_topic, *shared})
        return [topic for topic in found if topic is not None and self.wants_topic(topic.name)]

    def note_ends(self) -> Steps:
        """Note the ends of the partitions that groups read, and forget the others."""
        read = self.read_topics()
        for topic in read:
            for index, log in enumerate(topic.partitions):
                if log.has_offsets:
                    self.meter.note((topic.id, index), log.high_watermark, self.clock.monotonic_ms())
                if not index % PARTITIONS_A_STEP:
                    yield None
        self.meter.keep({topic.id for topic in read})

    def ends(self) -> Iterator[TopicEnds]:
        """The offsets that can be read of the topics that groups read."""
        for topic in self.read_topics():
            found = [
                (index, log.log_start_offset, log.high_watermark)
                for index, log in enumerate(topic.partitions)
                if not log.offline
            ]
            yield TopicEnds(topic.name, found)

    def measured(self, group: str) -> Generator[None, Any, MeasuredGroup | None]:
        """The lag of a group."""
        found, now_ms = self.chosen[group][0], self.clock.now_ms()
        if self.coordinator.groups.get(group) is not found:
            return None
        partitions: dict[str, list[PartitionLag]] = {}
        committed_ms: dict[str, int] = {}
        for at, position in self.positions(found):
            topic = self.topics.by_id.get(at[0])
            log = topic.partition(at[1]) if topic is not None and self.wants_topic(topic.name) else None
            if topic is not None and log is not None and not log.offline:
                ends = Ends(log.log_start_offset, log.high_watermark, log.last_stable_offset)
                self.meter.note(at, ends.high_watermark, self.clock.monotonic_ms())
                measured = self.meter.partition_lag(group, at, position.offset, ends)
                partitions.setdefault(topic.name, []).append(less_done(measured, position.done))
                newest_ms = max(committed_ms.get(topic.name, 0), position.changed_ms)
                committed_ms[topic.name] = newest_ms
            self.work += 1
            if self.work >= PARTITIONS_A_STEP:
                self.work = 0
                yield None
        assigned = self.assigned(found)
        topics = {}
        for name in sorted(partitions.keys() | assigned.keys()):
            config = self.topics.by_name[name].config
            topics[name] = topic_lag(
                partitions.get(name, ()),
                assigned.get(name, {}),
                max(now_ms - committed_ms.get(name, 0), 0),
                retention_ms=config.retention_ms if "delete" in config.cleanup_policy else None,
            )
        lag = GroupLag(
            group=group,
            type=str(found.group_type),
            state=found.state_name,
            members=len(found.members),
            topics=topics,
        )
        return MeasuredGroup(lag, max(committed_ms.values(), default=0))

    def assigned(self, group: Group) -> dict[str, dict[int, Owner]]:
        """The members by their partitions, by topic, of topics that exist."""
        found: dict[str, dict[int, Owner]] = {}
        for owner, name, indexes in self.assignments(group):
            if name in self.topics.by_name and self.wants_topic(name):
                found.setdefault(name, {}).update(dict.fromkeys(indexes, owner))
        return found

    def assignments(self, group: Group) -> Iterator[tuple[Owner, str, Iterable[int]]]:
        """Each member with a topic and its partitions."""
        if isinstance(group, ConsumerGroup | ShareGroup):
            for member in group.members.values():
                owner = owner_of(member)
                for topic_id, index in member.assigned:
                    topic = self.topics.by_id.get(topic_id)
                    yield owner, ("" if topic is None else topic.name), (index,)
        elif isinstance(group, ClassicGroup) and group.protocol_type == CONSUMER_PROTOCOL_TYPE:
            for each in group if group.state is ClassicState.STABLE else ():
                assignment = assignment_of(each.assignment)
                for part in assignment.assigned_partitions if assignment else ():
                    yield owner_of(each), part.topic, part.partitions


def less_done(found: PartitionLag, done: int) -> PartitionLag:
    """A lag without the records that the group is done with."""
    if not done or not found.standing.lag:
        return found
    lag = max(found.standing.lag - done, 0)
    unstable = min(found.standing.unstable, lag)
    return found._replace(standing=found.standing._replace(lag=lag, unstable=unstable))


def owner_of(member: ClassicMember | ConsumerMember | ShareMember) -> Owner:
    """A member as the owner of partitions."""
    return Owner.of(member.member_id, member.client_id, member.client_host)
