"""A reader's place in a partition: its lag in records, and records that it lost."""

from __future__ import annotations

from typing import NamedTuple


class Ends(NamedTuple):
    """The offsets that bound what can be read of a partition."""

    start: int
    """The log start offset."""
    high_watermark: int
    last_stable: int
    """The end for readers of committed records (``read_committed``)."""

    @property
    def is_valid(self) -> bool:
        """Whether a broker can have meant them."""
        return 0 <= self.start <= self.high_watermark and 0 <= self.last_stable <= self.high_watermark

    def seen_by(self, *, read_committed: bool) -> Ends:
        """What bounds the records that a reader may get: for one of committed records, the last stable offset
        is the end.
        """
        return self._replace(high_watermark=self.last_stable) if read_committed else self


class Standing(NamedTuple):
    """The figures of one reader and one partition, in records by offset. None is below 0."""

    at: int
    """The offset from which there is something to read: the position, or the log start if that is later."""
    lag: int
    unstable: int
    """The part of the lag that waits for the end of open transactions."""
    lost: int
    """Records that were deleted before they were read."""
    ahead: int
    """How far the position is past the end: the topic was truncated, or a tool has set a wrong offset."""


def standing(position: int, ends: Ends, *, only_markers: bool = False) -> Standing:
    """The standing of a reader.

    Args:
        position: A committed offset, or the offset that a client has fetched.
        ends: Those of the partition.
        only_markers: Nothing but the markers of transactions is left from the position on. Consumers that
            commit the offset of the record after the last one never get past them.
    """
    start, end, last_stable = ends
    if start <= position <= end == last_stable and not only_markers:
        return Standing(position, end - position, 0, 0, 0)
    at = max(position, start)
    lag = 0 if only_markers else max(end - at, 0)
    unstable = min(lag, end - max(last_stable, at)) if last_stable < end else 0
    return Standing(at, lag, max(unstable, 0), max(start - position, 0), max(position - end, 0))
