"""A log that events cannot flood, however often a client or a plugin causes them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

INTERVAL_MS: Final = 60_000


@dataclass(slots=True)
class SampledLog:
    """Writes the first events of each interval, and counts the others."""

    log: logging.Logger
    most: int = 1
    """Lines in one interval."""
    interval_ms: int = INTERVAL_MS
    ends_ms: int = 0
    """When the interval of the latest line ends."""
    written: int = 0
    """Lines in that interval."""
    unlogged: int = 0
    """Events since the latest line."""

    def write(
        self,
        level: int,
        now_ms: int,
        message: str,
        *arguments: object,
        error: BaseException | None = None,
        **fields: object,
    ) -> None:
        """Log an event, or count it if this interval has enough lines.

        Args:
            level: As in `logging`.
            now_ms: Monotonic time.
            message: The line, with places for ``arguments``.
            arguments: Values for the line.
            error: An exception to log with its traceback.
            fields: More about the event. The line also has ``unlogged``, the number of events that were not
                logged since the line before.
        """
        if now_ms >= self.ends_ms:
            self.ends_ms, self.written = now_ms + self.interval_ms, 0
        if self.written >= self.most:
            self.unlogged += 1
            return
        self.written += 1
        fields["unlogged"], self.unlogged = self.unlogged, 0
        self.log.log(level, message, *arguments, exc_info=error, extra=fields)
