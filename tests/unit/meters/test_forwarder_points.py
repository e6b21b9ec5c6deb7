"""The metric of data points that a destination did not store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from odradek.meters.forwarder_points import point_rows
from odradek.plugin import TelemetryRecord
from odradek.telemetry.client_metrics_stats import MetricRow
from odradek.temporality import CumulativeForwarder, TotalsSettings


class Destination:
    """Takes everything."""

    async def start(self) -> None:
        """Nothing to open."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Nothing to keep."""

    async def close(self) -> None:
        """Nothing to close."""


class Counting(Destination):
    """Has refused some data points."""

    def __init__(self) -> None:
        self.refused_points = Counter({"duplicate": 2, "too_old": 1})
        self.renamed_points = 4


EXPECTED = [
    *(
        MetricRow("forwarder-refused-points", "counter", {"plugin": "p", "reason": reason}, points)
        for reason, points in (("duplicate", 2), ("too_old", 1))
    ),
    MetricRow("forwarder-renamed-points", "counter", {"plugin": "p"}, 4),
]


def test_a_forwarder_that_counts_has_rows() -> None:
    assert list(point_rows("p", Counting())) == EXPECTED


def test_totals_do_not_hide_the_rows_of_the_destination(tmp_path: Path) -> None:
    settings = TotalsSettings(file=tmp_path / "totals.db")

    assert list(point_rows("p", CumulativeForwarder(Counting(), settings))) == EXPECTED
    assert list(point_rows("p", CumulativeForwarder(Destination(), settings))) == []


def test_another_forwarder_has_none() -> None:
    assert list(point_rows("p", Destination())) == []
