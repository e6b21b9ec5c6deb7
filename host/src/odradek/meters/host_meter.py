"""The host's own metrics as instruments of an OpenTelemetry meter.

When a reader collects, on its own thread, the loop reads the rows in small steps, and observable instruments
offer them. This module is only imported if a setting asks for the metrics.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider, ObservableCounter, ObservableGauge
from opentelemetry.sdk.resources import Resource

from odradek import __version__
from odradek.meters.plugin_metrics import PluginMetrics, WithPlugins
from odradek.metrics.cluster_name import ClusterName
from odradek.metrics.metric import DECLARED, MetricRow
from odradek.plugin.context_labels import CLUSTER_NAME

ReadRows = Callable[[], Iterable[MetricRow] | AsyncIterable[MetricRow]]
"""Read every row; called on the loop."""

ROWS_PER_STEP = 500
"""Rows that are read before other tasks of the loop run: about a millisecond."""
COLLECT_TIMEOUT_S = 10
MAX_SERIES = 1_000_000
"""Per instrument; the SDK's own limit of 2 000 is less than the instance cache."""
CARDINALITY_LIMITS: dict[type, int] = {ObservableCounter: MAX_SERIES, ObservableGauge: MAX_SERIES}
"""For the reader."""


async def take(source: Iterable[MetricRow] | AsyncIterable[MetricRow]) -> dict[str, list[MetricRow]]:
    """Read rows by name, in small steps that do not block the loop."""
    by_name: dict[str, list[MetricRow]] = defaultdict(list)
    if isinstance(source, AsyncIterable):
        source = [row async for row in source]
    for index, row in enumerate(source):
        by_name[row.name].append(row)
        if index % ROWS_PER_STEP == 0:
            await asyncio.sleep(0)
    return by_name


class HostMeter:
    """All metrics of a program and its plugins, for one reader, with the names of cluster and program. Create
    it on the program's loop.
    """

    def __init__(
        self,
        read_rows: ReadRows,
        cluster: ClusterName,
        instance: str,
        reader: WithPlugins,
        modules: Mapping[str, str],
    ) -> None:
        self.read_rows = read_rows
        self.cluster = cluster
        self.loop = asyncio.get_running_loop()
        self.rows: Mapping[str, list[MetricRow]] = {}
        reader.plugins = PluginMetrics(modules, lambda: self.labels).collected
        resource = Resource(
            {
                "service.name": "odradek",
                "service.version": __version__,
                "service.instance.id": instance,
            }
        )
        self.provider = MeterProvider(metric_readers=[reader], resource=resource, shutdown_on_exit=False)
        self.offer_instruments()

    def offer_instruments(self) -> None:
        """Create one observable instrument per metric. The first one that is observed fetches all rows."""
        meter = self.provider.get_meter("odradek")
        meter.create_observable_gauge("odradek.up", [self.refresh], description="1 while the host runs")
        makers = {"counter": meter.create_observable_counter, "gauge": meter.create_observable_gauge}
        for name, metric in DECLARED.items():
            makers[metric.kind](name, [self.observing(name)], metric.unit, metric.sentence)

    def refresh(self, _options: CallbackOptions) -> Sequence[Observation]:
        """Fetch the rows, on the thread of the reader.

        Raises:
            TimeoutError: The loop did not answer in time; the old rows stay.
        """
        if self.loop.is_closed():  # a reader that was given up collects once more
            return []
        taking = asyncio.run_coroutine_threadsafe(take(self.read_rows()), self.loop)
        self.rows = taking.result(COLLECT_TIMEOUT_S)
        return [Observation(1, self.labels)]

    @property
    def labels(self) -> dict[str, str]:
        """The labels that all have."""
        name = self.cluster.text
        return {} if name is None else {CLUSTER_NAME: name}

    def observing(self, name: str) -> Callable[[CallbackOptions], Sequence[Observation]]:
        """The callback for the rows of one name. It leaves out means without values (NaN)."""

        def observe(_options: CallbackOptions) -> Sequence[Observation]:
            found, labels = self.rows.get(name, ()), self.labels
            return [
                Observation(row.value, {**row.attributes, **labels})
                for row in found
                if not math.isnan(row.value)
            ]

        return observe

    def close(self, timeout_s: float) -> None:
        """Shut the reader down; blocks."""
        self.provider.shutdown(timeout_s * 1000)
