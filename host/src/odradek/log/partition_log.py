"""The log of one partition: a sequence of batches in segments.

After org.apache.kafka.storage.internals.log.UnifiedLog (Kafka 4.3), for a partition with one replica. An
appended batch is in the page cache, survives kill -9, and is below the high watermark at once.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from odradek.log.batch_work import BatchWork
from odradek.log.control_batch import TransactionMarker, marker_batch
from odradek.log.extent import Extent
from odradek.log.flush_state import FlushState, FlushWaiter
from odradek.log.log_config import LogConfig
from odradek.log.log_loader import load_producers, load_segments, load_start_offset
from odradek.log.log_segments import Grave, LogSegments
from odradek.log.log_validator import (
    LEADER_EPOCH,
    OpeningBudget,
    PreparedBatch,
    RecordCheck,
    TooMuchWork,
    prepared,
    trusted,
)
from odradek.log.offset_checkpoint import CLEANER_OFFSET, LOG_START_OFFSET, read_offset, write_offset
from odradek.log.offset_lookup import TimestampOffset, first_at_or_after, first_with_max_timestamp
from odradek.log.open_files import OpenFiles
from odradek.log.producer_ids import ProducerIds
from odradek.log.producer_snapshot import save_snapshot
from odradek.log.producer_state_manager import AppendedBatch, ProducerStateManager
from odradek.log.retention import breached_by_start, expired
from odradek.log.segment import Segment
from odradek.log.transaction_index import AbortedTransaction
from odradek.steps import Steps, run_steps
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Buffer
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX
from odradek.wire.record import NO_TIMESTAMP
from odradek.wire.record_batch import RecordBatchHeader, TimestampType, check_batch

log = logging.getLogger(__name__)

HIGH_WATERMARK: Final = -1
"""Stands for the high watermark in DeleteRecords."""

Listener = Callable[[int], None]
FlushWanted = Callable[["PartitionLog", int], None]
Join = Callable[[RecordBatchHeader], None]
"""Called with the first batch of a transaction. Raises `ApiError` if the producer has no such transaction."""


class AppendInfo(NamedTuple):
    """The result of an append, for the Produce response."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 unless the topic has ``message.timestamp.type=LogAppendTime``."""
    log_start_offset: int
    duplicate: bool = False
    """The batch was already in the log; nothing was written."""


