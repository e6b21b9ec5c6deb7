"""The files of one partition: segments, offsets and producers.

After org.apache.kafka.storage.internals.log.LocalLog (Kafka 4.3).
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from odradek.log.log_config import LogConfig
from odradek.log.log_loader import load_producers, load_segments, load_start_offset
from odradek.log.log_segments import Grave, LogSegments
from odradek.log.offset_checkpoint import CLEANER_OFFSET, LOG_START_OFFSET, read_offset, write_offset
from odradek.log.producer_ids import ProducerIds
from odradek.log.producer_snapshot import save_snapshot
from odradek.log.producer_state_manager import ProducerStateManager
from odradek.log.retention import breached_by_start, expired
from odradek.log.segment import Segment
from odradek.log.segment_file import OpenFiles
from odradek.log.transaction_index import AbortedTransaction
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX

log = logging.getLogger(__name__)

HIGH_WATERMARK: Final = -1
"""Stands for the high watermark in DeleteRecords."""


class StoredLog:
    """The stored part of a `PartitionLog`."""

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        now_ms: int,
        files: OpenFiles | None = None,
        producer_ids: ProducerIds | None = None,
        *,
        offline: bool = False,
    ) -> None:
        """Open the log in ``directory``, which must exist, and recover it if it was not closed properly.

        Args:
            directory: The partition's folder.
            config: Its configuration.
            now_ms: The time, which counts as the creation time of loaded segments.
            files: The open files of all logs.
            producer_ids: The count of the producers of all logs.
            offline: Read nothing, because the disk cannot be used.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        self.directory = directory
        self.config = config
        """May be replaced at any time; applies from the next append on."""
        self.producers = ProducerStateManager(producer_ids)
        self.offline = offline
        """The disk failed: every request is refused until the next start."""
        self.has_offsets = not offline
        """Whether the offsets are those of the log; a log that was never read has none."""
        self.closed = offline
        self.moving = False
        """The log is being copied to another directory, so compaction must wait."""
        self.first_dirty_offset = self._log_start_offset = self._next_offset = 0
        """Everything before the first dirty offset has been compacted."""
        self._snapshot_offset = 0
        """The log end offset for which the producers are saved; 0 without a snapshot."""
        self._files = OpenFiles() if files is None else files
        segments = [self.detached_segment(0, now_ms)] if offline else self._loaded(now_ms)
        self._segments = LogSegments(directory, self._files, segments)

    def _loaded(self, now_ms: int) -> list[Segment]:
        directory = self.directory
        try:
            names = set(os.listdir(directory))
            if CLEANER_OFFSET in names:
                self.first_dirty_offset = read_offset(directory, CLEANER_OFFSET) or 0
            segments, next_offset = load_segments(directory, names, self.config, self._files, now_ms)
            segments, self._log_start_offset, self._next_offset = load_start_offset(
                directory, names, segments, next_offset, lambda offset: self._new_segment(offset, now_ms)
            )
            self._snapshot_offset = load_producers(
                directory, names, segments, self._next_offset, self.producers
            )
        except OSError as error:
            raise self._failed("open", error) from error
        return segments

    @property
    def name(self) -> str:
        """``<topic>-<partition>``."""
        return self.directory.name

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self._next_offset

    @property
    def high_watermark(self) -> int:
        """The log end offset, as there is one replica."""
        return self._next_offset

    @property
    def last_stable_offset(self) -> int:
        """The end of what a ``read_committed`` consumer may read: the first offset of the oldest open
        transaction, else the high watermark.
        """
        unstable = self.producers.first_unstable_offset
        return self._next_offset if unstable is None else max(unstable, self.log_start_offset)

    def aborted_transactions(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that may have records from ``first_offset`` on and before
        ``end_offset``.
        """
        return self.producers.aborted.overlapping(first_offset, end_offset)

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Oldest first; appends go to the last."""
        return tuple(self._segments.all)

    @property
    def graves(self) -> deque[Grave]:
        """Files of deleted segments that are still on the disk, oldest first."""
        return self._segments.graves

    # Rolling

    def roll(self, now_ms: int) -> None:
        """Start a new segment, unless the newest is empty.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; appends still go to the old segment.
        """
        if not self._segments.active.size_bytes:
            return
        self._save_state(self._segments.roll_to(self._new_segment(self._next_offset, now_ms)))

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        segment = self.detached_segment(base_offset, now_ms)
        segment.create()
        return segment

    def detached_segment(self, base_offset: int, now_ms: int) -> Segment:
        """A segment in the log's folder that has no file yet and is not part of the log."""
        return Segment(self.directory, base_offset, self.config.index_interval_bytes, now_ms, self._files)

    def _save_state(self, sealed: Segment) -> None:
        # Both can be rebuilt from the segment, so a full disk costs only time here.
        try:
            if sealed.size_bytes:
                sealed.seal()
            if self._snapshot_offset != self._next_offset:
                self.producers.aborted.forget_before(self.log_start_offset)
                self.save_producers(self.directory)
        except OSError as error:
            log.warning(
                "cannot save an index or a producer snapshot: the next start rebuilds it",
                extra={"log": self.name, "problem": error.strerror or str(error)},
            )
            self._failed("save the state of", error)  # may close this log

    # Deleting

    def delete_records(self, offset: int) -> int:
        """Delete the records before ``offset``; -1 stands for the high watermark.

        Returns:
            The log start offset, which never decreases.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR.
        """
        wanted = self.high_watermark if offset == HIGH_WATERMARK else offset
        if not 0 <= wanted <= self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not within 0 to {self.high_watermark}"
            )
        if wanted > self._log_start_offset:
            try:
                write_offset(self.directory, LOG_START_OFFSET, wanted)
            except OSError as error:
                raise self._failed("write the start offset of", error) from error
            self._log_start_offset = wanted
            self._bury(breached_by_start(self._segments.all, wanted))
        return self._log_start_offset

    def delete_expired(self, now_ms: int, at_most: int = INT32_MAX) -> int:
        """Delete up to ``at_most`` segments that retention no longer keeps; return how many.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        count = expired(self._segments.all, self.config, self._log_start_offset, now_ms)
        if count == len(self._segments.all):
            # A log always has an active segment: give it an empty one before the last one goes.
            self.roll(now_ms)
        count = min(count, at_most)
        self._bury(count)
        return count

    def _bury(self, count: int) -> None:
        """Delete the oldest segments; the last one must stay."""
        for _ in range(count):
            self._segments.bury_oldest(self.config.file_delete_delay_ms)
            self._log_start_offset = max(self._log_start_offset, self._segments.all[0].base_offset)

    def cleaned_to(self, offset: int, discarded: Collection[int]) -> None:
        """Record that everything before ``offset`` has been compacted.

        Args:
            offset: The new first dirty offset.
            discarded: Markers of aborted transactions that have no records left. Consumers must no longer
                get these transactions: when the marker is removed too, they would skip later records of
                the producer.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; after a restart the same part is compacted again.
        """
        try:
            if discarded:
                self.producers.aborted.forget(discarded)
                self.save_producers(self.directory)
            write_offset(self.directory, CLEANER_OFFSET, offset)
        except OSError as error:
            raise self._failed("write the cleaner's offset of", error) from error
        self.first_dirty_offset = offset

    def replace(self, old: Sequence[Segment], compacted: Segment) -> bool:
        """Replace segments by the compacted one made from them, which is written and flushed.

        Returns:
            False if the segments are no longer there; nothing has changed.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the next start completes the replacement.
        """
        if self.closed or self.moving:
            return False
        return self._segments.replace(old, compacted, self.config.file_delete_delay_ms)

    # Moving

    def move_to(self, directory: Path, segments: list[Segment]) -> None:
        """Continue in another folder with copies of all segments. References to this log stay valid."""
        self._segments.move_to(directory, segments)
        self.directory, self._snapshot_offset = directory, self._next_offset

    def save_producers(self, directory: Path) -> None:
        """Write a snapshot of the producers into ``directory``.

        Raises:
            OSError: No snapshot was written.
        """
        save_snapshot(directory, self._next_offset, self.producers.producers, self.producers.aborted)
        if directory == self.directory:
            self._snapshot_offset = self._next_offset

    # Closing

    @property
    def unsaved_bytes(self) -> int:
        """How much the next start would read if this log were not closed; 0 if nothing was appended."""
        active = self._segments.active
        return 0 if self.offline or active.indexed else active.size_bytes

    def close(self) -> None:
        """Save indexes and producers, so that the next start need not read the batches; then close the
        files.
        """
        if not self.offline:
            self._save_state(self._segments.active)
        self.release()

    def release(self) -> None:
        """Close the files without saving anything, as after a crash."""
        self.closed = True
        self._segments.close()
        self.producers.forget_all()

    def _closed_error(self) -> ApiError:
        if self.offline:
            return self.offline_error()
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the log is closed")

    def offline_error(self) -> ApiError:
        """The answer to requests for an offline partition."""
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {self.name} is offline")

    def _failed(self, action: str, error: OSError) -> ApiError:
        return self._files.failures.answer(action, self.directory, error)
