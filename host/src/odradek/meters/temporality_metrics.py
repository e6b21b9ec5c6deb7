"""Metrics of the destinations that get totals."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.meters.instrument import Instrument
from odradek.plugin import Forwarder
from odradek.telemetry.client_metrics_stats import MetricRow
from odradek.temporality import KeepsTotals

TEMPORALITY_INSTRUMENTS = {
    "temporality-records": Instrument(
        "odradek.temporality.records", "counter", "{record}", "Records that were added to the totals"
    ),
    "temporality-repeated": Instrument(
        "odradek.temporality.repeated.records",
        "counter",
        "{record}",
        "Records that came again and were not added again",
    ),
    "temporality-lost": Instrument(
        "odradek.temporality.lost.records",
        "counter",
        "{record}",
        "Records that the log had deleted before they were added",
    ),
    "temporality-points": Instrument(
        "odradek.temporality.points", "counter", "{point}", "Data points that were added"
    ),
    "temporality-rejected": Instrument(
        "odradek.temporality.rejected.points",
        "counter",
        "{point}",
        "Data points that were left out, by reason",
    ),
    "temporality-gaps": Instrument(
        "odradek.temporality.gaps",
        "counter",
        "{gap}",
        "Data points that do not begin where the last one ended",
    ),
    "temporality-gap-seconds": Instrument(
        "odradek.temporality.gap", "counter", "s", "Time without increments, summed over all series"
    ),
    "temporality-overlaps": Instrument(
        "odradek.temporality.overlaps",
        "counter",
        "{point}",
        "Data points that begin before the last one ended",
    ),
    "temporality-bad-starts": Instrument(
        "odradek.temporality.bad.starts", "counter", "{point}", "Data points without a valid start time"
    ),
    "temporality-duplicates": Instrument(
        "odradek.temporality.duplicates", "counter", "{point}", "Data points of one series in the same push"
    ),
    "temporality-resets": Instrument(
        "odradek.temporality.resets", "counter", "{series}", "Totals that began again"
    ),
    "temporality-inexact": Instrument(
        "odradek.temporality.inexact", "counter", "{series}", "Totals too large for a double to show exactly"
    ),
    "temporality-exemplars": Instrument(
        "odradek.temporality.dropped.exemplars", "counter", "{exemplar}", "Exemplars that were left out"
    ),
    "temporality-forgotten-clients": Instrument(
        "odradek.temporality.forgotten.clients", "counter", "{client}", "Client instances that were forgotten"
    ),
    "temporality-forgotten-series": Instrument(
        "odradek.temporality.forgotten.series",
        "counter",
        "{series}",
        "Series of other clients that were forgotten",
    ),
    "temporality-series": Instrument("odradek.temporality.series", "gauge", "{series}", "Series with totals"),
    "temporality-clients": Instrument(
        "odradek.temporality.clients", "gauge", "{client}", "Client instances with totals"
    ),
    "temporality-held": Instrument(
        "odradek.temporality.held.size", "gauge", "By", "Approximate memory of the totals"
    ),
    "temporality-commits": Instrument(
        "odradek.temporality.commits", "counter", "{commit}", "Transactions that stored totals"
    ),
    "temporality-commit-seconds": Instrument(
        "odradek.temporality.commit.time", "counter", "s", "Time that these transactions took"
    ),
}


def temporality_rows(name: str, forwarder: Forwarder) -> Iterator[MetricRow]:
    """The totals of a destination; nothing if it gets delta values. Any thread may call it."""
    if not isinstance(forwarder, KeepsTotals):
        return
    labels, figures = {"plugin": name}, forwarder.figures
    counts = figures.counts
    counters = {
        "temporality-records": counts.records,
        "temporality-repeated": counts.repeated_records,
        "temporality-lost": counts.lost_records,
        "temporality-points": counts.added_points,
        "temporality-gaps": counts.gaps,
        "temporality-gap-seconds": counts.gap_ns / 1_000_000_000,
        "temporality-overlaps": counts.overlaps,
        "temporality-bad-starts": counts.bad_starts,
        "temporality-duplicates": counts.duplicates_in_push,
        "temporality-resets": counts.epochs,
        "temporality-inexact": counts.inexact_streams,
        "temporality-exemplars": counts.dropped_exemplars,
        "temporality-forgotten-clients": counts.forgotten_clients,
        "temporality-forgotten-series": counts.forgotten_streams,
        "temporality-commits": figures.commits,
        "temporality-commit-seconds": figures.commit_ns / 1_000_000_000,
    }
    for row_name, value in counters.items():
        yield MetricRow(row_name, "counter", labels, value)
    for reason, points in dict(counts.rejected_points).items():  # copied: another thread adds reasons
        yield MetricRow("temporality-rejected", "counter", labels | {"reason": str(reason)}, points)
    yield MetricRow("temporality-series", "gauge", labels, figures.streams)
    yield MetricRow("temporality-clients", "gauge", labels, figures.clients)
    yield MetricRow("temporality-held", "gauge", labels, figures.held_bytes)
