"""The number of recorded values; after org.apache.kafka.common.metrics.stats.WindowedCount."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.metrics.sampled_stat import Sample, SampledStat


class WindowedCount(SampledStat):
    """Counts events, regardless of their value."""

    __slots__ = ()

    def update(self, sample: Sample, value: float) -> None:
        sample.value += 1.0

    def combine(self, samples: Sequence[Sample]) -> float:
        return sum(sample.value for sample in samples)
