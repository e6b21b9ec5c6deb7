"""A statistic over the last few windows; after org.apache.kafka.common.metrics.stats.SampledStat.

Three properties may surprise. A sample expires by its *last* event, so it counts as a whole until then,
however long ago its window began. One more sample than configured may be live. Only recording creates
samples, the passage of time does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from odradek.metrics.metric_config import DEFAULT_CONFIG, MetricConfig


@dataclass(slots=True, eq=False)
class Sample:
    """The recorded values of one window."""

    start_ms: int
    last_event_ms: int
    value: float
    event_count: int = 0

    def reset(self, now_ms: int, value: float) -> None:
        """Start a new window in this sample."""
        self.start_ms = self.last_event_ms = now_ms
        self.value = value
        self.event_count = 0


class SampledStat(ABC):
    """Values recorded in windows of time. A subclass defines what a window keeps and how windows combine."""

    __slots__ = ("config", "current", "samples")

    initial_value: float = 0.0

    def __init__(self, config: MetricConfig = DEFAULT_CONFIG) -> None:
        self.config = config
        self.samples: list[Sample] = []
        self.current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add one value to the current window."""
        sample = self.window(now_ms)
        self.update(sample, value)
        sample.event_count += 1
        sample.last_event_ms = now_ms

    def window(self, now_ms: int) -> Sample:
        """The sample to record into: the current one, or the next one if the current window is complete."""
        if not self.samples:
            return self.append(now_ms)
        sample = self.samples[self.current]
        config = self.config
        if now_ms - sample.start_ms >= config.time_window_ms or sample.event_count >= config.event_window:
            return self.advance(now_ms)
        return sample

    def advance(self, now_ms: int) -> Sample:
        """End the current window and start one in the next slot."""
        self.current = (self.current + 1) % (self.config.samples + 1)
        if self.current >= len(self.samples):
            return self.append(now_ms)
        sample = self.samples[self.current]
        sample.reset(now_ms, self.initial_value)
        return sample

    def append(self, now_ms: int) -> Sample:
        """Add a sample at the end of the list."""
        sample = self.empty_sample(now_ms)
        self.samples.append(sample)
        return sample

    def empty_sample(self, now_ms: int) -> Sample:
        """A sample without events."""
        return Sample(now_ms, now_ms, self.initial_value)

    def purge(self, now_ms: int) -> None:
        """Reset the samples whose last event has expired. A reset sample starts now and is the youngest."""
        expiry_ms = self.config.samples * self.config.time_window_ms
        for sample in self.samples:
            if now_ms - sample.last_event_ms >= expiry_ms:
                sample.reset(now_ms, self.initial_value)

    def measure(self, now_ms: int) -> float:
        """The statistic over all live samples."""
        self.purge(now_ms)
        return self.combine(self.samples)

    def oldest(self, now_ms: int) -> Sample:
        """The sample that started first; created if there is none."""
        if not self.samples:
            self.append(now_ms)
        return min(self.samples, key=start_ms)

    @abstractmethod
    def update(self, sample: Sample, value: float) -> None:
        """Fold one value into one sample."""

    @abstractmethod
    def combine(self, samples: Sequence[Sample]) -> float:
        """Combine all samples into the statistic."""


def start_ms(sample: Sample) -> int:
    """Sort key of `SampledStat.oldest`."""
    return sample.start_ms
