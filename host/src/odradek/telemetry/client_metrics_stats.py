"""The broker's own metrics about telemetry (Kafka's group ``client-metrics``).

A push only increments slots; names, tags and rates are computed when the metrics are read. The meters of a
client instance are created when they first count: most clients are never throttled and never fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from odradek.metrics.meter import Meter
from odradek.metrics.metric_config import DEFAULT_CONFIG, MetricConfig
from odradek.metrics.rate import Rate
from odradek.metrics.sampled_stat import Sample, SampledStat
from odradek.wire.uuid_text import uuid_text


class MetricRow(NamedTuple):
    """One metric at one moment."""

    name: str
    kind: Literal["counter", "gauge"]
    attributes: Mapping[str, str]
    value: float
    """NaN for an average or a maximum of nothing."""


NO_ATTRIBUTES: Mapping[str, str] = {}


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

    def rows(self, now_ms: int) -> Iterator[MetricRow]:
        """The metrics as they are now."""
        attributes = {"client_instance_id": uuid_text(self.client_instance_id)}
        export = self.plugin_export
        yield from meter_rows("throttle", self.throttle, attributes, now_ms)
        rate = Rate(export).measure(now_ms) if export else 0.0
        yield MetricRow("plugin-export-rate", "gauge", attributes, rate)
        yield MetricRow("plugin-export-count", "counter", attributes, export.total if export else 0)
        average_ms, max_ms = (
            (export.average_ms(now_ms), export.max_ms(now_ms)) if export else (math.nan, math.nan)
        )
        yield MetricRow("plugin-export-time-avg", "gauge", attributes, average_ms)
        yield MetricRow("plugin-export-time-max", "gauge", attributes, max_ms)
        yield from meter_rows("plugin-error", self.plugin_error, attributes, now_ms)


def meter_rows(
    name: str, meter: Meter | None, attributes: Mapping[str, str], now_ms: int
) -> tuple[MetricRow, MetricRow]:
    """Rate and count of a meter; zeros if it does not exist yet."""
    return (
        MetricRow(f"{name}-rate", "gauge", attributes, meter.rate(now_ms) if meter else 0.0),
        MetricRow(f"{name}-count", "counter", attributes, meter.total if meter else 0),
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
        yield MetricRow("instance-count", "gauge", NO_ATTRIBUTES, instance_count)
        unknown = self.unknown_subscription
        yield from meter_rows("unknown-subscription-request", unknown, NO_ATTRIBUTES, now_ms)
        for stats in list(self.instances.values()):  # a scrape may come from another thread
            yield from stats.rows(now_ms)

    def close(self) -> None:
        """Forget everything; nothing is counted afterwards."""
        self.instances.clear()
        self.closed = True
