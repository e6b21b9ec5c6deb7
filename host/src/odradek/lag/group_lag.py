"""The lag of one group at one moment, and the offsets of a topic that groups read."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self, TypeVar

from odradek.lag.movement import Progress, RetentionShare, retention_share
from odradek.lag.standing import Standing


class PartitionLag(NamedTuple):
    """The lag of a group in one partition."""

    partition: int
    offset: int
    """The committed offset."""
    standing: Standing
    time_ms: int | None
    """The lag in time; None if it is not known."""


class Owner(NamedTuple):
    """The member of a group that reads a partition."""

    member: str
    client_id: str
    address: str

    @classmethod
    def of(cls, member: str, client_id: str, host: str) -> Self:
        """A member; its host is as Describe shows it: ``/127.0.0.1``."""
        return cls(member, client_id, host.removeprefix("/"))


class Trend(NamedTuple):
    """How a group gets on in a topic."""

    progress: Progress
    per_second: float
    """How fast the lag grows, in records per second; below 0 if it shrinks."""
    caught_up_in_s: float | None
    """Seconds until the lag is 0 if nothing changes; None for never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLag:
    """The lag of a group in one topic."""

    partitions: Sequence[PartitionLag] = ()
    """Those with a committed offset, by index."""
    uncommitted: int = 0
    """Partitions that are assigned to members and have no offset."""
    assigned: int = 0
    offset_age_ms: int | None = None
    """Time since an offset was committed; None if there is no lag, or if it is not known."""
    owners: Mapping[int, Owner] = field(default_factory=dict)
    """By partition; empty if they are not known."""
    retention_ms: int | None = None
    """After this time records are deleted; None for never, or if it is not known."""
    trend: Trend | None = None
    """None if it is not known."""

    @property
    def figures(self) -> Hashable:
        """All but the times and the trend, which follow from the others."""
        read = [(*each[:3], each.time_ms is None) for each in self.partitions]
        return self.uncommitted, self.assigned, tuple(read), tuple(self.owners.items())

    @property
    def lag(self) -> int:
        """The sum."""
        return sum([each.standing.lag for each in self.partitions])

    @property
    def ageless(self) -> int:
        """Partitions whose lag in time is not known."""
        return sum([each.time_ms is None for each in self.partitions])

    @property
    def time_ms(self) -> int | None:
        """The longest lag in time that is known; None if none is."""
        return max([each.time_ms for each in self.partitions if each.time_ms is not None], default=None)

    @property
    def retention(self) -> RetentionShare | None:
        """How near the oldest unread record is to its deletion; None if nothing threatens one."""
        if not self.lag or self.time_ms is None or self.retention_ms is None:
            return None
        return retention_share(self.time_ms, self.retention_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """The lag of a group in all its topics."""

    group: str
    type: str
    state: str
    members: int
    topics: Mapping[str, TopicLag]

    @property
    def figures(self) -> Hashable:
        """All but the times: equal if nothing has moved."""
        topics = [(name, topic.figures) for name, topic in self.topics.items()]
        return self.state, self.members, self.type, tuple(topics)

    @property
    def shortest_ms(self) -> int | None:
        """The shortest lag in time of a partition that has one."""
        found = (each.time_ms for topic in self.topics.values() for each in topic.partitions)
        return min(filter(None, found), default=None)


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """The offsets of the partitions of a topic."""

    topic: str
    partitions: Sequence[tuple[int, int, int]]
    """Index, log start offset and high watermark."""
    hot: Mapping[int, float] = field(default_factory=dict)
    """The hot partitions, each with its share of the new records as a multiple of an even share."""

    @property
    def figures(self) -> Hashable:
        """All there is."""
        return tuple(self.partitions), tuple(self.hot.items())

    @property
    def shortest_ms(self) -> int | None:
        """A topic has no lag."""
        return None


class Granularity(StrEnum):
    """The finest series of a group (``lag.granularity``)."""

    PARTITION = "partition"
    TOPIC = "topic"
    GROUP = "group"


Who = TypeVar("Who", bound=str | tuple[str, ...])
"""A group by its id, or a client."""


class SeriesCount(NamedTuple):
    """About how many series a group has at two levels; those of the group itself do not count."""

    partition: int
    topic: int


def series_count(partitions: int, topics: int) -> SeriesCount:
    """The series of a group: four for each offset, ten for each topic."""
    return SeriesCount(4 * partitions + 10 * topics, 10 * topics)


def within(
    counts: Mapping[Who, SeriesCount], finest: Granularity, most: int
) -> Iterator[tuple[Who, Granularity]]:
    """The groups that must be shown with less than the finest series, so that no more than ``most`` remain.

    The groups with the most series fall back first: to topics, and when all have, to the group alone. Their
    sums and maxima stay exact.
    """
    if finest is Granularity.GROUP:
        return
    by_partition = finest is Granularity.PARTITION
    left = {group: count[not by_partition] for group, count in counts.items()}
    total = sum(left.values())
    fallen: dict[Who, Granularity] = {}
    for to in (Granularity.TOPIC, Granularity.GROUP)[not by_partition :]:
        for group in sorted(left, key=lambda each: (-left[each], each)):
            if total <= most:
                break
            after = counts[group].topic if to is Granularity.TOPIC else 0
            total -= left[group] - after
            left[group], fallen[group] = after, to
    yield from fallen.items()
