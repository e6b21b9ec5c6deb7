"""Metrics of data points that destinations did not store."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.plugin import CountsRefusedPoints, Forwarder
from odradek.server.meters.instrument import Instrument
from odradek.telemetry.client_metrics_stats import MetricRow

REFUSED_POINTS_INSTRUMENTS = {
    "forwarder-refused-points": Instrument(
        "odradek.forwarder.refused.points",
        "counter",
        "{point}",
        "Data points that the destination did not store, of pushes that it accepted",
    ),
}


def refused_point_rows(name: str, forwarder: Forwarder) -> Iterator[MetricRow]:
    """The counts of a forwarder that has some, by reason. Any thread may call it."""
    if isinstance(forwarder, CountsRefusedPoints):
        for reason, points in dict(forwarder.refused_points).items():  # copied: another thread adds reasons
            labels = {"plugin": name, "reason": str(reason)}
            yield MetricRow("forwarder-refused-points", "counter", labels, points)
