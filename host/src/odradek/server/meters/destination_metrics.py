"""The metrics of one forwarder."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.delivery.delivery_ledger import ForwarderStats
from odradek.plugin.protocols import Forwarder
from odradek.server.meters.cardinality_metrics import cardinality_rows
from odradek.server.meters.forwarder_points import point_rows
from odradek.server.meters.metrics import forwarder_rows
from odradek.server.meters.temporality_metrics import temporality_rows
from odradek.telemetry.client_metrics_stats import MetricRow


def destination_rows(name: str, forwarder: Forwarder, stats: ForwarderStats) -> Iterator[MetricRow]:
    """Yield the accounts of a forwarder, and what it tells of its points, totals and series."""
    yield from forwarder_rows(name, stats)
    yield from point_rows(name, forwarder)
    yield from temporality_rows(name, forwarder)
    yield from cardinality_rows(name, forwarder)
