"""A fetch that waits: for enough bytes, or for its time to end. After Kafka's DelayedFetch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from odradek.broker.broker import Broker
from odradek.broker.deferred import Deferred
from odradek.broker.fetch_read import Read
from odradek.clock import TimerTask
from odradek.log.partition_log import PartitionLog
from odradek.wire.messages.fetch import FetchResponse

MAX_WAIT_MS = 300_000
"""Nobody waits longer: a larger ``max_wait_ms`` is cut."""


@dataclass(slots=True, eq=False)
class LongPoll:
    """One waiting fetch.

    Args:
        broker: Its clock and timer.
        min_bytes: What the client waits for, within the limits of its request.
        first: What was there when it asked.
        again: Reads once more.
        respond: Makes the answer of what was read.
    """

    broker: Broker
    min_bytes: int
    first: Read
    again: Callable[[], Read]
    respond: Callable[[Read], FetchResponse]
    deferred: Deferred = field(default_factory=Deferred)
    logs: list[PartitionLog] = field(init=False)
    missing_bytes: int = field(init=False)
    stable_offsets: int = field(init=False)
    timeout: TimerTask | None = None

    def __post_init__(self) -> None:
        self.logs = self.first.logs
        self.missing_bytes = self.min_bytes - self.first.bytes_read
        self.stable_offsets = self.stable()

    def start(self, wait_ms: int) -> Deferred:
        """Wait for appends."""
        deadline_ms = self.broker.clock.now_ms() + min(wait_ms, MAX_WAIT_MS)
        self.timeout = self.broker.timer.schedule(deadline_ms, self.finish)
        for log in self.logs:
            log.listeners.add(self.appended)
        self.deferred.abandon = self.stop
        self.deferred.hurry = self.finish
        return self.deferred

    def stable(self) -> int:
        """Grows when transactions end."""
        return sum(log.last_stable_offset for log in self.logs) if self.first.params.read_committed else 0

    def appended(self, appended_bytes: int) -> None:
        """A log has grown, or was deleted (0 bytes)."""
        if appended_bytes == 0:
            self.finish()
        elif self.first.params.read_committed:
            self.look_again()
        else:
            self.missing_bytes -= appended_bytes
            if self.missing_bytes <= 0:
                self.finish()

    def look_again(self) -> None:
        """What counts is what lies before the open transactions: one marker may free a lot."""
        stable = self.stable()
        if stable == self.stable_offsets:
            return
        self.stable_offsets = stable
        found = self.again()
        if found.failed or found.bytes_read >= self.min_bytes:
            self.stop()
            self.deferred.complete_by(lambda: self.respond(found))

    def finish(self) -> None:
        """Answer with what is there now."""
        self.stop()
        self.deferred.complete_by(lambda: self.respond(self.again()))

    def stop(self) -> None:
        """Wait no longer."""
        if self.timeout is not None:
            self.timeout.cancel()
        for log in self.logs:
            log.listeners.discard(self.appended)
