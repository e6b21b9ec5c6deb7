"""Counters of each plugin, and a log that a failing or slow plugin cannot flood."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from odradek.bounds.sampled_log import INTERVAL_MS, SampledLog
from odradek.plugin.places import place_of, place_of_definition

log = logging.getLogger(__name__)

MAX_ERROR_CHARS = 200


@dataclass(slots=True)
class PluginStats:
    """One plugin's record, by the name under which it was registered."""

    name: str
    exported: int = 0
    """Calls that returned: pushes taken, or answers of an enricher or a quota callback."""
    failed: int = 0
    """Calls that raised."""
    slow: int = 0
    """Calls that took longer than ``plugin.slow.ms``."""
    dropped: int = 0
    """Pushes for which the queue of a receiver with a thread of its own had no room."""
    unlabeled: int = 0
    """Pushes that went without the labels of an enricher: it had not answered in time, or failed."""
    last_error: str | None = None
    failures: SampledLog = field(default_factory=lambda: SampledLog(log))
    slow_calls: SampledLog = field(default_factory=lambda: SampledLog(log))
    blocked_ns: int = 0
    """Time of the slow calls of the current minute, which began at `blocked_since_ms`."""
    blocked_since_ms: int = 0

    def fail(self, error: BaseException, now_ms: int, method: object = None) -> None:
        """Count a failure, and log one each minute.

        Args:
            error: The failure.
            now_ms: The monotonic time.
            method: The method whose place is told if the error has none in a plugin.
        """
        self.failed += 1
        self.last_error = described(error)
        told = self.last_error + (place_of(error) or place_of_definition(method))
        fields = {"plugin": self.name, "failed": self.failed}
        self.failures.write(
            logging.ERROR, now_ms, "plugin %s failed: %s", self.name, told, error=error, **fields
        )

    def block(self, hook: str, took_ns: int, now_ms: int, method: object) -> None:
        """Count a call of a method that blocked the event loop, and log one each minute."""
        self.slow += 1
        if now_ms - self.blocked_since_ms >= INTERVAL_MS:
            self.blocked_ns, self.blocked_since_ms = 0, now_ms
        self.blocked_ns += took_ns
        self.slow_calls.write(
            logging.WARNING,
            now_ms,
            "plugin %s blocked the event loop for %d ms in %s%s; no client was served meanwhile",
            self.name,
            took_ns // 1_000_000,
            hook,
            place_of_definition(method),
            slow=self.slow,
        )


def described(error: BaseException) -> str:
    """Type and message in one short line, also of an exception that cannot even print itself."""
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - plugins' exceptions are plugins' code
        return kind
    return f"{kind}: {text}"[:MAX_ERROR_CHARS] if text else kind
