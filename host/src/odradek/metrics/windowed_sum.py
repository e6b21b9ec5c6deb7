"""The sum of the recorded values; after org.apache.kafka.common.metrics.stats.WindowedSum."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.metrics.sampled_stat import Sample, SampledStat


class WindowedSum(SampledStat):
    """Adds up the values. A negative value takes back an earlier one."""

    __slots__ = ()

    def update(self, sample: Sample, value: float) -> None:
        sample.value += value

    def combine(self, samples: Sequence[Sample]) -> float:
        return sum(sample.value for sample in samples)
