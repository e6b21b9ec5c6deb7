"""The clients that read partitions of a host, from the Fetch requests that it serves."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

from odradek.broker.fetch.fetch_reads import FetchReads
from odradek.broker.host_positions import PARTITIONS_A_STEP, LogLooks
from odradek.broker.topics import Topics
from odradek.group.group_coordinator import GroupCoordinator
from odradek.lag.group_lag import SeriesCount
from odradek.lag.meter import Measured, MeasuredReader
from odradek.lag.readers import Reader, ReaderLag, ReaderTable
from odradek.lag.standing import Ends
from odradek.waiting.clock import Clock
from odradek.waiting.steps import Steps


class HostReaders(LogLooks):
    """The clients of a host.

    Args:
        reads: What the connections read.
        groups: Of the host.
        topics: Likewise.
        clock: The time.
        wants_group: Whether a group of this id counts.
        wants_topic: Whether a topic of this name counts.
        observer: The name of the host.
    """

    def __init__(
        self,
        reads: FetchReads,
        groups: GroupCoordinator,
        topics: Topics,
        clock: Clock,
        wants_group: Callable[[str], bool],
        wants_topic: Callable[[str], bool],
        observer: str,
    ) -> None:
        super().__init__(topics, clock)
        self.reads = reads
        self.coordinator = groups
        self.wants_group = wants_group
        self.wants_topic = wants_topic
        self.observer = observer
        self.outcome = "completed"
        self.table = ReaderTable(self.name_of)

    @property
    def left_out(self) -> dict[str, int]:
        """The number of positions that this round does not measure, by reason."""
        return {"clients": self.table.left_out}

    def name_of(self, topic: str | bytes) -> str | None:
        """The name of a topic that exists, and counts."""
        found = self.topics.by_id.get(topic) if isinstance(topic, bytes) else self.topics.by_name.get(topic)
        return found.name if found is not None and self.wants_topic(found.name) else None

    def note_ends(self) -> Steps:
        """Note the ends of the partitions that clients read, and forget the others."""
        read = dict.fromkeys(at for known in self.table.positions.values() for at in known)
        ids = set()
        for number, (name, index) in enumerate(read):
            topic = self.topics.by_name.get(name)
            log = None if topic is None else topic.partition(index)
            if topic is not None and log is not None and log.has_offsets:
                ids.add(topic.id)
                self.meter.note((topic.id, index), log.high_watermark, self.clock.monotonic_ms())
            if not number % PARTITIONS_A_STEP:
                yield None
        self.meter.keep(ids)

    def begin(self) -> Steps:
        """Look at what the connections read."""
        self.meter.begin()
        groups = self.groups_by_place()
        owned = self.coordinator.offsets.owned
        table = ReaderTable(self.name_of)
        for context, reading in self.reads.look(self.clock.monotonic_ms()):
            connection, client_id = context.connection, context.client_id or ""
            group = groups.get((client_id, connection.client_address), "")
            if group not in owned and (not group or self.wants_group(group)):
                reader = Reader(
                    client_id,
                    connection.client_address,
                    group,
                    connection.client_software_name,
                    connection.client_software_version,
                    connection.principal,
                    self.observer,
                )
                table.add(reader, reading)
            yield None
        table.close()
        self.table = table

    def groups_by_place(self) -> dict[tuple[str, str], str]:
        """The group of each client, by client id and address; empty if it is in several."""
        found: dict[tuple[str, str], str] = {}
        for group in list(self.coordinator):
            for member in group.members.values():
                place = member.client_id, member.client_host.removeprefix("/")
                found[place] = group.group_id if found.get(place, group.group_id) == group.group_id else ""
        return found

    def groups(self) -> dict[Reader, SeriesCount]:
        """The clients of this round."""
        return self.table.counts()

    def is_empty(self, _reader: Reader) -> bool:
        """A client is no group."""
        return False

    def ends(self) -> Iterator[Any]:
        """The lag of groups tells of topics."""
        return iter(())

    def measured(self, reader: Reader) -> Generator[None, Any, MeasuredReader]:
        """The lag of a client."""
        found = []
        for (name, index), position in self.table.positions[reader].items():
            topic = self.topics.by_name.get(name)
            log = topic.partition(index) if topic is not None else None
            if topic is not None and log is not None and not log.offline:
                ends = Ends(log.log_start_offset, log.high_watermark, log.last_stable_offset)
                self.meter.note((topic.id, index), ends.high_watermark, self.clock.monotonic_ms())
                seen = ends.seen_by(read_committed=position.read_committed)
                lag = self.meter.partition_lag(reader, (topic.id, index), position.offset, seen)
                found.append((name, lag, position))
            self.work += 1
            if self.work >= PARTITIONS_A_STEP:
                self.work = 0
                yield None
        return Measured(ReaderLag.of(reader, found, self.clock.monotonic_ms()), self.clock.now_ms())
