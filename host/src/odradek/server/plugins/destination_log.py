"""The log of one destination: one line when it goes down, one when it delivers again, none per attempt."""

from __future__ import annotations

import logging

from odradek.server.plugins.bounded_call import described

log = logging.getLogger(__name__)


class DestinationLog:
    """Knows whether the destination of one forwarder is down. Used by the forwarder's thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.down_since_ms: int | None = None
        """None while it delivers."""
        self.attempts = 0
        """Failed calls of ``deliver`` since then."""

    def failed(self, error: Exception, records: int, now_ms: int) -> None:
        """A call failed and will be tried again. Only the first one is a warning."""
        level = logging.DEBUG
        message = "destination is still down"
        if self.down_since_ms is None:
            self.down_since_ms, self.attempts = now_ms, 0
            level, message = logging.WARNING, "destination is down, trying again"
        self.attempts += 1
        log.log(level, message, extra={"plugin": self.name, "problem": described(error), "records": records})

    def refused(self, error: Exception, records: int) -> None:
        """The destination answered that it will never take some of the records."""
        extra = {"plugin": self.name, "problem": described(error), "records": records}
        log.warning("destination refused records", extra=extra)

    def delivered(self, now_ms: int) -> None:
        """A call succeeded."""
        if self.down_since_ms is None:
            return
        extra = {
            "plugin": self.name,
            "down_s": round((now_ms - self.down_since_ms) / 1000, 1),
            "attempts": self.attempts,
        }
        self.down_since_ms = None
        log.warning("destination delivers again", extra=extra)
