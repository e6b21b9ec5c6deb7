"""Record batches of magic 2 (KIP-98): the header, reading, building and stamping.

After org.apache.kafka.common.record.DefaultRecordBatch (Kafka 4.3). The CRC covers byte 21 to the end. The
offset and the leader epoch precede it and can be rewritten without touching the records; this is why an
append takes only a few microseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from crc32c import crc32c

from odradek.wire.compression import Buffer, Codec, compress, decompress
from odradek.wire.errors import Truncated
from odradek.wire.limits import INT32_MAX
from odradek.wire.record import NO_TIMESTAMP, Record, append_record, parse_records

HEADER_BYTES: Final = 61
LOG_OVERHEAD_BYTES: Final = 12
"""Base offset and length, the fields that the length does not count."""
MAGIC: Final = 2
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
MAX_DECOMPRESSED_BYTES: Final = 64 << 20

CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20

_CRC_COVERED: Final = 21
_PREFIX: Final = struct.Struct(">qii")
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_COVERED: Final = struct.Struct(">hiqqqhii")
_CRC: Final = struct.Struct(">I")


class TimestampType(IntEnum):
    """Bit 3 of the attributes."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


_TIMESTAMP_TYPES: Final = tuple(TimestampType)
"""Indexed by the flag: a lookup by value would take a quarter of the time of validating a batch."""


class RecordBatchHeader(NamedTuple):
    """The 61 bytes before the records, field by field."""

    base_offset: int
    batch_length: int
    """The number of bytes after this field; see ``size_bytes``."""
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The size of the whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, which wraps from 2^31-1 to 0. -1 without a base sequence."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return self.base_sequence + self.last_offset_delta & INT32_MAX

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return _TIMESTAMP_TYPES[self.attributes >> 3 & 1]

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_FLAG)


def parse_header(data: Buffer, position: int = 0) -> RecordBatchHeader:
    """The header at ``position``, unchecked.

    Raises:
        Truncated: Fewer than 61 bytes are left.
    """
    try:
        return tuple.__new__(RecordBatchHeader, _HEADER.unpack_from(data, position))
    except struct.error:
        raise Truncated(f"need {HEADER_BYTES} bytes at {position}, have {len(data) - position}") from None


def is_intact(batch: Buffer, header: RecordBatchHeader) -> bool:
    """Whether ``batch``, exactly ``header.size_bytes`` long, has the CRC it claims."""
    covered = batch[_CRC_COVERED:] if batch.__class__ is memoryview else memoryview(batch)[_CRC_COVERED:]
    return crc32c(covered) == header.crc


# Stamping


def stamped(header: RecordBatchHeader, base_offset: int, partition_leader_epoch: int) -> bytes:
    """The first 16 bytes with a new offset and epoch, to precede ``batch[16:]``. The CRC stays valid."""
    return _PREFIX.pack(base_offset, header.batch_length, partition_leader_epoch)


