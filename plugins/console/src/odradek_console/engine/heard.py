"""Where clients are heard: at a gateway, or at a broker. While nobody is heard there, nobody is silent.

A client that is alone at its place cannot be told from a place that is away: its own time counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LATE: Final = 1.75
"""Push intervals without any push that are too long: a client waits for at most 1.5 of them."""
LEAST_AWAY_MS: Final = 10_000


@dataclass(slots=True)
class Heard:
    """The pushes at one place. Any client that says goodbye is heard, too."""

    last_id: bytes = b""
    last_ms: int = 0
    other_ms: int = 0
    """The last push of another client than the last one."""
    interval_ms: int = 0
    gone_ms: int = 0
    """The time in which nobody was heard, up to the last push."""

    def push(self, instance_id: bytes, now_ms: int, interval_ms: int) -> int:
        """Take note of a push, and return the time in which nobody was heard."""
        if self.last_ms:
            self.gone_ms += self.gap_ms(now_ms)
        if instance_id != self.last_id:
            self.last_id, self.other_ms = instance_id, self.last_ms
        self.last_ms, self.interval_ms = max(now_ms, self.last_ms), interval_ms
        return self.gone_ms

    def gap_ms(self, now_ms: int) -> int:
        """The time since the last push, if it is too long."""
        gap_ms = now_ms - self.last_ms
        return gap_ms if gap_ms > max(LEAST_AWAY_MS, LATE * self.interval_ms) else 0

    def away_ms(self, instance_id: bytes, pushed_ms: int, now_ms: int) -> int:
        """The time in which nobody was heard until now, as a client sees it that pushed last at a time."""
        other_ms = self.other_ms if instance_id == self.last_id else self.last_ms
        is_alone = pushed_ms - other_ms > max(LEAST_AWAY_MS, LATE * self.interval_ms)
        return self.gone_ms if is_alone else self.gone_ms + self.gap_ms(now_ms)
