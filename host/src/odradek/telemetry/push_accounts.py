"""The outcome of every PushTelemetry, and of each record of a source: half of the accounting law."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.wire.error_code import ErrorCode


@dataclass(slots=True, eq=False)
class PushAccounts:
    """Counts since the start. A push is in exactly one of them, apart from ``received``."""

    received: int = 0
    appended: int = 0
    """Accepted, with metrics: in the log, or given to the receivers if there is no log."""
    empty: int = 0
    """Accepted, without metrics."""
    repeated: int = 0
    """Of a source: already stored, and not stored again."""
    waiting: int = 0
    """Waiting for a worker, or for the log."""
    rejected: dict[ErrorCode, int] = field(default_factory=dict)
    """By the error code that the client got."""

    def reject(self, code: ErrorCode, pushes: int = 1) -> None:
        """Count pushes that were not accepted."""
        self.rejected[code] = self.rejected.get(code, 0) + pushes

    @property
    def balanced(self) -> bool:
        """The law: each push that was received is in exactly one place."""
        settled = self.appended + self.empty + self.repeated + sum(self.rejected.values())
        return self.received == settled + self.waiting
