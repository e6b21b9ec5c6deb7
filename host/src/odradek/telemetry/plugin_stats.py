"""Counters of each plugin, and a log that a failing plugin cannot flood."""

from __future__ import annotations

import logging
from dataclasses import dataclass

log = logging.getLogger(__name__)

LOG_INTERVAL_MS = 60_000
"""A plugin that fails all the time is logged once per this time."""
MAX_ERROR_CHARS = 200


@dataclass(slots=True)
class PluginStats:
    """One plugin's record, by the name under which it was registered."""

    name: str
    exported: int = 0
    """Calls that returned: pushes taken, or answers of an enricher."""
    failed: int = 0
    """Calls that raised."""
    slow: int = 0
    """Calls that took longer than ``plugin.slow.ms``."""
    last_error: str | None = None
    quiet_until_ms: int = 0
    unlogged: int = 0
    """Failures since the last log line."""

    def fail(self, error: BaseException, now_ms: int) -> None:
        """Count a failure and log it, unless another one was logged a moment ago."""
        self.failed += 1
        self.last_error = described(error)
        if now_ms < self.quiet_until_ms:
            self.unlogged += 1
            return
        log.error(
            "plugin failed",
            exc_info=error,
            extra={"plugin": self.name, "failed": self.failed, "unlogged": self.unlogged},
        )
        self.quiet_until_ms = now_ms + LOG_INTERVAL_MS
        self.unlogged = 0


def described(error: BaseException) -> str:
    """Type and message in one short line, also of an exception that cannot even print itself."""
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - plugins' exceptions are plugins' code
        return kind
    return f"{kind}: {text}"[:MAX_ERROR_CHARS] if text else kind
