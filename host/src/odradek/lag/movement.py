"""How a reader moves: its trend, and whether it gets on. A lag alone says neither."""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

SAMPLES: Final = 10


class Progress(StrEnum):
    """The movement of a reader, from its last samples."""

    UNKNOWN = "unknown"
    """There are too few samples."""
    CAUGHT_UP = "caught up"
    """It was at the end at least once."""
    CATCHING_UP = "catching up"
    STEADY = "steady"
    """It reads as fast as others write."""
    FALLING_BEHIND = "falling behind"
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

    __slots__ = ("samples",)

    def __init__(self) -> None:
        self.samples: deque[Sample] = deque(maxlen=SAMPLES)

    def note(self, time_ms: int, offset: int, lag: int) -> None:
        """Add a sample. The clock must not go back; of two at one time the later counts."""
        if self.samples and self.samples[-1].time_ms >= time_ms:
            self.samples.pop()
        self.samples.append(Sample(time_ms, offset, lag))

    @property
    def progress(self) -> Progress:
        """The reader's movement. A lag that moves by less than a hundredth is steady."""
        if len(self.samples) < 2:
            return Progress.UNKNOWN
        first, last = self.samples[0], self.samples[-1]
        if any(after.offset < before.offset for before, after in pairwise(self.samples)):
            return Progress.REWOUND
        if any(not each.lag for each in self.samples):
            return Progress.CAUGHT_UP
        if first.offset == last.offset:
            return Progress.STALLED
        if abs(last.lag - first.lag) * 100 <= first.lag:
            return Progress.STEADY
        return Progress.CATCHING_UP if last.lag < first.lag else Progress.FALLING_BEHIND

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
