"""Metrics of the series of destinations with budgets."""

from __future__ import annotations

import time
from collections.abc import Iterator

from odradek.meters.instrument import Instrument
from odradek.plugin import Forwarder
from odradek.telemetry.client_metrics_stats import MetricRow
from odradek.temporality import KeepsTotals

TOP = 20
"""Apps with a metric of their own: the number of apps is up to the clients."""
CARDINALITY_INSTRUMENTS = {
    "cardinality-series": Instrument(
        "odradek.cardinality.series", "gauge", "{series}", "Live series of the largest apps"
    ),
    "cardinality-ratio": Instrument(
        "odradek.cardinality.budget.ratio", "gauge", "1", "Used share of the fullest budget of each kind"
    ),
    "cardinality-folded": Instrument(
        "odradek.cardinality.folded", "counter", "{stream}", "Streams over budget that were added to others"
    ),
    "cardinality-refused": Instrument(
        "odradek.cardinality.refused", "counter", "{stream}", "Streams over budget that were left out"
    ),
}


def cardinality_rows(name: str, forwarder: Forwarder) -> Iterator[MetricRow]:
    """The series of a destination; nothing if it has no budgets. Any thread may call it."""
    if not isinstance(forwarder, KeepsTotals) or not forwarder.figures.foldings:
        return
    # Imported here: a host without totals does not need the room.
    from odradek.temporality.budgets.ranking import top, usages

    foldings, labels = forwarder.figures.foldings, {"plugin": name}
    for share in top(foldings, "app", TOP, time.time_ns() // 1_000_000):
        app = labels | {"principal": share.principal, "app": share.name}
        yield MetricRow("cardinality-series", "gauge", app, share.series)
    for usage in usages(foldings):
        yield MetricRow("cardinality-ratio", "gauge", labels | {"budget": usage.budget}, usage.ratio)
    for folding in foldings:
        counts = folding.policy.counts
        for row, streams in (("cardinality-folded", counts.folded), ("cardinality-refused", counts.refused)):
            for budget, count in list(streams.items()):
                yield MetricRow(row, "counter", labels | {"budget": budget}, count)
