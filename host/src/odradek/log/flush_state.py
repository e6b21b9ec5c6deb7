"""How far a log has been flushed to disk, and the callbacks that wait for a flush.

After the recovery point of org.apache.kafka.storage.internals.log.LocalLog.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from odradek.log.log_segments import LogSegments
from odradek.waiting.steps import Steps
from odradek.wire.api_error import ApiError

NEVER_MS: Final = 0x7FFFFFFFFFFFFFFF
_EVERY_OFFSET: Final = 0x7FFFFFFFFFFFFFFF

FlushWaiter = Callable[[ApiError | None], None]


class FlushState:
    """The flush state of one log."""

    __slots__ = ("_wait_ms", "_waiters", "recovery_point")

    def __init__(self, recovery_point: int) -> None:
        self.recovery_point = recovery_point
        """Everything before this offset has been flushed, or existed when the log was opened."""
        self._wait_ms = NEVER_MS
        self._waiters: deque[tuple[int, FlushWaiter]] = deque()

    def hastens(self, wait_ms: int) -> bool:
        """Whether a flush within ``wait_ms`` from now must be requested; it then counts as requested."""
        if wait_ms >= self._wait_ms:
            return False
        self._wait_ms = wait_ms
        return True

    def wait(self, end_offset: int, callback: FlushWaiter) -> None:
        """Call back once everything before ``end_offset`` has been flushed, or the flush has failed."""
        self._waiters.append((end_offset, callback))

    def tell(self, end_offset: int, error: ApiError | None) -> None:
        """Run the callbacks that wait for offsets up to ``end_offset``."""
        while self._waiters and self._waiters[0][0] <= end_offset:
            self._waiters.popleft()[1](error)

    def steps(self, segments: LogSegments, log_end_offset: Callable[[], int]) -> Steps:
        """Flush everything that is in the log when the first step runs: earlier waiters rely on that.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; all waiting callbacks have been called with it.
        """
        directory = None
        while directory != segments.directory:  # once; again if the log has moved meanwhile
            directory, end_offset = segments.directory, log_end_offset()
            yield from self._flush(segments)
        self.recovery_point = max(self.recovery_point, end_offset)
        self.tell(end_offset, None)

    def _flush(self, segments: LogSegments) -> Steps:
        covered = tuple(segments.all)
        self._wait_ms = NEVER_MS
        try:
            yield segments.flush_work()
        except (ApiError, OSError) as problem:
            # After a failed fsync the state of the disk is unknown, so all waiters fail, later ones too.
            error = problem
            if not isinstance(error, ApiError):
                error = segments.files.failures.answer_to_flush(segments.directory, error)
            self.tell(_EVERY_OFFSET, error)
            raise error from problem
        segments.flushed(covered)
