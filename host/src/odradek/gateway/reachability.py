"""Whether the upstream cluster can be reached, for load balancers in front of several gateways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PATIENCE_MS: Final = 10_000
"""A gateway without an upstream is not ready after this time; before, the cluster may just be rolling."""


@dataclass(slots=True)
class Reachability:
    """Dials and polls tell whether a broker has answered."""

    missing_since_ms: int | None = None
    """Time of the first failure after the last success, monotonic; None if the last one succeeded."""

    def reached(self) -> None:
        """A broker has answered."""
        self.missing_since_ms = None

    def missed(self, now_ms: int) -> None:
        """No broker has answered."""
        if self.missing_since_ms is None:
            self.missing_since_ms = now_ms

    def is_ready(self, now_ms: int) -> bool:
        """Whether clients should come here."""
        return self.missing_since_ms is None or now_ms - self.missing_since_ms < PATIENCE_MS
