"""The message ``Histogram``, which is the same in both versions of remote write but for its start."""

from __future__ import annotations

from collections.abc import Sequence

from odradek_prometheus.remote_write.protobuf import delimited, tag, varint, zigzag
from odradek_prometheus.remote_write.sample import DOUBLE, NativeHistogram

COUNT, SUM, SCHEMA, ZERO_THRESHOLD, ZERO_COUNT = 1, 3, 4, 5, 6
NEGATIVE, POSITIVE = (8, 9), (11, 12)
"""The fields of spans and of deltas."""
TIME, START = 15, 17


def histogram_bytes(histogram: NativeHistogram, time_ms: int, start_ms: int = 0) -> bytes:
    """The fields of a histogram of integers."""
    parts = [
        tag(COUNT, 0) + varint(histogram.observations),
        tag(SUM, 1) + DOUBLE.pack(histogram.total),
        tag(SCHEMA, 0) + zigzag(histogram.schema),
        tag(ZERO_THRESHOLD, 1) + DOUBLE.pack(histogram.zero_threshold),
        tag(ZERO_COUNT, 0) + varint(histogram.zero_count),
        *buckets(NEGATIVE, histogram.negative),
        *buckets(POSITIVE, histogram.positive),
        tag(TIME, 0) + varint(time_ms),
    ]
    if start_ms:
        parts.append(tag(START, 0) + varint(start_ms))
    return b"".join(parts)


def stale_histogram(stale_bits: bytes, time_ms: int) -> bytes:
    """The marker of a native histogram: its sum is the marker."""
    return tag(SUM, 1) + stale_bits + tag(TIME, 0) + varint(time_ms)


def buckets(fields: tuple[int, int], runs: Sequence[tuple[int, Sequence[int]]]) -> list[bytes]:
    """Spans and deltas: the gap before each run and its length, and each count less the one before."""
    spans, deltas, after, before = [], [], 0, 0
    for first, counts in runs:
        spans.append(
            delimited(fields[0], tag(1, 0) + zigzag(first - after) + tag(2, 0) + varint(len(counts)))
        )
        after = first + len(counts)
        for count in counts:
            deltas.append(zigzag(count - before))
            before = count
    return [*spans, delimited(fields[1], b"".join(deltas))] if spans else []
