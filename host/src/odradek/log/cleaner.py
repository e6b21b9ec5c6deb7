"""Compaction: keep only the last record of each key.

After org.apache.kafka.storage.internals.log.Cleaner (Kafka 4.3). One round reads the keys of the dirty part
of a log into a map, then rewrites all segments up to its end. Offsets do not change. A tombstone stays until
``delete.retention.ms`` after the round that first saw it, so that every consumer can see it (KIP-534).
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import Any, Final

from odradek.log.batch_filter import delete_horizon_ms, emptied, filtered
from odradek.log.cleanable import Cleanable, groups
from odradek.log.cleaned_transactions import CleanedTransactions
from odradek.log.control_batch import marker_of
from odradek.log.offset_map import OffsetMap
from odradek.log.partition_log import PartitionLog
from odradek.log.segment import CLEANED_SUFFIX, Segment
from odradek.waiting.steps import Step, Steps
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Codec, decompress
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.record import Record, parse_records
from odradek.wire.record_batch import (
    HEADER_BYTES,
    MAX_DECOMPRESSED_BYTES,
    RecordBatchHeader,
    TimestampType,
)

log = logging.getLogger(__name__)

DEDUPE_BUFFER_BYTES: Final = 134_217_728
"""Default of ``log.cleaner.dedupe.buffer.size``."""
_RECORDS_A_STEP: Final = 100
_INLINE_BYTES: Final = 32 * 1024
"""Larger batches are decompressed and compressed on another thread."""


class Cleaner:
    """One round over one log, as `Steps`.

    Meanwhile the log may be appended to, truncated at its start, rolled, closed and deleted.
    """

    def __init__(self, todo: Cleanable, now_ms: int, buffer_bytes: int = DEDUPE_BUFFER_BYTES) -> None:
        self.log: PartitionLog = todo.log
        self.now_ms = now_ms
        self.offsets = OffsetMap(buffer_bytes)
        self.log_start_offset = todo.log.log_start_offset
        self.first_dirty_offset = todo.first_dirty_offset
        self.end_offset = todo.first_uncleanable_offset
        self.read_bytes = self.written_bytes = 0
        self.transactions = CleanedTransactions(())
        self.active_producers: dict[int, tuple[int | None, int]] = {}

    def steps(self) -> Steps:
        """Run the whole round.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR or CORRUPT_MESSAGE; the log stays consistent.
        """
        try:
            yield from self._round()
        except ApiError:
            if not self.log.closed and self.log.log_start_offset == self.log_start_offset:
                raise  # otherwise the log was closed or truncated meanwhile, which explains the error

    def _round(self) -> Steps:
        yield from self._fill_map()
        # The map may have run out of room before the end of the dirty part. Everything up to the end of the
        # map is rewritten, older segments too: they hold the records that the map has replaced.
        end_offset = self.offsets.end_offset
        segments = [segment for segment in self.log.segments if segment.base_offset < end_offset]
        if not segments:
            return
        following = self.log.segments[len(segments)].base_offset
        self.transactions = self._transactions_between(segments[0].base_offset, end_offset)
        self.active_producers = self._active_producers()
        for group in groups(segments, following, self.log.config.segment_bytes):
            if not (yield from self._clean(group)):
                return  # the checkpoint stays: the next round reads the same part again
        # Only now: after a crash before this point the next round compacts the same part again, which
        # is harmless.
        self.log.cleaned_to(end_offset, self.transactions.discarded)
        log.info(
            "compacted",
            extra={"log": self.log.name, "read": self.read_bytes, "written": self.written_bytes},
        )

    def _transactions_between(self, first_offset: int, end_offset: int) -> CleanedTransactions:
        return CleanedTransactions(self.log.aborted_transactions(first_offset, end_offset))

    def _active_producers(self) -> dict[int, tuple[int | None, int]]:
        """The last data offset, if known, and the epoch of each producer, by its id."""
        return {
            producer_id: (state.batches[-1].last_offset if state.batches else None, state.producer_epoch)
            for producer_id, state in self.log.producers.producers.items()
        }

    # The map

    def _fill_map(self) -> Steps:
        self.offsets.end_offset = self.first_dirty_offset
        transactions = self._transactions_between(self.first_dirty_offset, self.end_offset)
        for segment, following in pairwise(self.log.segments):
            if segment.base_offset >= self.end_offset:
                break
            if following.base_offset <= self.first_dirty_offset:
                continue  # already compacted
            for position, header in segment.walk(0):
                if header.last_offset < self.first_dirty_offset:
                    continue
                if not self.offsets.has_room_for(header.record_count):
                    return  # the next round continues from here
                yield from self._note(segment, position, header, transactions)
                self.offsets.end_offset = header.next_offset
                yield None
        self.offsets.end_offset = self.end_offset

    def _note(
        self, segment: Segment, position: int, header: RecordBatchHeader, transactions: CleanedTransactions
    ) -> Steps:
        batch = segment.read_batch((position, header))
        if header.is_control:
            transactions.marker_may_go(header, marker_of(batch, header))  # only to follow the transactions
            return
        if transactions.data_goes(header):
            return  # an aborted record must not replace an earlier one
        found = yield from _opened(batch, header)
        for some in _slices(found):
            for record in some:
                if record.key is not None and record.offset >= self.first_dirty_offset:
                    self.offsets.put(record.key, record.offset)
            yield None

    # Writing

    def _clean(self, group: Sequence[Segment]) -> Generator[Step, Any, bool]:
        """Write one segment from a group; False if the group has been deleted meanwhile."""
        cleaned = self._new_segment(group[0])
        done = False
        try:
            for segment in group:
                for position, header in segment.walk(0):
                    yield from self._copy(cleaned, segment.read_batch((position, header)), header)
                    yield None
            yield from cleaned.flushing()
            cleaned.keep_age(group[-1])
            # Checks that the group is still there and swaps it, in one piece of work.
            done = self.log.replace(group, cleaned)
        finally:
            if cleaned.path.name.endswith(CLEANED_SUFFIX):  # the swap did not begin
                cleaned.discard()
        return done

    def _new_segment(self, first: Segment) -> Segment:
        cleaned = self.log.detached_segment(first.base_offset, self.now_ms)
        cleaned.path = cleaned.path.with_name(cleaned.path.name + CLEANED_SUFFIX)
        cleaned.create()
        return cleaned

    def _copy(self, cleaned: Segment, batch: bytes, header: RecordBatchHeader) -> Steps:
        self.read_bytes += len(batch)
        if header.is_control:
            kept = self._kept_marker(batch, header)
        elif self.transactions.data_goes(header):
            kept = self._kept_empty(header)
        elif header.base_offset >= self.offsets.end_offset:
            kept = batch  # beyond the map: its keys are not known yet
        else:
            kept = yield from self._kept_records(batch, header)
        if kept:
            # From the bytes, as the header may have been rewritten: bytes 35 to 42 are the greatest
            # timestamp.
            max_timestamp_ms = int.from_bytes(kept[35:43], "big", signed=True)
            cleaned.append((kept,), len(kept), header.last_offset, max_timestamp_ms)
            self.written_bytes += len(kept)

    def _kept_empty(self, header: RecordBatchHeader) -> bytes:
        """A batch whose records are all gone: emptied if the log still needs it, else no bytes.

        After checkBatchRetention of Cleaner's RecordFilter.
        """
        if header.next_offset == self.offsets.end_offset:
            return emptied(header)  # keeps the last offset of the round
        last = self.active_producers.get(header.producer_id)
        if last is None:
            return b""  # the producer has expired or never was idempotent
        last_data_offset, epoch = last
        if last_data_offset is not None:
            # The batch with the last sequence: recovery rebuilds the producer's state from it.
            return emptied(header) if last_data_offset == header.last_offset else b""
        # The producer has no data left, so a marker with its epoch is what fences older instances.
        return emptied(header) if header.is_control and epoch == header.producer_epoch else b""

    def _kept_marker(self, batch: bytes, header: RecordBatchHeader) -> bytes:
        marker = marker_of(batch, header)
        if not self.transactions.marker_may_go(header, marker):
            return batch
        horizon_ms = delete_horizon_ms(header)
        if marker is None or (horizon_ms is not None and horizon_ms <= self.now_ms):
            return self._kept_empty(header)
        if horizon_ms is not None:
            return batch  # the horizon is in the future
        # The first round that finds the transaction empty: consumers that have read its records get
        # delete.retention.ms to see how it ended (KIP-534).
        found = parse_records(
            batch[HEADER_BYTES:], header.record_count, header.base_offset, header.base_timestamp_ms
        )
        return filtered(header, list(found), self.now_ms + self.log.config.delete_retention_ms)

    def _kept_records(self, batch: bytes, header: RecordBatchHeader) -> Generator[Step, Any, bytes]:
        horizon_ms = delete_horizon_ms(header)
        tombstones_go = horizon_ms is not None and horizon_ms <= self.now_ms
        kept: list[Record] = []
        has_tombstones = False
        for some in _slices((yield from _opened(batch, header))):
            for record in some:
                if self._stays(record, tombstones_go):
                    kept.append(record)
                    has_tombstones |= record.value is None
            yield None
        if has_tombstones and horizon_ms is None:
            # This round is the first to see the tombstones: their time starts now.
            horizon_ms = self.now_ms + self.log.config.delete_retention_ms
        elif len(kept) == header.record_count and kept:
            return batch  # unchanged: no need to compress again
        if not kept:
            return self._kept_empty(header)
        rebuilt = partial(filtered, header, kept, horizon_ms)
        if len(batch) <= _INLINE_BYTES and len(kept) <= 4 * _RECORDS_A_STEP:
            return rebuilt()
        data: bytes = yield rebuilt
        return data

    def _stays(self, record: Record, tombstones_go: bool) -> bool:
        if record.key is None or not self.offsets.is_latest(record.key, record.offset):
            return False  # replaced; a compacted topic refuses new records without a key, old ones go
        return record.value is not None or not tombstones_go


def _opened(batch: bytes, header: RecordBatchHeader) -> Generator[Step, Any, Iterator[Record]]:
    """The records of a batch with the timestamps that consumers see.

    Raises:
        ApiError: CORRUPT_MESSAGE: the batch cannot be decompressed.
    """
    body: bytes = batch[HEADER_BYTES:]
    try:
        if header.codec != Codec.NONE:
            opening = partial(decompress, header.codec, body, MAX_DECOMPRESSED_BYTES)
            body = opening() if len(body) <= _INLINE_BYTES else (yield opening)
    except WireError as error:
        raise _corrupt(header, error) from error
    return _parsed(body, header)


def _parsed(body: bytes, header: RecordBatchHeader) -> Iterator[Record]:
    stamped = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    try:
        for record in parse_records(body, header.record_count, header.base_offset, header.base_timestamp_ms):
            yield record._replace(timestamp_ms=header.max_timestamp_ms) if stamped else record
    except WireError as error:
        raise _corrupt(header, error) from error


def _corrupt(header: RecordBatchHeader, error: WireError) -> ApiError:
    return ApiError(ErrorCode.CORRUPT_MESSAGE, f"batch at offset {header.base_offset}: {error}")


def _slices(found: Iterable[Record]) -> Iterator[list[Record]]:
    iterator = iter(found)
    while some := list(islice(iterator, _RECORDS_A_STEP)):
        yield some
