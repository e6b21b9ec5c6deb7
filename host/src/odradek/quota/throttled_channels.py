"""Channels that are not read for a while; after ThrottledChannel and the reaper of ClientQuotaManager."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from odradek.clock import Timer, TimerTask

COMPACT_FROM = 64
"""A queue of so few places is never cleared of dead ones."""


@dataclass(slots=True, eq=False)
class ThrottledChannel:
    """One channel and when it may be read again."""

    end_ms: int
    on_end: Callable[[], None] | None = None
    """Called once the time is over."""
    task: TimerTask | None = None
    discarded: bool = False

    def delay_ms(self, now_ms: int) -> int:
        """Milliseconds left; negative when it is late."""
        return self.end_ms - now_ms


@dataclass(slots=True, eq=False)
class ThrottledChannels:
    """The delay queue of one manager, by the end of the delay.

    With a timer the ends are called when they are due; without one, whoever looks calls `release`.
    """

    timer: Timer | None = None
    heap: list[tuple[int, int, ThrottledChannel]] = field(default_factory=list)
    discarded: int = 0
    """Of those in the heap."""
    serial: count[int] = field(default_factory=count)

    def throttle(
        self,
        throttle_ms: int,
        now_ms: int,
        on_start: Callable[[], None] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> ThrottledChannel:
        """Begin to throttle a channel; ``on_start`` is called at once."""
        self.release(now_ms)
        channel = ThrottledChannel(now_ms + throttle_ms, on_end)
        if on_start is not None:
            on_start()
        heapq.heappush(self.heap, (channel.end_ms, next(self.serial), channel))
        if self.timer is not None and on_end is not None:
            channel.task = self.timer.schedule(channel.end_ms, lambda: self.release_all(channel.end_ms))
        return channel

    def discard(self, channel: ThrottledChannel) -> None:
        """Forget a channel that is closed: clients that come and go do not make the queue grow."""
        channel.discarded, channel.on_end = True, None
        if channel.task is not None:
            channel.task.cancel()
            channel.task = None
        self.discarded += 1
        if len(self.heap) > COMPACT_FROM and self.discarded * 2 > len(self.heap):
            self.heap = [entry for entry in self.heap if not entry[2].discarded]
            heapq.heapify(self.heap)
            self.discarded = 0

    def release_all(self, now_ms: int) -> None:
        """`release` as an action of the timer."""
        self.release(now_ms)

    def release(self, now_ms: int) -> int:
        """End all throttles whose time is over; how many."""
        released = 0
        while self.heap and self.heap[0][0] <= now_ms:
            channel = heapq.heappop(self.heap)[2]
            if channel.discarded:
                self.discarded -= 1
                continue
            released += 1
            if channel.on_end is not None:
                channel.on_end()
        return released

    def size(self, now_ms: int) -> int:
        """Channels that are throttled now."""
        self.release(now_ms)
        return len(self.heap) - self.discarded
