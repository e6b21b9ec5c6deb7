"""Clients that read partitions, by the offsets that they fetch.

A client that commits nowhere has a position all the same: the offset in its last Fetch for a partition. It is
ahead of what the application has done by what the client has fetched in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from odradek.lag.group_lag import PartitionLag, SeriesCount, TopicLag

LEFT_MS: Final = 600_000
"""A client that has paused a partition, or has not processed what it has of it, does not fetch it. After so
long it counts as given up.
"""
CLOSED_MS: Final = 60_000
"""A position is shown for so long after its connection has ended."""

MOST_POSITIONS: Final = 100_000
Place = tuple[str | bytes, int]
"""The name or the id of a topic, as the request has it, and the index."""


class Reader(NamedTuple):
    """The facts that tell one reading client from another."""

    client_id: str
    address: str
    group: str
    """Empty if it is in none, or if that is not known."""
    software_name: str
    software_version: str
    principal: str
    observer: str
    """The gateway or host that it is connected to: two of them report two readers."""


class Reading:
    """What one connection reads."""

    __slots__ = ("closed_ms", "fetched_ms", "left_ms", "offsets", "read_committed")

    def __init__(self) -> None:
        self.offsets: dict[Place, int] = {}
        """The offset that was asked for last."""
        self.left_ms: dict[Place, int] = {}
        """Since when a partition is not fetched any more."""
        self.read_committed = False
        self.fetched_ms = 0
        """When it was seen last that the connection fetches, on the monotonic clock."""
        self.closed_ms: int | None = None

    def look(self, fetched: Collection[Place], now_ms: int, *, is_fetching: bool) -> None:
        """Note which partitions the connection fetches now, and forget those that it has given up."""
        left_ms = self.left_ms
        if is_fetching:
            self.fetched_ms = now_ms
        for place in list(self.offsets):
            if place in fetched:
                left_ms.pop(place, None)
            elif now_ms - left_ms.setdefault(place, now_ms) > LEFT_MS:
                del self.offsets[place], left_ms[place]

    def silent_since_ms(self, place: Place) -> int | None:
        """Since when a partition is not fetched; None if it is."""
        return self.closed_ms if self.closed_ms is not None else self.left_ms.get(place)

    def is_over(self, now_ms: int) -> bool:
        """Whether the connection has ended some time ago."""
        return self.closed_ms is not None and now_ms - self.closed_ms > CLOSED_MS


class Position(NamedTuple):
    """The position of a reader in a partition."""

    offset: int
    read_committed: bool
    fetched_ms: int
    is_fetched: bool
    """It is fetched still."""


At = tuple[str, int]
"""The name of a topic and the index."""


class ReaderTable:
    """The positions of all readers at one moment.

    Of several connections of a reader the one that fetched last counts. A partition that a reader has left
    counts until another member of its group fetches it.

    Args:
        name_of: The name of a topic, by its name or id; None if it is not known, or does not count.
        most: Positions; further ones are left out.
    """

    def __init__(self, name_of: Callable[[str | bytes], str | None], most: int = MOST_POSITIONS) -> None:
        self.name_of = name_of
        self.most = most
        self.positions: dict[Reader, dict[At, Position]] = {}
        self.taken: set[tuple[str, At]] = set()
        """Groups and the partitions that members fetch."""
        self.number = 0
        self.left_out = 0

    def add(self, reader: Reader, reading: Reading) -> None:
        """Add what a connection reads."""
        known = self.positions.setdefault(reader, {})
        for place, offset in reading.offsets.items():
            name = self.name_of(place[0])
            if name is None:
                continue
            silent_ms = reading.silent_since_ms(place)
            fetched_ms = reading.fetched_ms if silent_ms is None else silent_ms
            at, is_fetched = (name, place[1]), silent_ms is None
            self.take(known, at, Position(offset, reading.read_committed, fetched_ms, is_fetched))
            if is_fetched and reader.group:
                self.taken.add((reader.group, at))

    def take(self, known: dict[At, Position], at: At, position: Position) -> None:
        before = known.get(at)
        if before is None:
            if self.number >= self.most:
                self.left_out += 1
                return
            self.number += 1
        elif (before.is_fetched, before.fetched_ms) > (position.is_fetched, position.fetched_ms):
            return
        known[at] = position

    def close(self) -> None:
        """Leave out what others have taken over, and readers without a position."""
        for reader, known in list(self.positions.items()):
            for at, position in list(known.items()):
                if not position.is_fetched and (reader.group, at) in self.taken:
                    del known[at]
            if not known:
                del self.positions[reader]

    def counts(self) -> dict[Reader, SeriesCount]:
        """The number of series of each reader."""
        return {reader: SeriesCount(4 * len(known), 0) for reader, known in self.positions.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderLag:
    """The lag of one client in all topics that it reads."""

    reader: Reader
    topics: Mapping[str, TopicLag]
    ages_ms: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The time since the last Fetch, by topic and index, of partitions that are not fetched any more."""

    @classmethod
    def of(cls, reader: Reader, found: Sequence[tuple[str, PartitionLag, Position]], now_ms: int) -> Self:
        """The lag of a reader in partitions.

        Args:
            reader: The client.
            found: Topic, lag and position of each partition.
            now_ms: The monotonic clock.
        """
        by_topic: dict[str, list[PartitionLag]] = {}
        for name, lag, _ in found:
            by_topic.setdefault(name, []).append(lag)
        ages_ms = {
            (name, lag.partition): max(now_ms - position.fetched_ms, 0)
            for name, lag, position in found
            if not position.is_fetched
        }
        topics = {name: TopicLag(partitions=tuple(sorted(by_topic[name]))) for name in sorted(by_topic)}
        return cls(reader=reader, topics=topics, ages_ms=ages_ms)

    @property
    def figures(self) -> Hashable:
        """All but the times: equal if nothing has moved."""
        topics = [(name, topic.figures) for name, topic in self.topics.items()]
        return tuple(topics), tuple(self.ages_ms)

    @property
    def shortest_ms(self) -> int | None:
        """The shortest time that grows with each second."""
        lags = (each.time_ms for topic in self.topics.values() for each in topic.partitions)
        return min(filter(None, [*lags, *self.ages_ms.values()]), default=None)

    @property
    def lag(self) -> int:
        """The sum."""
        return sum([topic.lag for topic in self.topics.values()])

    @property
    def time_ms(self) -> int | None:
        """The longest lag in time that is known; None if none is."""
        return max([each.time_ms for each in self.topics.values() if each.time_ms is not None], default=None)
