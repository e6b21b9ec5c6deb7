"""Samples of series: one for a number, one for each part of a histogram, one for a native histogram."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from odradek.temporality.exponential import ExponentialState
from odradek.temporality.histogram import HistogramState
from odradek_prometheus.client_series import MappedSeries
from odradek_prometheus.families import FamilyType
from odradek_prometheus.histogram_parts import histogram_parts
from odradek_prometheus.label_values import Labels
from odradek_prometheus.remote_write.native import native_histogram
from odradek_prometheus.remote_write.sample import DOUBLE, STALE_BITS, ZERO_BITS, Sample

NS_PER_MS: Final = 1_000_000
OLDEST_ZERO_MS: Final = 50 * 60_000
"""Prometheus refuses samples that are an hour older than its newest ones."""


@dataclass(frozen=True, slots=True)
class External:
    """Labels that all series get, unless they have them."""

    labels: Labels

    def added(self, labels: Labels) -> Labels:
        if not self.labels:
            return labels
        found = list(labels)
        for label in self.labels:
            # No label sorts between a name alone and the pairs with that name.
            position = bisect_left(found, label[:1])
            if position == len(found) or found[position][0] != label[0]:
                found.insert(position, label)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Moment:
    """The times of the samples of one record."""

    time_ms: int
    """Of the samples, in the host's time."""
    shift_ms: int = 0
    """Added to a time of the client's clock, gives the host's time."""

    def start_ms(self, start_ns: int) -> int:
        """The start of a total; 0 if it is unknown or not before the sample."""
        found = start_ns // NS_PER_MS + self.shift_ms
        return found if 0 < found < self.time_ms else 0

    def zero_ms(self, start_ms: int) -> int:
        """The time of the zero before the first sample of a total."""
        return min(max(start_ms, self.time_ms - OLDEST_ZERO_MS), self.time_ms - 1) if start_ms else 0


def samples_of(
    series: MappedSeries, labels: Labels, moment: Moment, *, is_new: bool = False
) -> Iterator[Sample]:
    """The samples of a series.

    Args:
        series: The series.
        labels: Its labels, with external ones.
        moment: The times.
        is_new: The stream has had no sample: its total begins with a zero.
    """
    family, start_ms, state = series.family, 0, series.distribution
    if family.type is not FamilyType.GAUGE:
        start_ms = moment.start_ms(series.start_ns)
    zero_ms = moment.zero_ms(start_ms) if is_new else 0
    if isinstance(state, ExponentialState):
        native = native_histogram(state, series.value)
        if native is not None:
            yield Sample(family.name, labels, family, moment.time_ms, b"", start_ms, histogram=native)
        return
    parts = [(family.name, labels, series.value)]
    if isinstance(state, HistogramState):
        parts = [
            (family.name + suffix, with_bound(labels, bound), float(value))
            for suffix, bound, value in histogram_parts(state, series.value)
        ]
    for name, part_labels, value in parts:
        bits = DOUBLE.pack(value)
        yield Sample(
            name, part_labels, family, moment.time_ms, bits, start_ms, zero_ms if bits != ZERO_BITS else 0
        )


def with_bound(labels: Labels, bound: str) -> Labels:
    return tuple(sorted((*labels, ("le", bound)))) if bound else labels


def markers_of(series: MappedSeries, labels: Labels, time_ms: int) -> Iterator[Sample]:
    """The staleness markers of the samples of a series."""
    for sample in samples_of(series, labels, Moment(time_ms)):
        yield sample._replace(bits=STALE_BITS, start_ms=0, histogram=None)
