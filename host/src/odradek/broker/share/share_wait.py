"""A share fetch that waits for records. After Kafka's DelayedShareFetch, but a release wakes it, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from odradek.broker.share.share_look import ShareLook
from odradek.log.partition_log import Listener, PartitionLog
from odradek.share.deliveries import Delivery, PartitionKey
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.waiting.deferred import Deferred

MAX_WAIT_MS: Final = 300_000
"""Limit of ``max_wait_ms``."""


@dataclass(slots=True, eq=False)
class ShareWait:
    """One waiting fetch.

    Args:
        clock: The time.
        timer: Ends the wait.
        look: Looks at the partitions once more.
        respond: Makes the answer from a look.
    """

    clock: Clock
    timer: Timer
    look: Callable[[], ShareLook]
    respond: Callable[[ShareLook], object]
    deferred: Deferred[Any] = field(default_factory=Deferred)
    timeout: TimerTask | None = None
    listening: list[tuple[PartitionLog, Listener, Delivery, Callable[[], None]]] = field(default_factory=list)

    def start(self, found: ShareLook, wait_ms: int) -> Deferred[Any]:
        """Wait for records of the partitions of a first look."""
        deadline_ms = self.clock.monotonic_ms() + min(wait_ms, MAX_WAIT_MS)
        self.timeout = self.timer.schedule(deadline_ms, self.finish)
        for key, (delivery, log) in found.readable.items():
            appended, released = partial(self.woken, found, key), partial(self.woken, found, key, 1)
            log.listeners.add(appended)
            delivery.partition.listeners[released] = None
            self.listening.append((log, appended, delivery, released))
        self.deferred.abandon = self.stop
        self.deferred.hurry = self.finish
        return self.deferred

    def woken(self, found: ShareLook, key: PartitionKey, appended_bytes: int) -> None:
        """One partition may have records now, or is gone (0 bytes)."""
        found.offers.pop(key, None)
        found.one(key, found.params.max_bytes)
        if not appended_bytes or key in found.errors or found.is_enough:
            self.finish()

    def finish(self) -> None:
        """Answer with the records that are there now."""
        self.stop()
        self.deferred.complete_by(lambda: self.respond(self.look()))

    def stop(self) -> None:
        """Stop waiting. Nothing holds this object any longer."""
        self.deferred.abandon = self.deferred.hurry = None
        if self.timeout is not None:
            self.timeout.cancel()
        for log, appended, delivery, released in self.listening:
            log.listeners.discard(appended)
            delivery.partition.listeners.pop(released, None)
        self.listening.clear()
