"""The rows of the host's own metrics as instruments of an OpenTelemetry meter.

When a reader collects, on a thread of its own, the loop reads the rows in small steps, and observable
instruments offer them. Nothing here is imported unless somebody is to have the metrics.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider, ObservableCounter, ObservableGauge
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.resources import Resource

from odradek import __version__
from odradek.server.meters.metrics import INSTRUMENTS
from odradek.telemetry.client_metrics_stats import MetricRow

ReadRows = Callable[[], Iterable[MetricRow]]
"""Read every row; called on the loop."""

ROWS_PER_STEP = 500
"""Rows that the loop makes before it lets others run: about a millisecond."""
COLLECT_TIMEOUT_S = 10
MAX_SERIES = 1_000_000
"""Per instrument; the SDK's own limit of 2 000 is less than the instance cache."""
CARDINALITY_LIMITS: dict[type, int] = {ObservableCounter: MAX_SERIES, ObservableGauge: MAX_SERIES}
"""For the reader."""


async def take(source: Iterable[MetricRow]) -> dict[str, list[MetricRow]]:
    """Read rows on the loop without holding it up; by name."""
    by_name: dict[str, list[MetricRow]] = defaultdict(list)
    for index, row in enumerate(source):
        by_name[row.name].append(row)
        if index % ROWS_PER_STEP == 0:
            await asyncio.sleep(0)
    return by_name


class HostMeter:
    """Everything a host counts, for one reader. To be made on the loop of the host."""

    def __init__(self, read_rows: ReadRows, reader: MetricReader) -> None:
        self.read_rows = read_rows
        self.loop = asyncio.get_running_loop()
        self.rows: Mapping[str, list[MetricRow]] = {}
        resource = Resource({"service.name": "odradek", "service.version": __version__})
        self.provider = MeterProvider(metric_readers=[reader], resource=resource, shutdown_on_exit=False)
        self.offer_instruments()

    def offer_instruments(self) -> None:
        """One observable instrument per row name. The first that is asked fetches the rows of all."""
        meter = self.provider.get_meter("odradek")
        meter.create_observable_gauge("odradek.up", [self.refresh], description="1 while the host runs")
        for row_name, instrument in INSTRUMENTS.items():
            create = (
                meter.create_observable_counter
                if instrument.kind == "counter"
                else meter.create_observable_gauge
            )
            create(instrument.name, [self.observing(row_name)], instrument.unit, instrument.description)

    def refresh(self, _options: CallbackOptions) -> Sequence[Observation]:
        """Fetch the rows; on the thread of the reader. A loop that does not answer in time leaves the old
        ones.
        """
        if self.loop.is_closed():  # the last look of a reader that was given up
            return []
        taking = asyncio.run_coroutine_threadsafe(take(self.read_rows()), self.loop)
        self.rows = taking.result(COLLECT_TIMEOUT_S)
        return [Observation(1)]

    def observing(self, row_name: str) -> Callable[[CallbackOptions], Sequence[Observation]]:
        """The callback for the rows of one name. A mean of nothing is not shown."""

        def observe(_options: CallbackOptions) -> Sequence[Observation]:
            found = self.rows.get(row_name, ())
            return [Observation(row.value, row.attributes) for row in found if not math.isnan(row.value)]

        return observe

    def close(self, timeout_s: float) -> None:
        """End the reader; blocks."""
        self.provider.shutdown(timeout_s * 1000)
