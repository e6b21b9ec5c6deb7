"""How groups get on, and hot partitions, over rounds half a minute apart."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from odradek.lag.group_lag import GroupLag, PartitionLag, TopicEnds, TopicLag, Trend
from odradek.lag.movement import Progress
from odradek.lag.standing import Ends, standing
from odradek.lag.trends import HOT_WINDOW_MS, Trends

ROUND_MS = 30_000
Places = Sequence[tuple[int, int]]
"""The offset and the end of each partition of a topic."""


def lag_of(places: Places) -> GroupLag:
    read = [
        PartitionLag(index, at, standing(at, Ends(0, end, end)), 0) for index, (at, end) in enumerate(places)
    ]
    topics = {"t": TopicLag(partitions=read)}
    return GroupLag(group="g", type="classic", state="Stable", members=1, topics=topics)


def trend(*rounds: Places) -> Trend | None:
    trends, found = Trends(), lag_of([])
    for number, places in enumerate(rounds):
        trends.begin()
        found = trends.of_group(lag_of(places), number * ROUND_MS)
    return found.topics["t"].trend


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        ([[(0, 90)]], None),
        ([[(0, 180)], [(60, 180)]], None),
        ([[(0, 180)], [(60, 180)], [(120, 180)]], Trend(Progress.CATCHING_UP, -2.0, 30.0)),
        ([[(0, 90)], [(60, 240)], [(120, 390)]], Trend(Progress.FALLING_BEHIND, 3.0, None)),
        ([[(0, 90)], *[[(9, 129 + 30 * number)] for number in range(4)]], Trend(Progress.STALLED, 1.0, None)),
        (
            [[(0, 90), (5, 5)], [(30, 90), (35, 35)], [(60, 90), (65, 65)]],
            Trend(Progress.CATCHING_UP, -1.0, 30.0),
        ),
    ],
    ids=["the first round", "too early", "catching up", "falling behind", "stalled", "two partitions"],
)
def test_a_trend(rounds: Sequence[Places], expected: Trend | None) -> None:
    assert trend(*rounds) == expected


def test_a_partition_more_is_neither_progress_nor_a_step_back() -> None:
    assert trend([(50, 90)], [(55, 90)], [(60, 90), (0, 500)]) is None
    assert trend([(50, 90), (700, 700)], [(55, 90), (700, 700)], [(60, 90)]) is None


def test_a_partition_with_twice_its_share_is_hot_until_the_next_window() -> None:
    trends, shown = Trends(), []
    for number, ends in enumerate([(0, 0, 0), (700, 100, 100), (1_500, 300, 200), (2_500, 1_300, 1_200)]):
        trends.begin()
        topic = TopicEnds("t", [(index, 0, end) for index, end in enumerate(ends)])
        shown.append(trends.of_topic(topic, number * HOT_WINDOW_MS // (2 if number < 2 else 1)).hot)

    assert shown == [{}, {}, {0: 2.25}, {}]


def test_what_a_round_does_not_name_is_forgotten() -> None:
    trends = Trends()
    for name in ("a", "b"):
        trends.begin()
        trends.of_topic(TopicEnds(name, [(0, 0, 1)]), 0)

    assert list(trends.growth) == ["b"]
    assert list(trends.growth_before) == ["a"]
