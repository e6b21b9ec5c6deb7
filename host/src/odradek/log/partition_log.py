"""One partition: an endless sequence of batches in segments.

After org.apache.kafka.storage.internals.log.UnifiedLog (Kafka 4.3), for a partition with one replica: what is
appended is in the page cache, survives kill -9, and is at once below the high watermark.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from odradek.log.log_config import LogConfig
from odradek.log.log_loader import load_producers, load_segments
from odradek.log.log_validator import validated
from odradek.log.offset_lookup import TimestampOffset, first_at_or_after, first_with_max_timestamp
from odradek.log.open_files import OpenFiles
from odradek.log.producer_snapshot import save_snapshot
from odradek.log.producer_state_manager import AppendedBatch, ProducerStateManager
from odradek.log.segment import Segment, storage_error
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Buffer
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import NO_TIMESTAMP
from odradek.wire.record_batch import TimestampType, check_batch

log = logging.getLogger(__name__)

_INT32_MAX: Final = 0x7FFFFFFF
_BASE_OFFSET: Final = attrgetter("base_offset")

Listener = Callable[[int], None]


class AppendInfo(NamedTuple):
    """What a Produce response says about one partition."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 unless the topic has ``message.timestamp.type=LogAppendTime``."""
    log_start_offset: int
    duplicate: bool = False
    """The batch was in the log already; nothing was written."""


