"""The timestamp of the record at an offset, found by asking for offsets at times (ListOffsets).

That needs no right to read the topic. Each answer halves the time in which the record can lie; one that names
the record itself ends the search. A client's clock may have set the timestamp.
"""

from __future__ import annotations

from typing import Final

NEAR_MS: Final = 1_000
"""The search ends when it is this near."""


class TimeSearch:
    """The search for one record; twenty answers suffice for twelve days.

    Args:
        offset: Of the record.
        now_ms: The latest timestamp that is of interest, epoch milliseconds.
    """

    __slots__ = ("asks_ms", "before_ms", "found_ms", "offset")

    def __init__(self, offset: int, now_ms: int) -> None:
        self.offset = offset
        self.before_ms = now_ms + 1
        """The record has a smaller timestamp."""
        self.found_ms: int | None = None
        """The record's timestamp, or one that is at most `NEAR_MS` smaller; None if nothing is known yet."""
        self.asks_ms: int | None = 0
        """The time to ask for next; None at the end."""

    def answered(self, offset: int, timestamp_ms: int) -> None:
        """Take the answer to the last question.

        Args:
            offset: Of the first record with a timestamp of the asked time or later; below 0 for none.
            timestamp_ms: Of that record.
        """
        asked_ms = self.asks_ms
        assert asked_ms is not None
        is_first = offset >= 0 and not asked_ms  # in the log: compaction may have taken those before it
        if is_first or 0 <= offset <= self.offset:
            self.found_ms = max(timestamp_ms, asked_ms)
        else:
            self.before_ms = asked_ms
        is_it = offset == self.offset or (is_first and offset > self.offset)
        if is_it or self.found_ms is None or self.before_ms - self.found_ms <= NEAR_MS:
            self.asks_ms = None
        else:
            self.asks_ms = (self.found_ms + self.before_ms) // 2
