"""The unit of remote write: one sample of one series."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from odradek_prometheus.families import Family
from odradek_prometheus.label_values import Labels

STALE_BITS: Final = struct.pack("<Q", 0x7FF0000000000002)
"""Prometheus' staleness marker: a NaN with bits of its own, which Python's floats may not keep."""
ZERO_BITS: Final = bytes(8)
DOUBLE: Final = struct.Struct("<d")
NAME_LABEL: Final = "__name__"


class NativeHistogram(NamedTuple):
    """An exponential histogram in Prometheus' terms."""

    observations: int
    total: float
    """The sum; NaN if it is unknown."""
    schema: int
    zero_threshold: float
    zero_count: int
    positive: Sequence[tuple[int, Sequence[int]]]
    """Runs of buckets: the index of the first, and the counts."""
    negative: Sequence[tuple[int, Sequence[int]]]


class Sample(NamedTuple):
    """A value of a series at a time."""

    name: str
    """With the suffix of a part of a histogram: ``_bucket``, ``_count``, ``_sum``."""
    labels: Labels
    """Sorted by name, without ``__name__``."""
    family: Family
    time_ms: int
    bits: bytes
    """The value, as a double in little-endian order."""
    start_ms: int = 0
    """Start of a total; 0 for none."""
    zero_ms: int = 0
    """The time of a 0 that is sent before the value; 0 for none."""
    histogram: NativeHistogram | None = None
    """Instead of the value."""


def labels_before_name(labels: Labels) -> int:
    """How many labels sort before the name: those that begin with a capital letter."""
    count = 0
    while count < len(labels) and labels[count][0] < NAME_LABEL:
        count += 1
    return count
