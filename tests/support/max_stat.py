"""The statistic with which `ExportTimes` is compared; after org.apache.kafka.common.metrics.stats.Max."""

from __future__ import annotations

import math
from collections.abc import Sequence

from odradek.metrics.sampled_stat import Sample, SampledStat


class Max(SampledStat):
    """Largest value; NaN without any."""

    __slots__ = ()

    initial_value = -math.inf

    def update(self, sample: Sample, value: float) -> None:
        if value > sample.value:
            sample.value = value

    def combine(self, samples: Sequence[Sample]) -> float:
        return max((sample.value for sample in samples if sample.event_count), default=math.nan)
