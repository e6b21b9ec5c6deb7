"""How far a log has been forced to the disk, and who waits for it.

After the recovery point of org.apache.kafka.storage.internals.log.LocalLog.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from odradek.log.log_segments import LogSegments
from odradek.log.segment import storage_error
from odradek.log.steps import Steps
from odradek.wire.api_error import ApiError

NEVER_MS: Final = 0x7FFFFFFFFFFFFFFF

FlushWaiter = Callable[[ApiError | None], None]


class FlushState:
    """Of one log."""

    __slots__ = ("_due_ms", "_waiters", "recovery_point")

    def __init__(self, recovery_point: int) -> None:
        self.recovery_point = recovery_point
        """What stands before it has been forced to the disk, or was there when the log was opened."""
        self._due_ms = NEVER_MS
        self._waiters: deque[tuple[int, FlushWaiter]] = deque()

    def hastens(self, due_ms: int) -> bool:
        """Whether a flush by then has to be asked for; it counts as asked for from now on."""
        if due_ms >= self._due_ms:
            return False
        self._due_ms = due_ms
        return True

    def wait(self, end_offset: int, callback: FlushWaiter) -> None:
        """Call back once everything before ``end_offset`` has been forced to the disk, or could not be."""
        self._waiters.append((end_offset, callback))

    def tell(self, end_offset: int, error: ApiError | None) -> None:
        """Call back those who wait for no more than this."""
        while self._waiters and self._waiters[0][0] <= end_offset:
            self._waiters.popleft()[1](error)

    def steps(self, segments: LogSegments, log_end_offset: Callable[[], int]) -> Steps:
        """Flush all there is when the first step is taken: who came until then counts on it.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; everyone who waits is told.
        """
        directory = None
        while directory != segments.directory:  # once; again for a log that has moved meanwhile
            directory, end_offset = segments.directory, log_end_offset()
            yield from self._flush(segments)
        self.recovery_point = max(self.recovery_point, end_offset)
        self.tell(end_offset, None)

    def _flush(self, segments: LogSegments) -> Steps:
        covered = tuple(segments.all)
        self._due_ms = NEVER_MS
        try:
            yield segments.flush_work()
        except (ApiError, OSError) as problem:
            error = problem
            if not isinstance(error, ApiError):
                error = storage_error("flush", segments.directory, error)
            self.tell(NEVER_MS, error)
            raise error from problem
        segments.flushed(covered)
