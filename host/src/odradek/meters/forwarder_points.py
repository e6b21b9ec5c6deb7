"""Metrics of data points that forwarders count."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.meters.instrument import Instrument
from odradek.plugin import CountsRefusedPoints, Forwarder, RenamesLabels
from odradek.telemetry.client_metrics_stats import MetricRow

POINT_INSTRUMENTS = {
    "forwarder-refused-points": Instrument(
        "odradek.forwarder.refused.points",
        "counter",
        "{point}",
        "Data points that the destination did not store, of pushes that it accepted",
    ),
    "forwarder-renamed-points": Instrument(
        "odradek.forwarder.renamed.points",
        "counter",
        "{point}",
        "Data points beside which a label has another name, because they have an attribute of that name",
    ),
}


def point_rows(name: str, forwarder: Forwarder) -> Iterator[MetricRow]:
    """The counts of a forwarder that has some, by reason. Any thread may call it."""
    if isinstance(forwarder, CountsRefusedPoints):
        for reason, points in dict(forwarder.refused_points).items():  # copied: another thread adds reasons
            labels = {"plugin": name, "reason": str(reason)}
            yield MetricRow("forwarder-refused-points", "counter", labels, points)
    if isinstance(forwarder, RenamesLabels) and forwarder.renamed_points is not None:
        yield MetricRow("forwarder-renamed-points", "counter", {"plugin": name}, forwarder.renamed_points)
