"""Pushes on their way to the telemetry topic of a cluster, which has to acknowledge each before its answer.

Sans-io: a plugin's `TopicWriter` sends the records, and the clock is passed in. Everything runs on one
thread, the host's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from odradek.bounds.sampled_log import SampledLog
from odradek.delivery.delivery_ledger import count
from odradek.plugin.protocols import TelemetryRecord
from odradek.plugin.topic_writer import NotWritten
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.waiting.deferred import Deferred

log = logging.getLogger(__name__)

RECORD_BYTES: Final = 2_048
"""Counted for each record besides its payload: key, headers and objects."""
TRY_MS: Final = 1_000
"""While the cluster acknowledges nothing, one push in this time is sent to it."""
UNAVAILABLE: Final = "unavailable"
"""The reason of the other refusals in that time."""
TIMED_OUT: Final = NotWritten("telemetry.acknowledge.timeout.ms", "no acknowledgment in time")
FAULT: Final = "fault"
"""The reason if the plugin raises."""
STOPPED: Final = NotWritten("stopped", "the host stops")

Write = Callable[[int, TelemetryRecord], None]
"""Begin to write a record with this number; `ClusterWriter.settle` follows."""


@dataclass(slots=True, eq=False)
class Entry:
    """A record without an acknowledgment."""

    size_bytes: int
    deadline_ms: int
    acknowledged_before: int
    """How many were acknowledged when it was sent."""
    kept: Deferred[bool] = field(default_factory=Deferred)


@dataclass(slots=True, eq=False)
class ClusterWriter:
    """Sends records, within bounds, and completes the deferred of each."""

    clock: Clock
    timer: Timer
    write: Write
    max_bytes: int
    max_records: int
    """Bounds of all records that are not settled."""
    timeout_ms: int
    """A record that is not acknowledged after this time is refused."""
    acknowledged: int = 0
    late: int = 0
    """Records that were acknowledged after they had been refused: their clients push the same again."""
    refused: dict[str, int] = field(default_factory=dict)
    """Records that were not kept, by reason."""
    held_bytes: int = 0
    waiting: dict[int, Entry] = field(default_factory=dict)
    """By number, the oldest first."""
    overdue: dict[int, Entry] = field(default_factory=dict)
    """Records that were refused, but of which the plugin has not reported: it still holds them."""
    number: int = 0
    down_since_ms: int | None = None
    """Since when the cluster acknowledges nothing; None while it does."""
    refused_before: int = 0
    """All refusals when that began."""
    next_try_ms: int = 0
    expiry: TimerTask | None = None
    is_closed: bool = False
    problems: SampledLog = field(default_factory=lambda: SampledLog(log))

    def append(self, record: TelemetryRecord) -> bool | Deferred[bool]:
        """Take a record.

        Returns:
            Whether it is kept, which `answer` says when the cluster has answered; False at once without room.
        """
        size_bytes = len(record.payload.data) + RECORD_BYTES
        now_ms = self.clock.monotonic_ms()
        bound = self.bound(size_bytes, now_ms)
        if bound is not None:
            count(self.refused, bound, 1)
            return False
        self.number = number = self.number + 1
        entry = self.waiting[number] = Entry(size_bytes, now_ms + self.timeout_ms, self.acknowledged)
        self.held_bytes += size_bytes
        if self.expiry is None:
            self.expiry = self.timer.schedule(entry.deadline_ms, self.expire)
        try:
            self.write(number, record)
        except Exception as error:
            log.exception("push cannot be sent")
            self.settle(number, NotWritten(FAULT, repr(error)))
        return entry.kept

    def bound(self, size_bytes: int, now_ms: int) -> str | None:
        """The reason why a record of this size cannot be sent now; None if it can."""
        if self.is_closed:
            return STOPPED.reason
        if self.held_bytes + size_bytes > self.max_bytes:
            return "telemetry.buffer.max.bytes"
        if self.in_flight >= self.max_records:
            return "telemetry.buffer.max.records"
        if self.down_since_ms is not None:
            if now_ms < self.next_try_ms:
                return UNAVAILABLE
            self.next_try_ms = now_ms + TRY_MS
        return None

    @property
    def in_flight(self) -> int:
        """Records that the plugin holds."""
        return len(self.waiting) + len(self.overdue)

    def settle(self, number: int, problem: NotWritten | None) -> None:
        """Take the report about a record; None if the cluster acknowledged it."""
        entry = self.waiting.pop(number, None)
        if entry is not None:
            self.held_bytes -= entry.size_bytes
            self.answer(entry, problem)
            return
        entry = self.overdue.pop(number, None)
        if entry is not None:
            self.held_bytes -= entry.size_bytes
            if problem is None:
                self.late += 1
                self.works()

    def answer(self, entry: Entry, problem: NotWritten | None) -> None:
        """Complete the deferred of a record."""
        if problem is None:
            self.acknowledged += 1
            self.works()
        else:
            count(self.refused, problem.reason, 1)
            self.fails(entry, problem)
        entry.kept.complete(problem is None)

    def expire(self) -> None:
        """Refuse the records that have waited for too long."""
        self.expiry, now_ms = None, self.clock.monotonic_ms()
        while self.waiting:
            number, entry = next(iter(self.waiting.items()))
            if entry.deadline_ms > now_ms:
                self.expiry = self.timer.schedule(entry.deadline_ms, self.expire)
                return
            self.overdue[number] = self.waiting.pop(number)
            self.answer(entry, TIMED_OUT)

    def close(self) -> None:
        """Refuse all records that wait, and all that follow."""
        self.is_closed = True
        while self.waiting:
            number = next(iter(self.waiting))
            self.settle(number, STOPPED)
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None

    # The state of the cluster, for the log

    def works(self) -> None:
        """The cluster has acknowledged a record."""
        if self.down_since_ms is None:
            return
        down_s = (self.clock.monotonic_ms() - self.down_since_ms) / 1000
        refused = sum(self.refused.values()) - self.refused_before
        self.down_since_ms = None
        log.warning(
            "the cluster acknowledges pushes again", extra={"after_s": round(down_s, 1), "refused": refused}
        )

    def fails(self, entry: Entry, problem: NotWritten) -> None:
        """The cluster has not acknowledged a record. If nothing was acknowledged since it was sent, the
        following ones would wait in vain, too.
        """
        if self.is_closed or self.down_since_ms is not None:
            return
        now_ms = self.clock.monotonic_ms()
        if problem.of_record or entry.acknowledged_before != self.acknowledged:
            self.problems.write(
                logging.ERROR,
                now_ms,
                "the cluster has refused a push",
                reason=problem.reason,
                problem=problem.text,
            )
            return
        self.down_since_ms, self.next_try_ms = now_ms, now_ms + TRY_MS
        self.refused_before = sum(self.refused.values())
        log.error(
            "the cluster acknowledges no pushes: they are refused, and clients push again later",
            extra={"reason": problem.reason, "problem": problem.text},
        )
