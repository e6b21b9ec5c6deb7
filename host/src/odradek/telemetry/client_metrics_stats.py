"""The broker's own metrics about telemetry (Kafka's group ``client-metrics``).

A push only increments slots; names, tags and rates are computed when the metrics are read. The meters of a
client instance are created when they first count: most clients are never throttled and never fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from odradek.metrics.meter import Meter
from odradek.metrics.metric import MetricRow, Metrics
from odradek.metrics.metric_config import DEFAULT_CONFIG, MetricConfig
from odradek.metrics.rate import Rate
from odradek.metrics.sampled_stat import Sample, SampledStat
from odradek.wire.uuid_text import uuid_text

Source = TypeVar("Source")


@dataclass(slots=True, eq=False)
class ExportSample(Sample):
    """A window of export times: ``value`` is their sum."""

    highest: float = -math.inf

    def reset(self, now_ms: int, value: float) -> None:
        # Spelled out: super() does not find its class in a slotted dataclass of Python 3.11.
        self.start_ms = self.last_event_ms = now_ms
        self.value = value
        self.event_count = 0
        self.highest = -math.inf


class ExportTimes(SampledStat):
    """How many pushes plugins took, and the milliseconds they needed.

    Kafka keeps a meter, an average and a maximum, each with windows of its own. All three are recorded at
    the same moments, so they are one here, at a third of the memory and with the same results.
    """

    __slots__ = ("total",)

    def __init__(self, config: MetricConfig = DEFAULT_CONFIG) -> None:
        super().__init__(config)
        self.total = 0

    def empty_sample(self, now_ms: int) -> ExportSample:
        return ExportSample(now_ms, now_ms, 0.0)

    def update(self, sample: Sample, value: float) -> None:
        assert isinstance(sample, ExportSample)
        self.total += 1
        sample.value += value
        if value > sample.highest:
            sample.highest = value

    def combine(self, samples: Sequence[Sample]) -> float:
        """The number of exports, which makes `Rate` their rate."""
        return float(sum(sample.event_count for sample in samples))

    def average_ms(self, now_ms: int) -> float:
        """Mean time; NaN if the windows are empty."""
        exports = self.measure(now_ms)
        return sum(sample.value for sample in self.samples) / exports if exports else math.nan

    def rate(self, now_ms: int) -> float:
        """Pushes per second."""
        return Rate(self).measure(now_ms)

    def max_ms(self, now_ms: int) -> float:
        """Longest time; NaN if the windows are empty."""
        self.purge(now_ms)
        recorded = [sample.highest for sample in self.samples if isinstance(sample, ExportSample)]
        highest = max(recorded, default=-math.inf)
        return math.nan if highest == -math.inf else highest


@dataclass(slots=True, eq=False)
class InstanceStats:
    """The eight metrics of one client instance."""

    client_instance_id: bytes
    config: MetricConfig = DEFAULT_CONFIG
    throttle: Meter | None = None
    plugin_export: ExportTimes | None = None
    plugin_error: Meter | None = None

    def record_throttle(self, now_ms: int) -> None:
        """Count a request that came too early."""
        if self.throttle is None:
            self.throttle = Meter(self.config)
        self.throttle.record(now_ms)

    def record_export(self, elapsed_ms: float, now_ms: int) -> None:
        """Count a push that the plugins took."""
        if self.plugin_export is None:
            self.plugin_export = ExportTimes(self.config)
        self.plugin_export.record(elapsed_ms, now_ms)

    def record_error(self, now_ms: int) -> None:
        """Count a push that could not be opened, or that a plugin did not take."""
        if self.plugin_error is None:
            self.plugin_error = Meter(self.config)
        self.plugin_error.record(now_ms)


def paired(
    metrics: Metrics[Source, int],
    name: str,
    unit: str,
    sentence: str,
    of: Callable[[Source], Meter | ExportTimes | None],
) -> None:
    """Declare the count and the rate of a meter, which need not exist yet."""
    metrics.counter(f"{name}.count", unit, sentence, lambda it, _: getattr(of(it), "total", 0))
    metrics.gauge(f"{name}.rate", f"{unit}/s", sentence, lambda it, now_ms: rate(of(it), now_ms))


def rate(meter: Meter | ExportTimes | None, now_ms: int) -> float:
    """The rate of a meter; 0 if it does not exist yet."""
    return meter.rate(now_ms) if meter else 0.0


KAFKA = "kafka.server.client.metrics"
"""Kafka's group ``client-metrics`` of the domain ``kafka.server``."""
INSTANCE = Metrics[InstanceStats, int](KAFKA, "client_instance_id")
paired(INSTANCE, "throttle", "{request}", "Requests that came too early", lambda it: it.throttle)
paired(INSTANCE, "plugin.export", "{push}", "Pushes given to plugins", lambda it: it.plugin_export)
INSTANCE.gauge(
    "plugin.export.time.avg",
    "ms",
    "Time that plugins took for a push, mean",
    lambda it, now_ms: it.plugin_export.average_ms(now_ms) if it.plugin_export else math.nan,
)
INSTANCE.gauge(
    "plugin.export.time.max",
    "ms",
    "Time that plugins took for a push, maximum",
    lambda it, now_ms: it.plugin_export.max_ms(now_ms) if it.plugin_export else math.nan,
)
paired(
    INSTANCE,
    "plugin.error",
    "{push}",
    "Pushes that could not be opened or exported",
    lambda it: it.plugin_error,
)


@dataclass(slots=True, eq=False)
class ClientMetricsStats:
    """All metrics: three of the host, and eight of each registered client instance."""

    config: MetricConfig = DEFAULT_CONFIG
    unknown_subscription: Meter | None = None
    instances: dict[bytes, InstanceStats] = field(default_factory=dict)
    closed: bool = False

    def register(self, client_instance_id: bytes) -> InstanceStats:
        """The metrics of an instance, created if it has none."""
        stats = self.instances.get(client_instance_id)
        if stats is None:
            stats = self.instances[client_instance_id] = InstanceStats(client_instance_id, self.config)
        return stats

    def unregister(self, client_instance_id: bytes) -> None:
        """Forget an instance; harmless when it is unknown."""
        self.instances.pop(client_instance_id, None)

    def record_unknown_subscription(self, now_ms: int) -> None:
        """Count a push with a subscription id that is not the client's."""
        if self.unknown_subscription is None:
            self.unknown_subscription = Meter(self.config)
        self.unknown_subscription.record(now_ms)

    def rows(self, instance_count: int, now_ms: int) -> Iterator[MetricRow]:
        """All current metrics; none after `close`."""
        if self.closed:
            return
        yield from CACHE.rows(instance_count)
        yield from ALL.rows(self, now_ms)
        for stats in list(self.instances.values()):  # a scrape may come from another thread
            instance = uuid_text(stats.client_instance_id)
            yield from INSTANCE.rows(stats, now_ms, client_instance_id=instance)

    def close(self) -> None:
        """Forget everything; nothing is counted afterwards."""
        self.instances.clear()
        self.closed = True


CACHE = Metrics[int](KAFKA)
CACHE.gauge("instance.count", "{instance}", "Client instances in the cache", lambda it: it)
ALL = Metrics[ClientMetricsStats, int](KAFKA)
paired(
    ALL,
    "unknown.subscription.request",
    "{push}",
    "Pushes with a stale subscription id",
    lambda it: it.unknown_subscription,
)
