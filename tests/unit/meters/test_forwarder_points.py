"""The metric of data points that a destination did not store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from odradek.meters.destination_metrics import own_rows
from odradek.metrics.metric import MetricRow
from odradek.plugin import Forwarder, TelemetryRecord
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
        MetricRow("odradek.forwarder.refused.points", {"plugin": "p", "reason": reason}, points)
        for reason, points in (("duplicate", 2), ("too_old", 1))
    ),
    MetricRow("odradek.forwarder.renamed.points", {"plugin": "p"}, 4),
]


def point_rows(forwarder: Forwarder) -> list[MetricRow]:
    return [row for row in own_rows("p", forwarder) if row.name.startswith("odradek.forwarder.")]


def test_a_forwarder_that_counts_has_rows() -> None:
    assert point_rows(Counting()) == EXPECTED


def test_totals_do_not_hide_the_rows_of_the_destination(tmp_path: Path) -> None:
    settings = TotalsSettings(file=tmp_path / "totals.db")

    assert point_rows(CumulativeForwarder(Counting(), settings)) == EXPECTED
    assert point_rows(CumulativeForwarder(Destination(), settings)) == []


def test_another_forwarder_has_none() -> None:
    assert point_rows(Destination()) == []
