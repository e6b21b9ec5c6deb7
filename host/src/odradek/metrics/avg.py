"""The mean of the recorded values; after org.apache.kafka.common.metrics.stats.Avg."""

from __future__ import annotations

import math
from collections.abc import Sequence

from odradek.metrics.sampled_stat import Sample, SampledStat


class Avg(SampledStat):
    """Mean of the values; NaN without any."""

    __slots__ = ()

    def update(self, sample: Sample, value: float) -> None:
        sample.value += value

    def combine(self, samples: Sequence[Sample]) -> float:
        events = sum(sample.event_count for sample in samples)
        return sum(sample.value for sample in samples) / events if events else math.nan
