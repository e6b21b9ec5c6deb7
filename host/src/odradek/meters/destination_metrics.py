"""The metrics of one forwarder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from odradek.delivery.delivery_ledger import ForwarderStats
from odradek.meters.cardinality_metrics import cardinality_rows
from odradek.meters.forwarder_points import point_rows
from odradek.meters.metrics import forwarder_rows
from odradek.meters.temporality_metrics import temporality_rows
from odradek.plugin.protocols import Forwarder
from odradek.telemetry.client_metrics_stats import MetricRow


def destination_rows(
    name: str, forwarder: Forwarder, stats: ForwarderStats, failed: Callable[[Exception], None]
) -> Iterator[MetricRow]:
    """Yield the accounts of a forwarder, and what it tells of its points, totals and series.

    Args:
        name: The forwarder.
        forwarder: The plugin's object.
        stats: The accounts.
        failed: Called with what the plugin raises; its own rows are missing then.
    """
    yield from forwarder_rows(name, stats)
    try:
        yield from [
            *point_rows(name, forwarder),
            *temporality_rows(name, forwarder),
            *cardinality_rows(name, forwarder),
        ]
    except Exception as error:  # noqa: BLE001  a plugin's attributes may be properties
        failed(error)
