"""The metrics of the memory that requests and answers hold."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.meters.instrument import Instrument
from odradek.net.held_bytes import HeldBytes
from odradek.telemetry.client_metrics_stats import MetricRow

MEMORY_INSTRUMENTS = {
    "queued-bytes": Instrument(
        "odradek.queued.bytes",
        "gauge",
        "By",
        "Memory held by requests, unread answers, or pairs",
    ),
    "queued-limit": Instrument("odradek.queued.limit", "gauge", "By", "Limit of that memory"),
    "queued-paused": Instrument(
        "odradek.queued.paused", "gauge", "{connection}", "Connections not read because of that limit"
    ),
    "queued-closed": Instrument(
        "odradek.queued.closed", "counter", "{connection}", "Connections closed because of that limit"
    ),
}
"""By row name."""


def memory_rows(*memory: HeldBytes) -> Iterator[MetricRow]:
    """Yield the memory that connections hold, for each purpose."""
    for each in memory:
        labels = {"of": each.what}
        yield MetricRow("queued-bytes", "gauge", labels, each.total_bytes)
        yield MetricRow("queued-limit", "gauge", labels, each.scarce_bytes)
        yield MetricRow("queued-paused", "gauge", labels, len(each.paused))
        yield MetricRow("queued-closed", "counter", labels, each.closed)
