from __future__ import annotations

from odradek.metrics.bucket_counts import BucketCounts


def test_values_are_counted_up_to_each_bound() -> None:
    counts = BucketCounts((0.001, 0.01, 1.0))

    for value in (0, 0.001, 0.002, 0.5, 7):
        counts.add(value)

    assert list(counts.up_to()) == [("0.001", 2), ("0.01", 3), ("1", 4), ("+Inf", 5)]
    assert counts.total == 7.503


def test_nothing_was_counted() -> None:
    assert list(BucketCounts((1.0,)).up_to()) == [("1", 0), ("+Inf", 0)]