def restamped(
    batch: Buffer,
    header: RecordBatchHeader,
    base_offset: int,
    partition_leader_epoch: int,
    timestamp_type: TimestampType,
    max_timestamp_ms: int,
) -> bytes:
    """The header with new timestamp fields and CRC, to precede ``batch[61:]``."""
    attributes = header.attributes & ~TIMESTAMP_TYPE_FLAG | timestamp_type << 3
    covered = _COVERED.pack(
        attributes,
        header.last_offset_delta,
        header.base_timestamp_ms,
        max_timestamp_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    crc = crc32c(memoryview(batch)[HEADER_BYTES:], crc32c(covered))
    prefix = _PREFIX.pack(base_offset, header.batch_length, partition_leader_epoch)
    return b"".join((prefix, b"\x02", _CRC.pack(crc), covered))


# Reading


def record_batches(data: Buffer) -> Iterator[tuple[RecordBatchHeader, memoryview]]:
    """The complete batches in ``data``, as Fetch returns them. A partial batch at the end is left out.

    Raises:
        WireError: A batch does not have magic 2, or is shorter than its header.
    """
    view, position = memoryview(data), 0
    while len(view) - position >= HEADER_BYTES:
        header = parse_header(view, position)
        if header.magic != MAGIC or header.batch_length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
            raise Truncated(f"no record batch at {position}")
        end = position + header.size_bytes
        if end > len(view):
            return  # Fetch cuts at a size, so the last batch may be partial
        yield header, view[position:end]
        position = end


def records(
    batch: Buffer, header: RecordBatchHeader | None = None, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> Iterator[Record]:
    """The records of one batch, with the offsets and timestamps that a consumer sees.

    The CRC is not checked; see ``is_intact``.

    Raises:
        WireError: While iterating. ``TooLarge`` past ``max_bytes`` of decompressed records.
    """
    header = header or parse_header(batch)
    body = decompress(
        header.attributes & CODEC_MASK, memoryview(batch)[HEADER_BYTES : header.size_bytes], max_bytes
    )
    found = parse_records(body, header.record_count, header.base_offset, header.base_timestamp_ms)
    if header.attributes & TIMESTAMP_TYPE_FLAG:
        # The broker stamps only the header; the records keep the producer's timestamps.
        return (record._replace(timestamp_ms=header.max_timestamp_ms) for record in found)
    return found


# Building


class EncodedRecords(NamedTuple):
    """Records whose deltas start from offset 0 and the base timestamp."""

    body: bytes
    number: int
    base_timestamp_ms: int
    max_timestamp_ms: int


def build_batch(
    records: Iterable[Record] | EncodedRecords,
    *,
    codec: int = Codec.NONE,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    log_append_time_ms: int | None = None,
    transactional: bool = False,
    control: bool = False,
    fast: bool = False,
) -> bytes:
    """Build one batch of the records in order, with consecutive offsets from ``base_offset`` on.

    Args:
        records: At least one. Their ``offset`` is ignored.
        codec: A ``Codec``.
        base_offset: 0 in a Produce request.
        partition_leader_epoch: -1 in a Produce request.
        producer_id: The id of an idempotent producer; -1 without one.
        producer_epoch: Its epoch.
        base_sequence: The sequence of the first record.
        log_append_time_ms: If given, the timestamp of all records, as stamped by a broker.
        transactional: Whether the batch belongs to a transaction.
        control: Whether the batch holds a transaction marker.
        fast: As in `compress`.

    Raises:
        ValueError: There is no record.
    """
    encoded = records if isinstance(records, EncodedRecords) else _encoded(records)
    body, count, base_timestamp_ms, max_timestamp_ms = encoded
    attributes = codec | transactional << 4 | control << 5
    if log_append_time_ms is not None:
        attributes |= TIMESTAMP_TYPE_FLAG
        max_timestamp_ms = log_append_time_ms
    covered = _COVERED.pack(
        attributes,
        count - 1,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    body = compress(codec, body, fast) if codec else body
    crc = crc32c(body, crc32c(covered))
    length = HEADER_BYTES - LOG_OVERHEAD_BYTES + len(body)
    prefix = _PREFIX.pack(base_offset, length, partition_leader_epoch)
    return b"".join((prefix, b"\x02", _CRC.pack(crc), covered, body))


def _encoded(records: Iterable[Record]) -> EncodedRecords:
    """The encoded records, their number, and the first and the greatest timestamp."""
    parts: list[bytes] = []
    count, base_timestamp_ms, max_timestamp_ms = 0, NO_TIMESTAMP, NO_TIMESTAMP
    for record in records:
        if not count:
            base_timestamp_ms = max_timestamp_ms = record.timestamp_ms
        elif record.timestamp_ms > max_timestamp_ms:
            max_timestamp_ms = record.timestamp_ms
        append_record(parts, record, count, record.timestamp_ms - base_timestamp_ms)
        count += 1
    if not count:
        raise ValueError("a batch needs a record")
    return EncodedRecords(b"".join(parts), count, base_timestamp_ms, max_timestamp_ms)
