"""The metrics that plugins make with OpenTelemetry's API, at the outlets of the program.

A plugin calls ``opentelemetry.metrics.get_meter(__name__)``, as any library does. The provider belongs to the
process: if a program that runs a host has set one of its own, the metrics go there, and not to the outlets.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import takewhile
from threading import Lock, Thread
from time import monotonic
from typing import Any, Final

from opentelemetry.metrics import get_meter_provider, set_meter_provider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricReader, MetricsData, ScopeMetrics

from odradek.bounds.sampled_log import SampledLog

log = logging.getLogger(__name__)

MAX_SERIES: Final = 1_000
"""Series of one plugin. The SDK keeps at most 2 000 for each instrument."""
MAX_VALUE_CHARS: Final = 256
"""Of an attribute's value; the rest is cut off."""
COLLECT_S: Final = 2.0
"""How long the callbacks of the plugins' instruments may take together."""


@cache
def provided() -> InMemoryMetricReader | None:
    """The reader of the plugins' metrics; None if the process has a provider. The first call sets one."""
    if isinstance(get_meter_provider(), MeterProvider):
        return None
    reader = InMemoryMetricReader()
    set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))
    return reader


class PluginMetrics:
    """The metrics of all plugins, for one outlet.

    Args:
        modules: The names of the plugins, by the modules of their hooks.
        labels: Returns the labels that all metrics have.
    """

    def __init__(self, modules: Mapping[str, str], labels: Callable[[], Mapping[str, str]]) -> None:
        self.modules = modules
        self.labels = labels
        self.busy = Lock()
        self.found: MetricsData | None = None
        self.warnings = SampledLog(log)

    def collected(self) -> list[ScopeMetrics]:
        """The present values. On the thread of an outlet, which waits no longer than `COLLECT_S`."""
        reader = provided()
        if reader is None:
            return []
        if self.busy.acquire(blocking=False):
            collecting = Thread(target=self.collect, args=(reader,), name="plugin-metrics", daemon=True)
            collecting.start()
            collecting.join(COLLECT_S)
        if self.busy.locked():
            self.warn("metrics of plugins are left out: a callback takes too long")
            return []
        return [] if self.found is None else list(self.named(self.found))

    def collect(self, reader: InMemoryMetricReader) -> None:
        """Call the callbacks of the plugins."""
        try:
            self.found = reader.get_metrics_data()
        finally:
            self.busy.release()

    def named(self, found: MetricsData) -> Iterator[ScopeMetrics]:
        """The metrics under the names of their plugins, as many as each has room for."""
        room = defaultdict[str, int](lambda: MAX_SERIES)
        for scope in (scope for resource in found.resource_metrics for scope in resource.scope_metrics):
            plugin = self.plugin_of(scope.scope.name)
            metrics = []
            for metric in scope.metrics:
                data: Any = metric.data
                points = data.data_points[: room[plugin]]
                room[plugin] -= len(points)
                if len(points) < len(data.data_points):
                    self.warn("plugin %s has more than %d series: others are left out", plugin, MAX_SERIES)
                name = metric.name if metric.name.startswith(f"{plugin}.") else f"{plugin}.{metric.name}"
                labeled = [replace(each, attributes=self.attributes(each, plugin)) for each in points]
                metrics.append(replace(metric, name=name, data=replace(data, data_points=labeled)))
            yield replace(scope, metrics=metrics)

    def plugin_of(self, scope: str) -> str:
        """The plugin whose code is nearest to a module; the package of code that belongs to none of them."""
        parts = scope.split(".")
        near = {shared(parts, module.split(".")): name for module, name in self.modules.items()}
        return near[max(near)] if any(near) else parts[0]

    def attributes(self, point: Any, plugin: str) -> dict[str, object]:
        """The attributes of a data point, with the labels that all have."""
        own = {key: short(value) for key, value in (point.attributes or {}).items()}
        return {**own, "plugin": plugin, **self.labels()}

    def warn(self, message: str, *arguments: object) -> None:
        """Log something, at most once a minute."""
        self.warnings.write(logging.WARNING, int(monotonic() * 1_000), message, *arguments)


class WithPlugins(MetricReader):
    """A part of a reader that gets the metrics of plugins after those of the host."""

    plugins: Callable[[], list[ScopeMetrics]] = list

    def _receive_metrics(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **more: Any
    ) -> None:
        first, *others = metrics_data.resource_metrics
        whole = replace(first, scope_metrics=[*first.scope_metrics, *self.plugins()])
        super()._receive_metrics(MetricsData([whole, *others]), timeout_millis, **more)  # type: ignore[safe-super]


def shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many parts two names have in common, from their beginnings."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def short(value: object) -> object:
    """A value of an attribute within the bound."""
    return value if isinstance(value, (bool, int, float)) else str(value)[:MAX_VALUE_CHARS]
