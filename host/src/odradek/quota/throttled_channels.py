"""Channels that are muted for a while; after ThrottledChannel and the reaper of ClientQuotaManager."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from odradek.waiting.clock import Timer, TimerTask

COMPACT_FROM = 64
"""A queue with no more entries than this is never compacted."""


@dataclass(slots=True, eq=False)
class ThrottledChannel:
    """One channel and when it may be read again."""

    end_ms: int
    on_end: Callable[[], None] | None = None
    """Called once the throttle time is over."""
    task: TimerTask | None = None
    discarded: bool = False

    def delay_ms(self, now_ms: int) -> int:
        """Milliseconds left; negative if the end has passed."""
        return self.end_ms - now_ms


@dataclass(slots=True, eq=False)
class ThrottledChannels:
    """The delay queue of one manager, ordered by the end of the throttle time.

    With a timer, ``on_end`` is called when it is due; without one, at the next call of any method.
    """

    timer: Timer | None = None
    heap: list[tuple[int, int, ThrottledChannel]] = field(default_factory=list)
    discarded: int = 0
    """Number of discarded channels in the heap."""
    serial: count[int] = field(default_factory=count)

    def throttle(
        self,
        throttle_ms: int,
        now_ms: int,
        on_start: Callable[[], None] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> ThrottledChannel:
        """Start to throttle a channel; ``on_start`` is called at once."""
        self.release(now_ms)
        channel = ThrottledChannel(now_ms + throttle_ms, on_end)
        if on_start is not None:
            on_start()
        heapq.heappush(self.heap, (channel.end_ms, next(self.serial), channel))
        if self.timer is not None and on_end is not None:
            channel.task = self.timer.schedule(channel.end_ms, lambda: self.release_all(channel.end_ms))
        return channel

    def discard(self, channel: ThrottledChannel) -> None:
        """Forget a closed channel. The heap is compacted once most entries are discarded, so that short-lived
        clients do not make it grow.
        """
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
        """`release` as a timer action."""
        self.release(now_ms)

    def release(self, now_ms: int) -> int:
        """End all throttles whose time is over and return how many."""
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
        """The number of channels that are throttled now."""
        self.release(now_ms)
        return len(self.heap) - self.discarded