class PartitionLog:
    """The log of one partition, open for appending and reading.

    Not thread-safe. Every method that touches a file may raise an `ApiError` with KAFKA_STORAGE_ERROR; the
    log is then unchanged.
    """

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
        self.listeners: set[Listener] = set()
        """Called after each append with its size in bytes, and with 0 when the log is deleted."""
        self.flush_wanted: FlushWanted | None = None
        """Called with the log and a time when ``flush.messages`` or ``flush.ms`` require a flush by that
        time.
        """
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
        self._flush = FlushState(self._next_offset)

    def _loaded(self, now_ms: int) -> list[Segment]:
        directory = self.directory
        try:
            names = set(os.listdir(directory))
            if CLEANER_OFFSET in names:
                self.first_dirty_offset = read_offset(directory, CLEANER_OFFSET) or 0
            segments, next_offset = load_segments(directory, names, self.config, self._files, now_ms)
            segments, self._log_start_offset, self._next_offset = load_start_offset(
                directory, segments, next_offset, lambda offset: self._new_segment(offset, now_ms)
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
    def recovery_point(self) -> int:
        """Everything before this offset has been flushed, or existed when the log was opened."""
        return self._flush.recovery_point

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

    # Appending

    def append(
        self,
        records: Buffer,
        now_ms: int,
        api_version: int = INT32_MAX,
        join_transaction: Join | None = None,
        trusted_records: bool = False,
    ) -> AppendInfo:
        """Prepare and append the single batch in ``records``, however long it takes.

        Args:
            records: The batch.
            now_ms: Log append time, and the reference for bounds on timestamps.
            api_version: The version of the Produce request.
            join_transaction: As in `append_prepared`. None refuses all transactional batches.
            trusted_records: The host has built the batch, so its records need no check.

        Raises:
            ApiError: The batch was refused; `InvalidRecords` if single records are invalid.
        """
        header = self._checked(records, api_version, join_transaction is not None)
        view = memoryview(records)[: header.size_bytes]
        if trusted_records:
            batch = trusted(view, header, self.config, now_ms)
        else:
            batch = prepared(view, header, self.config, now_ms, OpeningBudget.unlimited())
        return self.append_prepared(batch, now_ms, join_transaction)

    def prepare(
        self,
        records: Buffer,
        now_ms: int,
        api_version: int,
        budget: OpeningBudget,
        check: RecordCheck | None = None,
    ) -> PreparedBatch | BatchWork:
        """Validate the single batch in ``records``, as sent by a client. The log does not change.

        Args:
            records: One partition's field of a Produce request.
            now_ms: As in `append`.
            api_version: As in `append`.
            budget: How much may be done here.
            check: The topic's own rule about records.

        Returns:
            What `append_prepared` takes, or the work that makes it, if it exceeds the budget.

        Raises:
            ApiError: As in `append`.
        """
        header = self._checked(records, api_version, transactions=True)
        view = memoryview(records)[: header.size_bytes]
        try:
            return prepared(view, header, self.config, now_ms, budget, check)
        except TooMuchWork:
            return BatchWork(bytes(view), self.config, now_ms, check, budget.batch_bytes)

    def _checked(self, records: Buffer, api_version: int, transactions: bool) -> RecordBatchHeader:
        return check_batch(
            records,
            max_message_bytes=self.config.max_message_bytes,
            segment_bytes=self.config.segment_bytes,
            produce_version=api_version,
            transactions=transactions,
        )

    def append_prepared(
        self, prepared_batch: PreparedBatch, now_ms: int, join_transaction: Join | None = None
    ) -> AppendInfo:
        """Append a batch that was prepared for this log.

        Args:
            prepared_batch: The batch.
            now_ms: The time of the append.
            join_transaction: Called before the first batch of a transaction; raises to refuse the batch.

        Raises:
            ApiError: The producer may not append this batch, or KAFKA_STORAGE_ERROR.
        """
        config, header = self.config, prepared_batch.header
        if self.offline:
            raise self.offline_error()
        if header.producer_id >= 0:
            duplicate = self.producers.duplicate_of(header)
            if duplicate is not None:
                # A retry of a batch whose response was lost: repeat the response.
                return self._duplicate_info(duplicate)
            self.producers.check(header)
            if join_transaction is not None and header.is_transactional:
                self._join(header, join_transaction)
        base_offset = self._next_offset
        batch = prepared_batch.at(base_offset)
        last_offset = base_offset + header.last_offset_delta
        if self._segments.must_roll(config, batch.size_bytes, last_offset, batch.max_timestamp_ms, now_ms):
            self.roll(now_ms)
        self._segments.active.append(batch.parts, batch.size_bytes, last_offset, batch.max_timestamp_ms)
        # The batch is in the file: only now do the offsets and the producer change.
        self._next_offset = last_offset + 1
        if header.producer_id >= 0:
            self.producers.appended(header, base_offset, batch.max_timestamp_ms)
        self._tell(batch.size_bytes)
        if config.flushes:
            self._ask_for_flush()
        append_time_ms = self._append_time_ms(batch.max_timestamp_ms)
        return AppendInfo(base_offset, last_offset, append_time_ms, self._log_start_offset)

    def _join(self, header: RecordBatchHeader, join_transaction: Join) -> None:
        if not self.producers.has_open_transaction(header.producer_id, header.producer_epoch):
            join_transaction(header)

    def append_marker(self, marker: TransactionMarker, now_ms: int) -> int:
        """Append the marker that ends a producer's transaction on this partition; return its offset.

        Raises:
            ApiError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
        """
        if self.offline:
            raise self.offline_error()
        self.producers.check_marker(marker)
        offset = self._next_offset
        batch = marker_batch(marker, offset, LEADER_EPOCH, now_ms)
        if self._segments.must_roll(self.config, len(batch), offset, now_ms, now_ms):
            self.roll(now_ms)
        self._segments.active.append((batch,), len(batch), offset, now_ms)
        self._next_offset = offset + 1
        self.producers.ended(marker, offset, now_ms)
        self._tell(len(batch))
        if self.config.flushes:
            self._ask_for_flush()
        return offset

    def _duplicate_info(self, batch: AppendedBatch) -> AppendInfo:
        append_time_ms = self._append_time_ms(batch.timestamp_ms)
        return AppendInfo(batch.first_offset, batch.last_offset, append_time_ms, self.log_start_offset, True)

    def _append_time_ms(self, timestamp_ms: int) -> int:
        stamps = self.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        return timestamp_ms if stamps else NO_TIMESTAMP

    def _failed(self, action: str, error: OSError) -> ApiError:
        return self._files.failures.answer(action, self.directory, error)

    def _tell(self, appended_bytes: int) -> None:
        for listener in tuple(self.listeners):
            listener(appended_bytes)

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

    # Reading

    def read(self, offset: int, max_bytes: int, min_one_message: bool = True) -> bytes:
        """Complete batches as stored; the arguments are those of `find`.

        Raises:
            ApiError: As in `find`.
        """
        found = self.find(offset, max_bytes, min_one_message)
        return b"" if found is None else found.read()

    def find(self, offset: int, max_bytes: int, min_one_message: bool = True) -> Extent | None:
        """Complete batches as stored, from the one that contains ``offset`` on; None if there are none.

        Args:
            offset: The first offset to read; the log end offset gives no batches.
            max_bytes: The most bytes to find.
            min_one_message: Find the first batch even if it is larger (KIP-74).

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE; CORRUPT_MESSAGE if the file is damaged.
        """
        if not self.log_start_offset <= offset <= self._next_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not within {self.log_start_offset} to {self._next_offset}",
            )
        if offset == self._next_offset or (max_bytes <= 0 and not min_one_message):
            return None
        return self._segments.find(offset, max_bytes, min_one_message)

    def prepare_leaving(self) -> None:
        """The folder is about to be renamed: keep the files open that are being sent."""
        for segment in self._segments.all:
            segment.prepare_leaving()

    def offset_for_time(self, timestamp_ms: int) -> TimestampOffset | None:
        """The first record with a timestamp of ``timestamp_ms`` or later; None if there is none."""
        return first_at_or_after(self._segments.all, timestamp_ms, self._log_start_offset)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the greatest timestamp (KIP-734); None if the log is empty."""
        return first_with_max_timestamp(self._segments.all)

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
        self._flush.recovery_point = min(self.recovery_point, segments[0].base_offset)

    def save_producers(self, directory: Path) -> None:
        """Write a snapshot of the producers into ``directory``.

        Raises:
            OSError: No snapshot was written.
        """
        save_snapshot(directory, self._next_offset, self.producers.producers, self.producers.aborted)
        if directory == self.directory:
            self._snapshot_offset = self._next_offset

    # Upkeep

    def flush(self) -> None:
        """Flush all appends to disk. Blocks for milliseconds.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; a power failure may lose the appends.
        """
        run_steps(self.flushing())

    def flushing(self) -> Steps:
        """The same as `Steps`, which hand out the blocking calls.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        yield from self._flush.steps(self._segments, lambda: self._next_offset)

    def when_flushed(self, callback: FlushWaiter) -> None:
        """Call back once the log up to its current end has been flushed, or with the error that prevented
        it.
        """
        if self.closed:
            callback(self._closed_error())
            return
        if self.recovery_point == self._next_offset:
            callback(None)
            return
        self._flush.wait(self._next_offset, callback)
        self._ask_for_flush()

    @property
    def must_flush(self) -> bool:
        """Whether ``flush.messages`` requires a flush before the next response."""
        return self._next_offset - self.recovery_point >= self.config.flush_messages

    def _ask_for_flush(self) -> None:
        wait_ms = 0 if self.must_flush else self.config.flush_ms
        if self.flush_wanted is not None and self._flush.hastens(wait_ms):
            self.flush_wanted(self, wait_ms)

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
        self._flush.tell(self._next_offset, self._closed_error())

    def _closed_error(self) -> ApiError:
        if self.offline:
            return self.offline_error()
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the log is closed")

    def deleted(self) -> None:
        """Notify the listeners that the log was deleted; its files are gone."""
        self.release()
        self._tell(0)

    def go_offline(self) -> None:
        """Refuse everything from now on, because the disk has failed. The offsets stay known."""
        self.offline = True
        self._segments.graves.clear()  # the next start deletes these files
        self.release()
        self._tell(0)

    def offline_error(self) -> ApiError:
        """The answer to requests for an offline partition."""
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {self.name} is offline")
