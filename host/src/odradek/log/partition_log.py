"""The log of one partition: a sequence of batches in segments.

After org.apache.kafka.storage.internals.log.UnifiedLog (Kafka 4.3), for a partition with one replica. An
appended batch is in the page cache, survives kill -9, and is below the high watermark at once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from odradek.log.batch_work import BatchWork
from odradek.log.control_batch import TransactionMarker, marker_batch
from odradek.log.extent import Extent
from odradek.log.flush_state import FlushState, FlushWaiter
from odradek.log.log_config import LogConfig
from odradek.log.log_validator import (
    LEADER_EPOCH,
    LOG_APPEND_TIME,
    OpeningBudget,
    PreparedBatch,
    RecordCheck,
    TooMuchWork,
    prepared,
    trusted,
)
from odradek.log.offset_lookup import TimeLookup, first_at_or_after, first_with_max_timestamp
from odradek.log.producer_ids import ProducerIds
from odradek.log.producer_state_manager import AppendedBatch
from odradek.log.segment import Segment
from odradek.log.segment_file import OpenFiles
from odradek.log.stored_log import StoredLog
from odradek.waiting.steps import Steps, run_steps
from odradek.wire.api_error import ApiError
from odradek.wire.batch_check import check_batch
from odradek.wire.compression import Buffer
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX
from odradek.wire.record import NO_TIMESTAMP
from odradek.wire.record_batch import RecordBatchHeader

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


class PartitionLog(StoredLog):
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
        flush_wanted: FlushWanted | None = None,
        *,
        offline: bool = False,
    ) -> None:
        """Open the log in ``directory``; see `StoredLog`.

        ``flush_wanted`` is called with the log and a time when ``flush.messages`` or ``flush.ms`` require a
        flush by that time.
        """
        super().__init__(directory, config, now_ms, files, producer_ids, offline=offline)
        self.listeners: set[Listener] = set()
        """Called after each append with its size in bytes, and with 0 when the log is deleted."""
        self._flush_wanted = flush_wanted
        self._flush = FlushState(self._next_offset)

    @property
    def recovery_point(self) -> int:
        """Everything before this offset has been flushed, or existed when the log was opened."""
        return self._flush.recovery_point

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
        config = self.config
        header = self._checked(records, api_version, transactions=True)
        batch = memoryview(records)[: header.size_bytes]
        try:
            return prepared(batch, header, config, now_ms, budget, check)
        except TooMuchWork:
            return BatchWork(bytes(batch), config, now_ms, check, budget.batch_bytes)

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
        is_idempotent = header.producer_id >= 0
        if is_idempotent:
            duplicate = self.producers.duplicate_of(header)
            if duplicate is not None:
                # A retry of a batch whose response was lost: repeat the response.
                return self._duplicate_info(duplicate)
            self._admit(header, join_transaction)
        base_offset = self._next_offset
        last_offset = base_offset + header.last_offset_delta
        size_bytes, timestamp_ms = header.size_bytes, prepared_batch.max_timestamp_ms
        segment = self._segments.active
        if segment.must_roll(config, size_bytes, last_offset, timestamp_ms, now_ms):
            self.roll(now_ms)
            segment = self._segments.active
        segment.append(prepared_batch.at(base_offset), size_bytes, last_offset, timestamp_ms)
        # The batch is in the file: only now do the offsets and the producer change.
        self._next_offset = last_offset + 1
        if is_idempotent:
            self.producers.appended(header, base_offset, timestamp_ms)
        if self.listeners:
            self._tell(size_bytes)
        if config.flushes:
            self._ask_for_flush()
        return AppendInfo(
            base_offset, last_offset, self._append_time_ms(timestamp_ms), self._log_start_offset
        )

    def _admit(self, header: RecordBatchHeader, join_transaction: Join | None) -> None:
        self.producers.check(header)
        if join_transaction is None or not header.is_transactional:
            return
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
        if self._segments.active.must_roll(self.config, len(batch), offset, now_ms, now_ms):
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
        stamps = self.config.message_timestamp_type is LOG_APPEND_TIME
        return timestamp_ms if stamps else NO_TIMESTAMP

    def _tell(self, appended_bytes: int) -> None:
        for listener in tuple(self.listeners):
            listener(appended_bytes)

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

    def data_batch(self, offset: int, most: int = 1_000) -> RecordBatchHeader | None:
        """The head of the first batch with records of producers at or after an offset; None if only markers
        are left. After ``most`` batches of markers, the head of the last of them.

        Raises:
            ApiError: CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR.
        """
        for segment in self._segments.from_offset(offset):
            for _, header in segment.walk(segment.index.position_before(offset)):
                if header.last_offset < offset:
                    continue
                most -= 1
                if not most or (header.record_count and not header.is_control):
                    return header
        return None

    def prepare_leaving(self) -> None:
        """The folder is about to be renamed: keep the files open that are being sent."""
        for segment in self._segments.all:
            segment.prepare_leaving()

    def offset_for_time(self, timestamp_ms: int) -> TimeLookup:
        """The first record with a timestamp of ``timestamp_ms`` or later; None if there is none.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR, also if the log was closed between two steps.
        """
        return self._lookup(
            lambda: first_at_or_after(self._segments.all, timestamp_ms, self._log_start_offset)
        )

    def max_timestamp_offset(self) -> TimeLookup:
        """The first record with the greatest timestamp (KIP-734); None if the log is empty.

        Raises:
            ApiError: As in `offset_for_time`.
        """
        return self._lookup(lambda: first_with_max_timestamp(self._segments.all))

    def _lookup(self, begin: Callable[[], TimeLookup]) -> TimeLookup:
        """Look up a record, again if segments or records were deleted meanwhile."""
        while True:
            segments = self._segments.all
            try:
                found = yield from begin()
            except ApiError:
                if self.closed or self._segments.all is segments:
                    raise
            else:
                if found is None or found.offset >= self._log_start_offset or self._segments.all is segments:
                    return found

    # Flushing

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
        if self._flush_wanted is not None and self._flush.hastens(wait_ms):
            self._flush_wanted(self, wait_ms)

    # Moving and closing

    def move_to(self, directory: Path, segments: list[Segment]) -> None:
        """Continue in another folder with copies of all segments. References to this log stay valid."""
        super().move_to(directory, segments)
        self._flush.recovery_point = min(self.recovery_point, segments[0].base_offset)

    def release(self) -> None:
        """Close the files without saving anything, as after a crash."""
        super().release()
        self._flush.tell(self._next_offset, self._closed_error())

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
