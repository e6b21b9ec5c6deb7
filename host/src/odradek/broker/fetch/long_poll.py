"""A fetch that waits for enough bytes, or for its time to end. After Kafka's DelayedFetch.

A waiting fetch keeps no records: it counts the bytes that are missing, and reads again when it answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from odradek.broker.fetch.fetch_read import Read
from odradek.log.partition_log import Listener, PartitionLog
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.waiting.deferred import Deferred

MAX_WAIT_MS = 300_000
"""Limit of ``max_wait_ms``."""
LOOK_MS = 10
"""The least time between two looks for committed bytes: each reads every partition."""


@dataclass(slots=True, eq=False)
class LongPoll:
    """One waiting fetch.

    Args:
        clock: The time.
        timer: Ends the wait.
        min_bytes: The bytes that the client waits for, within the limits of its request.
        missing_bytes: How many of them the first read did not find.
        logs: The logs in which to wait for them.
        read_committed: Whether the client reads committed records only.
        again: Reads once more.
        respond: Makes the answer from a read.
    """

    clock: Clock
    timer: Timer
    min_bytes: int
    missing_bytes: int
    logs: list[PartitionLog]
    read_committed: bool
    again: Callable[[], Read]
    respond: Callable[[Read], object]
    deferred: Deferred[Any] = field(default_factory=Deferred)
    listeners: list[tuple[PartitionLog, Listener]] = field(default_factory=list)
    timeout: TimerTask | None = None
    look: TimerTask | None = None
    """The next look for committed bytes; None if there are no more than last time."""

    def start(self, wait_ms: int) -> Deferred[Any]:
        """Wait for appends."""
        deadline_ms = self.clock.monotonic_ms() + min(wait_ms, MAX_WAIT_MS)
        self.timeout = self.timer.schedule(deadline_ms, self.finish)
        for log in self.logs:
            listener = self.appended
            if self.read_committed:
                listener = CommittedListener(self, log, log.last_stable_offset)
            log.listeners.add(listener)
            self.listeners.append((log, listener))
        self.deferred.abandon = self.stop
        self.deferred.hurry = self.finish
        return self.deferred

    def appended(self, appended_bytes: int) -> None:
        """A log has grown, or was deleted (0 bytes)."""
        self.missing_bytes -= appended_bytes
        if appended_bytes == 0 or self.missing_bytes <= 0:
            self.finish()

    def stable_grew(self) -> None:
        """Answer, or look soon: the end of one transaction may release many bytes."""
        if self.min_bytes <= 1:
            self.finish()
        elif self.look is None:
            self.look = self.timer.schedule(self.clock.monotonic_ms() + LOOK_MS, self.look_again)

    def look_again(self) -> None:
        """Answer if there are enough bytes now."""
        self.look = None
        found = self.again()
        if found.failed or found.bytes_read >= self.min_bytes:
            self.stop()
            self.deferred.complete_by(lambda: self.respond(found))

    def finish(self) -> None:
        """Answer with the bytes that are available now."""
        self.stop()
        self.deferred.complete_by(lambda: self.respond(self.again()))

    def stop(self) -> None:
        """Stop waiting. The logs, the timer and the answer no longer hold this object."""
        self.deferred.abandon = self.deferred.hurry = None
        for task in (self.timeout, self.look):
            if task is not None:
                task.cancel()
        for log, listener in self.listeners:
            log.listeners.discard(listener)
        self.listeners.clear()


@dataclass(slots=True, eq=False)
class CommittedListener:
    """Tells a poll when consumers of committed records can read more of one log."""

    poll: LongPoll
    log: PartitionLog
    stable_offset: int

    def __call__(self, appended_bytes: int) -> None:
        """The log has grown, or was deleted (0 bytes)."""
        if appended_bytes == 0:
            self.poll.finish()
        elif self.log.last_stable_offset != self.stable_offset:
            self.stable_offset = self.log.last_stable_offset
            self.poll.stable_grew()
