"""How a reader moves: its trend, and whether it gets on. A lag alone says neither."""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

WINDOW_MS: Final = 60_000
"""The time that is looked at. For a reader that moves less often it is twice its longest pause."""
LONGEST_WINDOW_MS: Final = 1_200_000
STEP_MS: Final = 5_000
"""Of samples nearer than this to the one before, the last one counts."""
FEWEST: Final = 3
"""Samples, if they are far apart."""
RESTS_MS: Final = 300_000
"""A reader that has not been seen to move is judged after this time: ``max.poll.interval.ms``."""
LEAST_LAG_S: Final = 10
"""A lag that is read in less than this time moves up and down, and says nothing."""
MOVES: Final = 5


class Progress(StrEnum):
    """The movement of a reader, from the samples of its window, as Burrow judges it."""

    UNKNOWN = "unknown"
    """There are too few samples."""
    CAUGHT_UP = "caught up"
    """It was at the end at least once."""
    CATCHING_UP = "catching up"
    STEADY = "steady"
    """Neither of the others: its lag goes up and down, or is read in seconds."""
    FALLING_BEHIND = "falling behind"
    """Its lag grows, and has shrunk at no sample."""
    STALLED = "stalled"
    """There was something to read all the time, and its offset has not moved."""
    REWOUND = "rewound"
    """Its offset went back."""


class Sample(NamedTuple):
    """A reader at one moment. The sums of many partitions serve as well."""

    time_ms: int
    offset: int
    lag: int


class Movement:
    """The last samples of a reader."""

    __slots__ = ("moved_ms", "samples")

    def __init__(self) -> None:
        self.samples: deque[Sample] = deque()
        self.moved_ms: deque[int] = deque(maxlen=MOVES)
        """When it was seen first, and when its offset moved last."""

    def note(self, time_ms: int, offset: int, lag: int) -> None:
        """Add a sample. The clock must not go back."""
        samples = self.samples
        if not samples or samples[-1].offset != offset:
            self.moved_ms.append(time_ms)
        before_ms = samples[-2].time_ms + STEP_MS if len(samples) > 1 and samples[-1].lag else 0
        if samples and (samples[-1].time_ms >= time_ms or samples[-1].time_ms < before_ms):
            samples.pop()
        samples.append(Sample(time_ms, offset, lag))
        while len(samples) > FEWEST and samples[1].time_ms <= time_ms - self.window_ms:
            samples.popleft()

    @property
    def window_ms(self) -> int:
        """The time to look at. Some readers commit only every few minutes."""
        if len(self.moved_ms) < 2:
            return RESTS_MS
        longest_ms = max(after - before for before, after in pairwise(self.moved_ms))
        return min(max(WINDOW_MS, 2 * longest_ms), LONGEST_WINDOW_MS)

    @property
    def is_full(self) -> bool:
        """Whether the samples cover the window: before that they judge nobody."""
        samples = self.samples
        return len(samples) >= FEWEST and samples[-1].time_ms - samples[0].time_ms >= self.window_ms - STEP_MS

    @property
    def progress(self) -> Progress:
        """The reader's movement, as far as it is seen."""
        if len(self.samples) < 2:
            return Progress.UNKNOWN
        first, last = self.samples[0], self.samples[-1]
        if any(after.offset < before.offset for before, after in pairwise(self.samples)):
            return Progress.REWOUND
        if any(not each.lag for each in self.samples):
            return Progress.CAUGHT_UP
        if first.offset == last.offset:
            return Progress.STALLED
        if last.lag * 100 < first.lag * 99:
            return Progress.CATCHING_UP
        shrinks = any(after.lag < before.lag for before, after in pairwise(self.samples))
        in_time = last.lag * (last.time_ms - first.time_ms)
        is_little = in_time <= LEAST_LAG_S * 1_000 * (last.offset - first.offset)
        grows = last.lag * 100 > first.lag * 101
        return Progress.FALLING_BEHIND if grows and not shrinks and not is_little else Progress.STEADY

    @property
    def lag_per_second(self) -> float | None:
        """How fast the lag grows, in records per second, below 0 if it shrinks; None with too few samples."""
        if len(self.samples) < 2:
            return None
        first, last = self.samples[0], self.samples[-1]
        return (last.lag - first.lag) * 1_000 / (last.time_ms - first.time_ms)

    @property
    def caught_up_in_s(self) -> float | None:
        """Seconds until the lag is 0 if nothing changes; None for never, or with too few samples."""
        if not self.samples:
            return None
        lag, slope = self.samples[-1].lag, self.lag_per_second
        if not lag:
            return 0.0
        return lag / -slope if slope is not None and slope < 0 else None


class RetentionShare(NamedTuple):
    """How near the oldest unread record is to its deletion by ``retention.ms``."""

    share: float
    """Of the retention time, 1 and more when it may be deleted at any moment."""
    left_ms: int
    """At the earliest: a segment goes when its newest record is old enough."""


def retention_share(age_ms: int, retention_ms: int) -> RetentionShare | None:
    """The share of the oldest unread record; None without a limit (-1).

    Args:
        age_ms: The lag in time.
        retention_ms: ``retention.ms`` of the topic.
    """
    if retention_ms < 0:
        return None
    return RetentionShare(age_ms / max(retention_ms, 1), max(retention_ms - age_ms, 0))
