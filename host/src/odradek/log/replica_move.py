"""Moves a partition to another log directory while it is written to.

After org.apache.kafka.server.ReplicaAlterLogDirsThread and UnifiedLog's future logs (KIP-113). The copy grows
in a folder ``<topic>-<partition>.<id>-future`` until it has caught up. Then the last bytes are copied and the
folders are renamed in one step, so that no append comes in between. Renaming the copy is the point of no
return: it contains a mark that tells the next start that it replaces the folder of the same name in another
directory.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from odradek.bounds.path_kind import exists, is_file
from odradek.log.partition_log import PartitionLog
from odradek.log.private_file import FOLDER_MODE, write_private
from odradek.log.segment import LOG_SUFFIX, Segment
from odradek.log.segment_file import OpenFiles
from odradek.log.segment_index import INDEX_SUFFIXES
from odradek.waiting.clock import Clock
from odradek.waiting.steps import Pause, Steps
from odradek.wire.api_error import ApiError

log = logging.getLogger(__name__)

FUTURE_SUFFIX: Final = "-future"
DELETED_SUFFIX: Final = "-delete"
MOVED_MARK: Final = "replaces-the-folder-in-another-directory"
CHUNK_BYTES: Final = 64 * 1024
"""Bytes to copy per step: takes 1.3 ms with batches of 100 bytes, far less with larger ones."""
FLUSHES: Final = 5
"""How often the copy is flushed before it takes over, if appends keep outrunning it. After that it takes over
before its last bytes are flushed."""
THROTTLED_MS: Final = 50
"""How long to wait while the quota is exceeded."""
RETRY_MS: Final = 10_000
_OWN_SUFFIXES: Final = (LOG_SUFFIX, *INDEX_SUFFIXES, ".snapshot", ".tmp", ".deleted", ".cleaned", ".swap")


class MoveThrottle(Protocol):
    """The quota of moves."""

    def is_quota_exceeded(self, now_ms: int) -> bool:
        """Whether nothing may be copied now."""

    def record(self, value: float, now_ms: int) -> None:
        """Record copied bytes."""


class Unlimited:
    """A throttle without a limit."""

    def is_quota_exceeded(self, now_ms: int) -> bool:
        return False

    def record(self, value: float, now_ms: int) -> None:
        pass


class ReplicaMove:
    """The move of one partition into ``directory``."""

    def __init__(
        self,
        moving: PartitionLog,
        directory: Path,
        unique_id: str,
        clock: Clock,
        files: OpenFiles,
        throttle: MoveThrottle,
        remove: Callable[[Path], None],
    ) -> None:
        self.log = moving
        self.directory = directory
        self.folder = directory / f"{moving.name}.{unique_id}{FUTURE_SUFFIX}"
        self.clock = clock
        self.throttle = throttle
        self.end_offset = moving.log_start_offset
        """The offset after the last copied batch."""
        self._files = files
        self._remove = remove
        self._segments: list[Segment] = []
        self._source: Segment | None = None
        self._position = 0
        self._cancelled = False

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def offset_lag(self) -> int:
        """By how many offsets the copy lags behind the log."""
        return max(self.log.log_end_offset - self.end_offset, 0)

    def cancel(self) -> None:
        """Discard the copy; the partition stays where it is. `steps` ends when it is next resumed."""
        self._discard()
        self.abandon()

    def abandon(self) -> None:
        """Stop and keep the copy. `steps` ends when it is next resumed."""
        self.log.moving = False
        self.close()
        self._cancelled = True

    @property
    def is_over(self) -> bool:
        return self._cancelled or self.log.closed or self.log.directory.parent == self.directory

    def steps(self) -> Steps:
        """Run the whole move. If a disk fails, start again after `RETRY_MS`."""
        while not self.is_over:
            self.log.moving = True
            try:
                yield from self._copy()
                if self.is_over:
                    break
                # No yield from the last copied byte to the renamed folders: see `_copy`.
                left_behind = self._take_over()
                # Before the old folder goes, a power failure must not cost anything that only the copy has.
                yield from self.log.flushing()
                self._remove(left_behind)
            except (ApiError, OSError) as error:
                if isinstance(error, OSError):  # of the copy: all others are reported where they happen
                    error = self._files.failures.answer("move to", self.folder, error)
                self._discard()
                if not self.is_over:
                    log.warning(
                        "cannot move a log: trying again",
                        extra={"log": self.log.name, "problem": str(error), "retry_ms": RETRY_MS},
                    )
                    yield Pause(RETRY_MS)
            finally:
                if not self._cancelled:
                    self.log.moving = False
        if self.log.directory.parent != self.directory:
            self._discard()

    def close(self) -> None:
        """Close the files of the copy. The next start starts the move again."""
        for segment in self._segments:
            segment.close()

    # Copying

    def _copy(self) -> Steps:
        """Copy the log until the copy has caught up.

        The last piece is copied without a yield after it, so that no append comes before the takeover.
        """
        self._discard()
        self.folder.mkdir(FOLDER_MODE)
        yield None
        flushes, flushed = 0, False
        while not self.is_over:
            if self.throttle.is_quota_exceeded(self.clock.monotonic_ms()):
                yield Pause(THROTTLED_MS)
                continue
            sealed = self._next_source()
            if sealed is not None:
                yield from sealed.flushing()  # complete, so it is flushed once and never again
                continue
            if self._missing_bytes() <= CHUNK_BYTES:
                if flushed or flushes >= FLUSHES:
                    # All but the last piece is on the disk, so the flush after the takeover is short. Appends
                    # may have rolled the log meanwhile, so continue with new segments.
                    while self._copy_piece() or self._next_source() is not None:
                        pass
                    return
                flushes, flushed = flushes + 1, True
                yield from self._segments[-1].flushing()
                continue
            flushed = False  # appends may have outrun a flush
            self._copy_piece()
            yield None

    def _missing_bytes(self) -> int:
        """The bytes left to copy; more than one chunk unless the newest segment is being copied."""
        segments = self.log.segments
        if self._source is not segments[-1]:
            return CHUNK_BYTES + 1
        return self._source.size_bytes - self._position

    def _next_source(self) -> Segment | None:
        """Continue with the next segment if the current one has been copied or deleted; return the
        finished copy.
        """
        segments, source = self.log.segments, self._source
        if source in segments and (source is segments[-1] or self._position < source.size_bytes):
            return None
        # Retention may have deleted the current segment and the ones after it: search by offset. A partial
        # copy of a deleted segment does no harm, `_take_over` removes it.
        copied = -1 if source is None else source.base_offset
        following = next((each for each in segments if each.base_offset > copied), None)
        if following is None:
            return None
        sealed = self._segments[-1] if self._segments else None
        if sealed is not None:
            sealed.seal()
        copy = Segment(
            self.folder,
            following.base_offset,
            self.log.config.index_interval_bytes,
            following.created_ms,
            self._files,
        )
        copy.create()
        self._segments.append(copy)
        self._source, self._position = following, 0
        self.end_offset = max(self.end_offset, following.base_offset)
        return sealed

    def _copy_piece(self) -> bool:
        """Copy complete batches, up to `CHUNK_BYTES` but at least one; False if there are none."""
        if self._source is None or self._position >= self._source.size_bytes:
            return False
        data = self._source.span(self._position, CHUNK_BYTES)
        self.end_offset = self._segments[-1].append_many(data)
        self._position += len(data)
        self.throttle.record(len(data), self.clock.monotonic_ms())
        return True

    # Taking over

    def _take_over(self) -> Path:
        """Let the copy replace the log; return the folder that is left behind.

        Nothing may be appended between the last copied piece and this call.
        """
        current, final = self.log.directory, self.directory / self.log.name
        first_offset = self.log.segments[0].base_offset
        # Retention may have deleted segments since they were copied.
        for segment in [each for each in self._segments if each.base_offset < first_offset]:
            self._segments.remove(segment)
            segment.bury().unlink()
        rest = self._rest_of(current)
        try:
            for name, content in rest.items():
                write_private(self.folder / name, content)
            self.log.save_producers(self.folder)
            (self.folder / MOVED_MARK).touch()  # must be there when the folder gets its name
            os.rename(self.folder, final)
        except OSError as error:
            raise self._files.failures.answer("take over", self.folder, error) from error
        for segment in self._segments:
            segment.moved_to(final)
        self.log.move_to(final, self._segments)
        self._segments = []
        left_behind = current.with_name(self.folder.name.removesuffix(FUTURE_SUFFIX) + DELETED_SUFFIX)
        try:
            os.rename(current, left_behind)
            (final / MOVED_MARK).unlink()
        except OSError as error:
            self._files.failures.answer("remove", current, error)
            log.warning(
                "cannot remove the old folder of a moved log: the next start removes it",
                extra={"folder": str(current), "problem": error.strerror or str(error)},
            )
        return left_behind

    def _rest_of(self, current: Path) -> dict[str, bytes]:
        """The small files of the log, by name."""
        try:
            (current / MOVED_MARK).unlink(missing_ok=True)  # of an earlier move: only one folder may have it
            files = [each for each in current.iterdir() if is_file(each) and each.suffix not in _OWN_SUFFIXES]
            return {each.name: each.read_bytes() for each in files}
        except OSError as error:
            raise self._files.failures.answer("move", current, error) from error

    def _discard(self) -> None:
        if self._cancelled:
            return  # the folder and the log may belong to the next move by now
        for segment in self._segments:
            segment.close()
        self._segments, self._source, self._position = [], None, 0
        self.end_offset = self.log.log_start_offset
        try:
            if exists(self.folder):
                unique = f"{self.folder.name}-{self.clock.monotonic_ns()}"
                grave = self.folder.with_name(unique + DELETED_SUFFIX)
                os.rename(self.folder, grave)
                self._remove(grave)
        except OSError as error:
            log.warning(
                "cannot delete the copy of a move: the next start deletes it",
                extra={"folder": str(self.folder), "problem": error.strerror or str(error)},
            )
            self._files.failures.answer("delete", self.folder, error)
