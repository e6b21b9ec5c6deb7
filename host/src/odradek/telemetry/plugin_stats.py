"""Counters of each plugin, and a log that a failing plugin cannot flood."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from odradek.sampled_log import SampledLog

log = logging.getLogger(__name__)

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
    failures: SampledLog = field(default_factory=lambda: SampledLog(log))

    def fail(self, error: BaseException, now_ms: int) -> None:
        """Count a failure, and log one each minute."""
        self.failed += 1
        self.last_error = described(error)
        self.failures.write(
            logging.ERROR, now_ms, "plugin failed", error=error, plugin=self.name, failed=self.failed
        )


def described(error: BaseException) -> str:
    """Type and message in one short line, also of an exception that cannot even print itself."""
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - plugins' exceptions are plugins' code
        return kind
    return f"{kind}: {text}"[:MAX_ERROR_CHARS] if text else kind
