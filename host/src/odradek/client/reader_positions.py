"""The positions of the clients that are connected to a gateway, and the ends of what they read.

What clients fetch passes the gateway. The ends are asked for, because a client that is slow fetches rarely,
and so learns late how much there is to read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from odradek.client.asked_brokers import AskedBrokers
from odradek.client.cluster_ends import PARTITIONS_A_STEP, ClusterEnds
from odradek.lag.group_lag import SeriesCount
from odradek.lag.meter import Measured, MeasuredReader
from odradek.lag.readers import Reader, ReaderLag, ReaderTable, Reading
from odradek.waiting.clock import Clock
from odradek.waiting.steps import Steps


class ReaderPositions(ClusterEnds[Reader, ReaderLag]):
    """The clients of a gateway.

    Args:
        brokers: Of the cluster.
        clock: The time.
        readings: What each connection reads.
        wants_group: Whether a group of this id counts.
        wants_topic: Whether a topic of this name counts.
        reads: Whether records may be read, to know the time of old ones.
    """

    def __init__(
        self,
        brokers: AskedBrokers,
        clock: Clock,
        readings: Callable[[], Iterable[tuple[Reader, Reading]]],
        wants_group: Callable[[str], bool],
        wants_topic: Callable[[str], bool],
        *,
        reads: bool = True,
    ) -> None:
        super().__init__(brokers, clock, wants_topic, reads=reads)
        self.readings = readings
        self.wants_group = wants_group
        self.table = ReaderTable(self.name_of)

    @property
    def left_out(self) -> Mapping[str, int]:
        """The number of positions that this round does not measure, by reason."""
        return {"clients": self.table.left_out, "invalid": self.invalid}

    def name_of(self, topic: str | bytes) -> str | None:
        """The name of a topic that exists, and counts."""
        name = self.names.get(topic) if isinstance(topic, bytes) else topic
        return name if name in self.topics else None

    def learn_readers(self) -> Steps:
        """Look at what passes."""
        table = ReaderTable(self.name_of)
        for reader, reading in self.readings():
            if not reader.group or self.wants_group(reader.group):
                table.add(reader, reading)
            yield None
        table.close()
        self.table = table

    def places_read(self) -> Iterator[tuple[str, Iterable[int]]]:
        """What clients fetch."""
        for known in self.table.positions.values():
            for name, index in known:
                yield name, (index,)

    def groups(self) -> dict[Reader, SeriesCount]:
        """The clients of this round."""
        return self.table.counts()

    def is_empty(self, _reader: Reader) -> bool:
        """A client is no group."""
        return False

    def ends(self) -> tuple[()]:
        """Those that read groups tell of topics."""
        return ()

    def lag_of(self, reader: Reader) -> Generator[None, Any, MeasuredReader]:
        """Measure a client."""
        found = []
        for number, ((name, index), position) in enumerate(self.table.positions[reader].items()):
            at = self.topics[name].id, index
            ends = self.ends_at(at)
            if ends is not None:
                seen = ends.seen_by(read_committed=position.read_committed)
                found.append((name, self.meter.partition_lag(reader, at, position.offset, seen), position))
            if number % PARTITIONS_A_STEP == PARTITIONS_A_STEP - 1:
                yield None
        lag = ReaderLag.of(reader, found, self.clock.monotonic_ms())
        return Measured(lag, self.clock.now_ms())
