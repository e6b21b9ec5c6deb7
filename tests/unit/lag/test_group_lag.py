"""Sums of a group, and which groups are shown with less than all series."""

from __future__ import annotations

import pytest

from odradek.lag.group_lag import Granularity, PartitionLag, SeriesCount, TopicLag, series_count, within
from odradek.lag.standing import Ends, standing

P, T, G = Granularity


def partition(index: int, lag: int, time_ms: int | None) -> PartitionLag:
    return PartitionLag(index, 100 - lag, standing(100 - lag, Ends(0, 100, 100)), time_ms)


TOPIC = TopicLag(partitions=[partition(0, 40, 9_000), partition(1, 2, None), partition(2, 0, 0)])


def test_a_topic_has_the_sum_and_the_longest_time_that_is_known() -> None:
    assert (TOPIC.lag, TOPIC.time_ms) == (42, 9_000)
    assert TopicLag(partitions=[partition(0, 5, None)]).time_ms is None
    assert (TopicLag().lag, TopicLag().time_ms) == (0, None)


def test_an_offset_has_four_series_and_a_topic_ten() -> None:
    assert series_count(partitions=100, topics=2) == SeriesCount(420, 20)


COUNTS = {"small": SeriesCount(10, 5), "large": SeriesCount(300, 5), "wide": SeriesCount(200, 100)}


@pytest.mark.parametrize(
    ("finest", "most", "fallen"),
    [
        (P, 510, {}),
        (P, 509, {"large": T}),
        (P, 200, {"large": T, "wide": T}),
        (P, 109, {"large": T, "wide": G, "small": T}),
        (P, 0, {"large": G, "wide": G, "small": G}),
        (T, 110, {}),
        (T, 109, {"wide": G}),
        (G, 0, {}),
    ],
)
def test_the_largest_groups_fall_back_first(
    finest: Granularity, most: int, fallen: dict[str, Granularity]
) -> None:
    assert dict(within(COUNTS, finest, most)) == fallen
