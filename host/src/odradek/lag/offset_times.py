"""When the records of one partition were appended, from polls of its end.

The record at an offset was appended between the last poll that found the log end at or before the offset and
the first one that found it beyond. No client's clock can break these bounds. A timestamp that a client wrote
is believed only within them, and for records that are older than all polls.

All times are milliseconds of one clock, which the caller chooses; the table never goes back.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Final, NamedTuple

MAX_POINTS: Final = 120
KEPT_POINTS: Final = 110
"""Thinning leaves at most so many, so that it is rare."""
GAP_SHARE: Final = 0.08
"""A point may go if the gap that it leaves is at most this share of the gap's age."""
SLACK_MS: Final = 500
"""A timestamp may be this far outside the bounds: clocks differ, and a batch is older than its append."""


class AppendTime(NamedTuple):
    """The time of an append, and what is certain about it."""

    time_ms: int
    earliest_ms: int | None
    """None if the record is older than the first poll."""
    latest_ms: int

    @property
    def error_ms(self) -> int | None:
        """How far the time may be off; None if there is no bound."""
        if self.earliest_ms is None:
            return None
        return max(self.time_ms - self.earliest_ms, self.latest_ms - self.time_ms)


class OffsetTimes:
    """A table of ends and times. Of polls with the same end it keeps the first and the last."""

    __slots__ = ("ends", "found_ms", "left_ms")

    def __init__(self) -> None:
        self.ends = array("q")
        """Ascending."""
        self.found_ms = array("q")
        """When the answer of the first poll with this end came."""
        self.left_ms = array("q")
        """When the last poll with this end was sent."""

    def note(self, end: int, sent_ms: int, received_ms: int | None = None) -> None:
        """Note a poll. A smaller end than before is a truncation: what was beyond it is forgotten.

        Args:
            end: The log end offset.
            sent_ms: When it was asked for.
            received_ms: When it was answered; None for an owner of the log, who sees it at once.
        """
        ends, left_ms = self.ends, self.left_ms
        if ends:
            sent_ms = max(sent_ms, left_ms[-1])
            while ends and ends[-1] > end:
                for column in (ends, self.found_ms, left_ms):
                    column.pop()
            if ends and ends[-1] == end:
                left_ms[-1] = sent_ms
                return
        ends.append(end)
        left_ms.append(sent_ms)
        self.found_ms.append(sent_ms if received_ms is None else max(received_ms, sent_ms))
        if len(ends) > MAX_POINTS:
            self.thin_out()

    def thin_out(self) -> None:
        """Drop points where others are near, measured by their age, then the oldest ones."""
        found_ms, left_ms, last = self.found_ms, self.left_ms, len(self.ends) - 1
        now_ms, kept = left_ms[last], [0]
        for point in range(1, last):
            next_ms = found_ms[point + 1]
            if next_ms - left_ms[kept[-1]] > GAP_SHARE * (now_ms - next_ms):
                kept.append(point)
        kept = [*kept, last][-KEPT_POINTS:]
        self.ends, self.found_ms, self.left_ms = (
            array("q", [column[point] for point in kept]) for column in (self.ends, found_ms, left_ms)
        )

    def appended(
        self, offset: int, timestamp_ms: int | None = None, *, stamped: bool = False
    ) -> AppendTime | None:
        """The time when the record at an offset was appended.

        Args:
            offset: Of a record that existed at the last poll.
            timestamp_ms: The record's own timestamp, if it is known.
            stamped: The timestamp is that of the append (LogAppendTime), so it is always right.

        Returns:
            The time; None if the offset is at or beyond the last end, or if the record is older than the
            table and its timestamp is not known. The table never extrapolates.
        """
        after = bisect_right(self.ends, offset)
        if after == len(self.ends):
            return None
        latest_ms = self.found_ms[after]
        if stamped and timestamp_ms is not None:
            return AppendTime(timestamp_ms, timestamp_ms, timestamp_ms)
        if not after:
            if timestamp_ms is None:
                return None
            return AppendTime(min(timestamp_ms, latest_ms), None, latest_ms)
        earliest_ms = self.left_ms[after - 1]
        if timestamp_ms is not None and earliest_ms - SLACK_MS <= timestamp_ms <= latest_ms + SLACK_MS:
            return AppendTime(min(max(timestamp_ms, earliest_ms), latest_ms), earliest_ms, latest_ms)
        before = self.ends[after - 1]
        share = (offset - before + 1) / (self.ends[after] - before + 1)
        return AppendTime(earliest_ms + int((latest_ms - earliest_ms) * share), earliest_ms, latest_ms)

    def is_older(self, offset: int) -> bool:
        """Whether a record is older than all polls, so that only its timestamp can tell its time."""
        return bool(self.ends) and offset < self.ends[0]
