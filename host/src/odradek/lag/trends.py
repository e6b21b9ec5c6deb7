"""How groups get on in topics, and which partitions are hot, over the last rounds.

Only what a round has asked for is remembered for the next one, so that nothing grows as groups and topics
come and go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from odradek.lag.group_lag import GroupLag, TopicEnds, TopicLag, Trend
from odradek.lag.movement import Movement

HOT_WINDOW_MS: Final = 300_000
HOT_FROM: Final = 2.0
"""A hot partition has at least so many times its even share of the topic's new records."""
HOT_RECORDS: Final = 1_000
"""Fewer new records of a topic say nothing."""


class Followed(NamedTuple):
    """A group in a topic."""

    partitions: tuple[int, ...]
    """Sums of others cannot be compared."""
    movement: Movement


class Growth(NamedTuple):
    """A topic since the last window ended."""

    since_ms: int
    ends: Mapping[int, int]
    hot: Mapping[int, float]
    """Of the last window."""


class Trends:
    """The trends of all groups and topics. All times are on one clock."""

    def __init__(self) -> None:
        self.followed: dict[tuple[str, str], Followed] = {}
        """By group and topic, of this round."""
        self.followed_before: dict[tuple[str, str], Followed] = {}
        self.growth: dict[str, Growth] = {}
        """By topic, of this round."""
        self.growth_before: dict[str, Growth] = {}

    def begin(self) -> None:
        """Begin a round."""
        self.followed_before, self.followed = self.followed, {}
        self.growth_before, self.growth = self.growth, {}

    def of_group(self, lag: GroupLag, now_ms: int) -> GroupLag:
        """The lag with its trend in each topic."""
        topics = {
            name: replace(topic, trend=self.trend((lag.group, name), topic, now_ms))
            for name, topic in lag.topics.items()
        }
        return replace(lag, topics=topics)

    def trend(self, place: tuple[str, str], topic: TopicLag, now_ms: int) -> Trend | None:
        """The trend of a group in a topic; None until the samples cover their window."""
        partitions = tuple([each.partition for each in topic.partitions])
        found = self.followed_before.get(place)
        if found is None or found.partitions != partitions:
            found = Followed(partitions, Movement())
        self.followed[place] = found
        movement = found.movement
        movement.note(now_ms, sum([each.offset for each in topic.partitions]), topic.lag)
        per_second = movement.lag_per_second
        if not movement.is_full or per_second is None:
            return None
        return Trend(movement.progress, per_second, movement.caught_up_in_s)

    def of_topic(self, ends: TopicEnds, now_ms: int) -> TopicEnds:
        """The topic with its hot partitions."""
        current = {index: end for index, _, end in ends.partitions}
        found = self.growth_before.get(ends.topic)
        if found is None or found.ends.keys() != current.keys():
            found = Growth(now_ms, current, {})
        elif now_ms - found.since_ms >= HOT_WINDOW_MS:
            found = Growth(now_ms, current, dict(hot(found.ends, current)))
        self.growth[ends.topic] = found
        return replace(ends, hot=found.hot)


def hot(before: Mapping[int, int], after: Mapping[int, int]) -> Iterator[tuple[int, float]]:
    """The hot partitions, each with its share of the new records as a multiple of an even share."""
    new = {index: max(end - before[index], 0) for index, end in after.items()}
    total = sum(new.values())
    if total < HOT_RECORDS:
        return
    for index, records in new.items():
        times = records * len(new) / total
        if times >= HOT_FROM:
            yield index, times
