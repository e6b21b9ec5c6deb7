"""Start and last time of streams, through gaps, overlaps and wrong clocks of clients.

Times never decide whether a point is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odradek.temporality.client_state import ClientState
from odradek.temporality.counts import Counts

NS_PER_MS: Final = 1_000_000
GAP_TOLERANCE_NS: Final = NS_PER_MS
"""Java's times are whole milliseconds."""
AFTER_LAST_NS: Final = NS_PER_MS
"""From the last time of an epoch to the start of the next, if the client does not tell that."""
MAX_NS: Final = 2**63 - 1


@dataclass(slots=True)
class StreamTimes:
    """Moves the times of the streams of a push."""

    counts: Counts
    reset_on_gap: bool
    client: ClientState
    interval_ns: int
    now_ns: int
    """When the host received the push: the time of points whose time is missing."""

    def move(self, position: int, start: int, time: int) -> None:
        """Take the times of a delta point, before its value is added."""
        times = self.client.times
        time = self.valid(time)
        last = times[2 * position + 1]
        if not last:
            times[2 * position] = self.first_start(start, time)
        elif not 0 < start <= time:
            self.counts.bad_starts += 1
        elif start > last:
            self.gap(position, start, start - last)
        elif start < last:
            self.counts.overlaps += 1
        times[2 * position + 1] = max(time, times[2 * position + 1])

    def gap(self, position: int, start: int, missing_ns: int) -> None:
        if missing_ns <= GAP_TOLERANCE_NS:
            return
        self.counts.gaps += 1
        self.counts.gap_ns += missing_ns
        if self.reset_on_gap:
            self.begin_again(position, start)

    def move_cumulative(self, position: int, start: int, time: int) -> None:
        """Take the times of a cumulative point."""
        times = self.client.times
        time = self.valid(time)
        if not times[2 * position + 1]:
            times[2 * position] = self.first_start(start, time)
        times[2 * position + 1] = max(time, times[2 * position + 1])

    def begin_again(self, position: int, start: int) -> None:
        """Begin a new epoch: the total is lost, and the start is after the last time of the old one."""
        self.counts.epochs += 1
        client, first = self.client, 2 * position
        last = client.times[first + 1]
        client.amounts[first] = client.amounts[first + 1] = 0.0
        client.distributions.pop(position, None)
        start = start if last < start <= MAX_NS else min(last + AFTER_LAST_NS, MAX_NS)
        client.times[first] = start
        client.times[first + 1] = max(start, last)

    def first_start(self, start: int, time: int) -> int:
        """The start of a new stream."""
        if 0 < start <= time:
            return start
        self.counts.bad_starts += 1
        return max(0, time - self.interval_ns)

    def valid(self, time: int) -> int:
        return time if 0 < time <= MAX_NS else self.now_ns
