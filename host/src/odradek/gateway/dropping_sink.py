"""A spool that is full without the client's notice: `gateway.spool.full` is ``drop``."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.answering import TelemetrySink
from odradek.metrics.metric import MetricRow, Metrics
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.waiting.deferred import Deferred, after

DROPPED: Metrics[DroppingSink] = Metrics("odradek.gateway.pushes")
DROPPED.counter("dropped", "{push}", "Accepted pushes that were lost because the telemetry topic was full")


class DroppingSink:
    """Accepts each push, also one that the spool does not take; that one is lost, and counted.

    Args:
        spool: Takes pushes while it can.
    """

    def __init__(self, spool: TelemetrySink) -> None:
        self.spool = spool
        self.dropped = 0

    def take(self, push: AcceptedPush) -> bool | Deferred[bool]:
        """Store a push. Always True, now or later."""
        return after(self.spool.take(push), self.outcome)

    def outcome(self, is_kept: bool) -> bool:
        """Count a push that was not stored."""
        self.dropped += not is_kept
        return True

    def metric_rows(self) -> Iterator[MetricRow]:
        """The number of lost pushes."""
        return DROPPED.rows(self)