class PartitionLog:
    """The log of one partition, open for appending and reading.

    One thread at a time. Every method that touches a file may raise KAFKA_STORAGE_ERROR as an `ApiError`; the
    log is then what it was before.
    """

    def __init__(
        self, directory: Path, config: LogConfig, now_ms: int, files: OpenFiles | None = None
    ) -> None:
        """Open the log of ``directory``, which exists, and recover it if it was not closed.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        self.directory = directory
        self.config = config
        """May be replaced at any time; the next append follows it."""
        self.producers = ProducerStateManager()
        self.listeners: set[Listener] = set()
        """Called after each append with its bytes, and with 0 when the log is deleted."""
        self._files = OpenFiles() if files is None else files
        try:
            self._segments, self._next_offset = load_segments(directory, config, self._files, now_ms)
            load_producers(directory, self._segments, self._next_offset, self.producers)
        except OSError as error:
            raise storage_error("open", directory, error) from error
        self._active = self._segments[-1]
        self._unflushed: list[Segment] = [self._active]
        self._names_flushed = False

    @property
    def name(self) -> str:
        """``<topic>-<partition>``."""
        return self.directory.name

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._segments[0].base_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self._next_offset

    @property
    def high_watermark(self) -> int:
        """With one replica, the log end offset."""
        return self._next_offset

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Oldest first; appends go to the last."""
        return tuple(self._segments)

    # Appending

    def append(self, records: Buffer, now_ms: int, api_version: int = _INT32_MAX) -> AppendInfo:
        """Append the one batch of ``records``, as a client sent it.

        Args:
            records: One partition's field of a Produce request.
            now_ms: Log append time, and the time that timestamps are compared with.
            api_version: Of the Produce request.

        Raises:
            ApiError: Why the batch was refused; `InvalidRecords` if some of its records are to blame.
        """
        config = self.config
        header = check_batch(
            records,
            max_message_bytes=config.max_message_bytes,
            segment_bytes=config.segment_bytes,
            produce_version=api_version,
        )
        if header.producer_id >= 0:
            duplicate = self.producers.duplicate_of(header)
            if duplicate is not None:
                return self._duplicate_info(duplicate)
            self.producers.check(header)
        base_offset = self._next_offset
        batch = validated(memoryview(records)[: header.size_bytes], header, config, base_offset, now_ms)
        last_offset = base_offset + header.last_offset_delta
        if self._must_roll(batch.size_bytes, last_offset, batch.max_timestamp_ms, now_ms):
            self.roll(now_ms)
        self._active.append(batch.parts, batch.size_bytes, last_offset, batch.max_timestamp_ms)
        self._next_offset = last_offset + 1
        if header.producer_id >= 0:
            self.producers.appended(header, base_offset, batch.max_timestamp_ms)
        self._tell(batch.size_bytes)
        append_time_ms = self._append_time_ms(batch.max_timestamp_ms)
        return AppendInfo(base_offset, last_offset, append_time_ms, self._segments[0].base_offset)

    def _duplicate_info(self, batch: AppendedBatch) -> AppendInfo:
        append_time_ms = self._append_time_ms(batch.timestamp_ms)
        return AppendInfo(batch.first_offset, batch.last_offset, append_time_ms, self.log_start_offset, True)

    def _append_time_ms(self, timestamp_ms: int) -> int:
        stamps = self.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        return timestamp_ms if stamps else NO_TIMESTAMP

    def _tell(self, appended_bytes: int) -> None:
        for listener in tuple(self.listeners):
            listener(appended_bytes)

    # Rolling

    def _must_roll(self, size_bytes: int, last_offset: int, max_timestamp_ms: int, now_ms: int) -> bool:
        active, config = self._active, self.config
        if not active.size_bytes:
            return False
        if active.size_bytes > config.segment_bytes - size_bytes:
            return True
        first_ms = active.first_timestamp_ms
        if first_ms is None or first_ms < 0:
            waited_ms = now_ms - active.created_ms
        else:
            waited_ms = max_timestamp_ms - first_ms
        return (
            waited_ms > config.segment_ms
            or last_offset - active.base_offset > _INT32_MAX
            or active.index.is_full(config.segment_index_bytes)
        )

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, if the newest has any batch.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the newest segment is still the one before.
        """
        if not self._active.size_bytes:
            return
        segment = Segment(
            self.directory, self._next_offset, self.config.index_interval_bytes, now_ms, self._files
        )
        segment.create()
        sealed, self._active = self._active, segment
        self._segments.append(segment)
        self._unflushed.append(segment)
        self._names_flushed = False
        self._save_state(sealed)

    def _save_state(self, sealed: Segment) -> None:
        # Both can be rebuilt, so a full disk here does not lose anything but time.
        try:
            sealed.seal()
            save_snapshot(self.directory, self._next_offset, self.producers.producers)
        except OSError as error:
            log.warning(
                "cannot save index or snapshot",
                extra={"log": self.name, "problem": error.strerror or str(error)},
            )

    # Reading

    def read(self, offset: int, max_bytes: int, min_one_message: bool = True) -> bytes:
        """Whole batches as stored, from the one that contains ``offset`` on.

        Args:
            offset: Where to begin; the log end offset gives no bytes.
            max_bytes: At most this much.
            min_one_message: Return the first batch even if it is larger (KIP-74).

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE; CORRUPT_MESSAGE where the file is damaged.
        """
        if not self.log_start_offset <= offset <= self._next_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset}, the log has {self.log_start_offset} to {self._next_offset}",
            )
        if offset == self._next_offset or (max_bytes <= 0 and not min_one_message):
            return b""
        first = bisect_right(self._segments, offset, key=_BASE_OFFSET) - 1
        for segment in self._segments[first:] if first + 1 < len(self._segments) else (self._active,):
            data = segment.read(offset, max_bytes, min_one_message)
            if data is not None:
                return data
        return b""

    def offset_for_time(self, timestamp_ms: int) -> TimestampOffset | None:
        """The first record with a timestamp of ``timestamp_ms`` or later, None if there is none."""
        return first_at_or_after(self._segments, timestamp_ms)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record that has the greatest timestamp (KIP-734), None in an empty log."""
        return first_with_max_timestamp(self._segments)

    # Upkeep

    def flush(self) -> None:
        """Force all appends to the disk. Blocks for milliseconds.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; what was appended may be lost at a power failure.
        """
        for segment in self._unflushed:
            segment.flush()
        if not self._names_flushed:
            _flush_directory(self.directory)
            _flush_directory(self.directory.parent)
            self._names_flushed = True
        self._unflushed = [self._active]

    def close(self) -> None:
        """Save indexes and producers, so that the next start need not read the batches; close the files."""
        self._save_state(self._active)
        self.release()

    def release(self) -> None:
        """Close the files and save nothing, as after a crash."""
        for segment in self._segments:
            segment.close()

    def deleted(self) -> None:
        """The files are gone: let those who wait for appends know."""
        self.release()
        self._tell(0)


def _flush_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise storage_error("flush", directory, error) from error
    finally:
        os.close(descriptor)
