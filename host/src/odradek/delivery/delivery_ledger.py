"""The outcomes of the records that left the queue.

Written by the delivering thread, read by any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from odradek.plugin.protocols import TelemetryRecord

MAX_REASONS = 20
"""Limit of different reasons: they come from the destination and label a metric. Others count as `OTHER`."""
OTHER = "other"
MAX_REASON_LENGTH = 200


@dataclass(slots=True, eq=False)
class DeliveryLedger:
    """Counts of one forwarder. A record is settled exactly once, as delivered, dropped or rejected."""

    delivered: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    """By reason: the name of the bound that was reached, or of the end."""
    rejected: dict[str, int] = field(default_factory=dict)
    """By the destination's reason. If the log is the spool, these are dead letters."""
    retries: int = 0
    """Calls of ``deliver`` after which the destination asked for another."""
    failures: int = 0
    """Calls of ``deliver`` that raised something else or took too long."""
    settled: int = 0
    settled_bytes: int = 0
    last_error: str | None = None

    def deliver(self, records: Sequence[TelemetryRecord]) -> None:
        """Records that the destination took."""
        self.delivered += len(records)
        self.settle(records)

    def drop(self, records: Sequence[TelemetryRecord], reason: str) -> None:
        """Records given up by the host."""
        count(self.dropped, reason, len(records))
        self.settle(records)

    def reject(self, records: Sequence[TelemetryRecord], reason: str) -> None:
        """Records given up because the destination will never take them."""
        count(self.rejected, reason, len(records))
        self.settle(records)

    def settle(self, records: Sequence[TelemetryRecord]) -> None:
        self.settled += len(records)
        self.settled_bytes += sum(len(record.payload.data) for record in records)


def count(counts: dict[str, int], reason: str, records: int) -> None:
    """Add to a reason, or to `OTHER` if there are too many different ones."""
    if not records:
        return
    name = reason[:MAX_REASON_LENGTH]
    if name not in counts and len(counts) >= MAX_REASONS:
        name = OTHER
    counts[name] = counts.get(name, 0) + records


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwarderStats:
    """The accounts of a forwarder at one moment."""

    offered: int
    delivered: int
    dropped: Mapping[str, int]
    rejected: Mapping[str, int]
    retries: int
    failures: int
    queued: int
    in_flight: int
    """Records of the batch that is being delivered or waits for its retry."""
    queued_bytes: int
    """Payload bytes of both."""
    last_error: str | None
    failing: Mapping[str, float] = field(default_factory=dict)
    """For how many seconds no call has succeeded, by the last error; empty if it works."""

    @property
    def balanced(self) -> bool:
        """The law: each record that was offered is in exactly one place."""
        lost = sum(self.dropped.values()) + sum(self.rejected.values())
        return self.offered == self.delivered + lost + self.queued + self.in_flight
