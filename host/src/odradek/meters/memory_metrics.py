"""The metrics of the memory that requests and answers hold."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.metrics.metric import MetricRow, Metrics
from odradek.net.held_bytes import HeldBytes

MEMORY = Metrics[HeldBytes]("odradek.queued", "of")
MEMORY.gauge("bytes", "By", "Memory held by requests, unread answers, or pairs", "total_bytes")
MEMORY.gauge("limit", "By", "Limit of that memory", "scarce_bytes")
MEMORY.gauge("paused", "{connection}", "Connections not read because of that limit", "paused")
MEMORY.counter("closed", "{connection}", "Connections closed because of that limit")


def memory_rows(*memory: HeldBytes) -> Iterator[MetricRow]:
    """Yield the memory that connections hold, for each purpose."""
    for each in memory:
        yield from MEMORY.rows(each, of=each.what)
