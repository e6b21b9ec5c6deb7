"""The progress of a client under a quota."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

PAUSE_S = 2


@dataclass(slots=True)
class Progress:
    """Received bytes, and their times."""

    arrivals: list[tuple[float, int]] = field(default_factory=list)
    """Seconds, and the total of bytes so far."""

    def arrived(self, size: int) -> None:
        """Add this many bytes at this time."""
        self.arrivals.append((time.monotonic(), self.total + size))

    @property
    def total(self) -> int:
        return self.arrivals[-1][1] if self.arrivals else 0

    def rate_after(self, skipped_s: float) -> float:
        """Bytes per second, without the burst at the beginning."""
        late = [row for row in self.arrivals if row[0] >= self.arrivals[0][0] + skipped_s]
        (begin_s, begin), (end_s, end) = late[0], late[-1]
        return (end - begin) / (end_s - begin_s)

    def rate_between_bursts(self) -> float:
        """Bytes per second from the first to the last reception after a pause.

        A throttled fetch is not charged, so the initial burst is allowed again when it has left the windows:
        consumers use their quota in bursts, eleven seconds apart.
        """
        pairs = zip(self.arrivals, self.arrivals[1:], strict=False)
        starts = [before[1] for before, after in pairs if after[0] - before[0] > PAUSE_S]
        begins = [next(at for at, total in self.arrivals if total > start) for start in starts]
        assert len(starts) > 2
        return (starts[-1] - starts[0]) / (begins[-1] - begins[0])
