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
    """Already stored, and not stored again."""
    waiting: int = 0
    """Waiting for a worker, or for the log."""
    rejected: dict[ErrorCode, int] = field(default_factory=dict)
    """By the error code that the client got."""
    kept: dict[ErrorCode, int] = field(default_factory=dict)
    """Refused, by the error code that the client got, and stored all the same."""

    def keep(self, code: ErrorCode) -> None:
        """Count a push that was refused and stored."""
        self.kept[code] = self.kept.get(code, 0) + 1

    def reject(self, code: ErrorCode, pushes: int = 1) -> None:
        """Count pushes that were refused and not stored."""
        self.rejected[code] = self.rejected.get(code, 0) + pushes

    @property
    def balanced(self) -> bool:
        """The law: each push that was received is in exactly one place."""
        refused = sum(self.rejected.values()) + sum(self.kept.values())
        settled = self.appended + self.empty + self.repeated + refused
        return self.received == settled + self.waiting
