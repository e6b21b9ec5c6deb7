"""The sum of the recorded values; after org.apache.kafka.common.metrics.stats.WindowedSum.

A quota measures after every record, and Kafka walks through all samples each time. The sum of all samples
but the current one, the oldest sample and the time of the next expiry only change when a window ends, so they
are cached until then.
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.metrics.metric_config import DEFAULT_CONFIG, MetricConfig
from odradek.metrics.sampled_stat import Sample, SampledStat, start_ms


class WindowedSum(SampledStat):
    """Adds up the values. A negative value takes back an earlier one."""

    __slots__ = ("oldest_sample", "others", "settled_config", "settled_until_ms")

    def __init__(self, config: MetricConfig = DEFAULT_CONFIG) -> None:
        super().__init__(config)
        self.others = 0.0
        self.oldest_sample: Sample | None = None
        self.settled_config: MetricConfig | None = None
        self.settled_until_ms = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add one value to the current window, which is used inline, without a call."""
        if self.samples:
            sample = self.samples[self.current]
            config = self.config
            if now_ms - sample.start_ms < config.time_window_ms and sample.event_count < config.event_window:
                sample.value += value
                sample.event_count += 1
                sample.last_event_ms = now_ms
                return
        self.settled_config = None
        super().record(value, now_ms)

    def update(self, sample: Sample, value: float) -> None:
        sample.value += value

    def combine(self, samples: Sequence[Sample]) -> float:
        return sum(sample.value for sample in samples)

    def purge(self, now_ms: int) -> None:
        """Reset expired samples and cache the figures of the others."""
        if self.config is self.settled_config and now_ms < self.settled_until_ms:
            # No sample can expire before settled_until_ms: a later record only postpones its expiry.
            return
        super().purge(now_ms)
        if not self.samples:
            return
        config = self.config
        expiry_ms = config.samples * config.time_window_ms
        self.settled_until_ms = min(sample.last_event_ms for sample in self.samples) + expiry_ms
        self.others = self.combine([s for i, s in enumerate(self.samples) if i != self.current])
        self.oldest_sample = min(self.samples, key=start_ms)
        self.settled_config = config

    def measure(self, now_ms: int) -> float:
        """The sum over all live samples."""
        self.purge(now_ms)
        return self.others + self.samples[self.current].value if self.samples else 0.0

    def oldest(self, now_ms: int) -> Sample:
        """The sample that started first; created if there is none."""
        if self.oldest_sample is None or self.config is not self.settled_config:
            return super().oldest(now_ms)
        return self.oldest_sample
