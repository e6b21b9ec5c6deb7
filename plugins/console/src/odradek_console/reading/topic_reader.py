"""A thread that reads the telemetry topic, from some hours ago on, and follows it.

It has no group and commits nothing. When the cluster is away it tries again until it is stopped; a restart
reads the last hours again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError, RequestFailed
from odradek.client.fetch import Reader, Received
from odradek.client.leaders import Partition
from odradek.client.resources import EARLIEST, LATEST
from odradek.plugin import ConfigError, Origin, TelemetryRecord
from odradek.topic import MalformedTelemetry
from odradek_console.engine.fleet import Fleet
from odradek_console.reading.records import decoded

log = logging.getLogger(__name__)
WAIT_MS: Final = 500
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 10.0
PARTITIONS_S: Final = 15.0
"""New partitions, and a topic that was created again, are noticed within this time."""
EXPIRE_S: Final = 30.0
CHECKED_AT_ONCE: Final = 50
AHEAD_MS: Final = 86_400_000
"""The clock of a host may be this far ahead."""
AT_ONCE: Final = 50
"""Records that are added without letting others look at the fleet."""


@dataclass(slots=True)
class Progress:
    """The progress of the reader. Any thread may read it."""

    is_caught_up: bool = False
    problem: str = "not connected yet"
    revision: int = 0
    """Grows with each addition to the fleet."""


@dataclass(slots=True)
class TopicReader:
    """Reads a topic into a fleet."""

    connect: Callable[[], AdminClient]
    """Makes a client; called again after each failure."""
    topic: str
    history_ms: int
    fleet: Fleet
    lock: threading.Lock
    """Held while the fleet changes."""
    prepare: Callable[[int, int], bool]
    """Makes some rows at a time; tells whether all are done."""
    progress: Progress = field(default_factory=Progress)
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    positions: dict[Partition, int] = field(default_factory=dict)
    ends: dict[Partition, int] = field(default_factory=dict)
    topic_id: bytes = b""
    stopped: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self.thread = threading.Thread(target=self.run, name="telemetry-reader", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait for it."""
        self.stopped.set()
        if self.thread is not None:
            self.thread.join(timeout=5.0)

    def run(self) -> None:
        """Read until stopped."""
        pause_s = FIRST_PAUSE_S
        while not self.stopped.is_set():
            try:
                with self.connect() as admin:
                    self.look(admin)
                    self.progress.problem = ""
                    pause_s = FIRST_PAUSE_S
                    self.follow(admin)
            except (ClientError, ConfigError, OSError) as error:
                self.progress.problem = str(error)
                if isinstance(error, RequestFailed) and error.code.name == "OFFSET_OUT_OF_RANGE":
                    self.positions.clear()
            except Exception as error:
                log.exception("the reader of the telemetry topic failed; it connects again")
                self.progress.problem = f"the reader failed: {error!r}"
            else:
                continue
            self.stopped.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def follow(self, admin: AdminClient) -> None:
        """Read while the cluster answers."""
        looked_s = expired_s = time.monotonic()
        reader = Reader(admin.cluster, self.positions)
        while not self.stopped.is_set():
            self.add(reader)
            self.check()
            self.progress.problem = str(reader.refusal) if reader.refusal is not None else ""
            if reader.refusal is not None:
                self.stopped.wait(FIRST_PAUSE_S)
            now_s = time.monotonic()
            if now_s - expired_s >= EXPIRE_S:
                expired_s = now_s
                with self.lock:
                    self.fleet.expire(self.now_ms())
            if now_s - looked_s >= PARTITIONS_S:
                looked_s = now_s
                if self.look(admin):
                    reader = Reader(admin.cluster, self.positions)

    def add(self, reader: Reader) -> None:
        """Read once, and add the records."""
        received = reader.poll(WAIT_MS)
        try:
            while batch := list(islice(received, AT_ONCE)):
                records = list(self.decoded(batch))
                with self.lock:
                    for record in records:
                        self.add_one(record)
                self.progress.revision += 1
        finally:
            self.positions = dict(reader.positions)
        if not self.progress.is_caught_up:
            self.progress.is_caught_up = all(
                self.positions.get(partition, 0) >= end for partition, end in self.ends.items()
            )

    def add_one(self, record: TelemetryRecord) -> None:
        """Add a record. One that fails is counted, so that it does not take the records after it along."""
        try:
            self.fleet.add(record)
        except Exception:
            counts = self.fleet.counts
            counts.failed_records += 1
            if not counts.failed_records & (counts.failed_records - 1):  # the 1st, 2nd, 4th, 8th, ...
                log.exception(
                    "a record could not be added: %s (%d so far)", record.position, counts.failed_records
                )

    def check(self) -> None:
        """Make the rows of clients that have pushed now, so that pages have them ready."""
        is_done = not self.progress.is_caught_up
        while not is_done and not self.stopped.is_set():
            with self.lock:
                is_done = self.prepare(CHECKED_AT_ONCE, self.now_ms())

    def decoded(self, batch: Iterable[Received]) -> Iterable[TelemetryRecord]:
        """The records of a batch; those of no host are counted."""
        for found in batch:
            try:
                record = decoded(found, self.now_ms() + AHEAD_MS)
            except MalformedTelemetry:
                self.fleet.counts.malformed_records += 1
                continue
            topic_id = self.topic_id.hex() or self.topic
            record.position = Origin(topic_id, found.partition[1], found.record.offset)
            yield record

    def look(self, admin: AdminClient) -> bool:
        """Find the partitions, and where to begin in those that are new; whether there are some.

        Raises:
            ClientError: The topic does not exist, or cannot be read.
        """
        (described,) = admin.describe_topics([self.topic])
        if described.topic_id != self.topic_id:
            self.positions.clear()
            self.ends.clear()
            self.topic_id = described.topic_id
        known = {(self.topic, each.index) for each in described.partitions}
        new = sorted(known - self.positions.keys())
        if not new:
            return False
        since_ms = self.now_ms() - self.history_ms
        begins = admin.list_offsets(dict.fromkeys(new, since_ms))
        firsts = admin.list_offsets(dict.fromkeys(new, EARLIEST))
        ends = admin.list_offsets(dict.fromkeys(new, LATEST))
        for partition in new:
            begin, end = begins[partition].offset, ends[partition].offset
            self.positions[partition] = max(begin if begin >= 0 else end, firsts[partition].offset)
            self.ends[partition] = end
        self.progress.is_caught_up = all(
            self.positions.get(partition, 0) >= end for partition, end in self.ends.items()
        )
        return True
