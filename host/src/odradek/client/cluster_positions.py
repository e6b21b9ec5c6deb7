"""The positions of all groups of a cluster, read from its brokers in rounds.

What a broker said is kept for a minute while it does not answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from odradek.client.asked_brokers import AskedBrokers
from odradek.client.cluster_ends import KEPT_MS, PARTITIONS_A_STEP, ClusterEnds
from odradek.client.group_readings import BrokerReading, GroupReading, read_groups
from odradek.client.retention_times import RetentionTimes
from odradek.lag.group_lag import GroupLag, PartitionLag, SeriesCount, TopicEnds, series_count
from odradek.lag.meter import MeasuredGroup, Partition, topic_lag
from odradek.lag.standing import Ends, Standing
from odradek.waiting.clock import Clock
from odradek.waiting.steps import Steps


@dataclass(slots=True)
class PolledGroup:
    """A group as its coordinator described it last."""

    reading: GroupReading
    node: int
    """The coordinator."""
    seen_ms: int
    moved_ms: dict[str, int] = field(default_factory=dict)
    """When an offset was seen to move, by topic, epoch milliseconds."""


class ClusterPositions(ClusterEnds[str, GroupLag]):
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
        super().__init__(brokers, clock, wants_topic, reads=reads)
        self.wants_group = wants_group
        self.retention = RetentionTimes(brokers, clock)
        self.polled: dict[str, PolledGroup] = {}
        self.hidden: set[str] = set()
        """Topics that members read and this client may not see, or that are gone."""
        self.refused: frozenset[str] = frozenset()
        """Groups that this client may not see the offsets of."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """The number of things that this round does not measure, by reason."""
        return {
            "rights": len(self.refused),
            "hidden": len(self.hidden),
            "invalid": self.invalid,
        }

    # Rounds

    def learn_readers(self) -> Steps:
        """Ask each broker for its groups. What it does not tell is kept for a while."""
        self.hidden.clear()
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
        yield from self.retention.learn(self.topics.keys() & {name for name, _ in self.places_read()})
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

    def places_read(self) -> Iterator[tuple[str, Iterable[int]]]:
        """The places where groups have offsets."""
        for each in list(self.polled.values()):
            yield from each.reading.offsets.items()

    def places(self, reading: GroupReading) -> Iterator[tuple[str, Partition, int, Ends]]:
        """Topic, partition, offset and ends where the ends were told a short time ago."""
        for name, offsets in reading.offsets.items():
            topic = self.topics.get(name)
            if topic is None:
                continue
            for index, offset in offsets.items():
                ends = self.ends_at((topic.id, index))
                if ends is not None:
                    yield name, (topic.id, index), offset, ends

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
                    self.retention.times.get(name),
                )
                for name in sorted(partitions.keys() | assigned.keys())
            },
        )
        return MeasuredGroup(lag_of_group, max(each.moved_ms.values(), default=now_ms))

    def ends(self) -> Iterator[TopicEnds]:
        """The offsets of the topics that groups read."""
        for name, indexes in self.read.items():
            topic = self.topics.get(name)
            if topic is not None:
                told = [(index, self.ends_at((topic.id, index))) for index in sorted(indexes)]
                found = [(index, each.start, each.high_watermark) for index, each in told if each is not None]
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
