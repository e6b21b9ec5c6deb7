"""How fast a client gets on that is held to a quota."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

PAUSE_S = 2


@dataclass(slots=True)
class Progress:
    """Bytes that arrived, and when."""

    arrivals: list[tuple[float, int]] = field(default_factory=list)
    """Seconds, and all bytes so far."""

    def arrived(self, size: int) -> None:
        """So many bytes more, now."""
        self.arrivals.append((time.monotonic(), self.total + size))

    @property
    def total(self) -> int:
        return self.arrivals[-1][1] if self.arrivals else 0

    def rate_after(self, skipped_s: float) -> float:
        """Bytes per second, without what was granted in the beginning."""
        late = [row for row in self.arrivals if row[0] >= self.arrivals[0][0] + skipped_s]
        (begin_s, begin), (end_s, end) = late[0], late[-1]
        return (end - begin) / (end_s - begin_s)

    def rate_between_bursts(self) -> float:
        """Bytes per second from the first to the last time that something came after a pause.

        A fetch that is throttled costs nothing, so what was granted at once is granted at once again when it
        has left the windows: consumers are held to their quota in bursts, eleven seconds apart.
        """
        pairs = zip(self.arrivals, self.arrivals[1:], strict=False)
        starts = [before[1] for before, after in pairs if after[0] - before[0] > PAUSE_S]
        begins = [next(at for at, total in self.arrivals if total > start) for start in starts]
        assert len(starts) > 2
        return (starts[-1] - starts[0]) / (begins[-1] - begins[0])
