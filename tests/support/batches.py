"""Batches for tests of the log."""

from __future__ import annotations

import struct

from crc32c import crc32c

from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.wire.compression import Codec
from odradek.wire.record import Record
from odradek.wire.record_batch import HEADER_BYTES, build_batch, parse_header, record_batches, records

NOW_MS = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=2_000, index_interval_bytes=300)
"""Of a log with many segments."""


def batch_of(
    *values: bytes,
    timestamp_ms: int = NOW_MS,
    codec: Codec = Codec.NONE,
    key: bytes | None = b"k",
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
) -> bytes:
    """A batch of the values. ``producer``: its id, its epoch, the sequence of the first value."""
    producer_id, producer_epoch, base_sequence = producer
    return build_batch(
        [Record(key, value, timestamp_ms) for value in values],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )


def altered(batch: bytes, body: bytes | None = None, **fields: int) -> bytes:
    """The batch with other header fields or another body, and a correct CRC."""
    body = batch[HEADER_BYTES:] if body is None else body
    header = parse_header(batch)._replace(batch_length=HEADER_BYTES - 12 + len(body), **fields)
    data = bytearray(struct.pack(">qiibIhiqqqhii", *header) + body)
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def values_from(log: PartitionLog, offset: int = 0) -> list[tuple[int, bytes | None]]:
    """Offset and value of every readable record from ``offset`` on."""
    found: list[tuple[int, bytes | None]] = []
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20)
        for header, batch in record_batches(data):
            found += ((record.offset, record.value) for record in records(batch, header))
            offset = header.next_offset
    return found


def fill(log: PartitionLog, count: int) -> None:
    """Append records a millisecond apart, each in its own batch."""
    for number in range(count):
        log.append(batch_of(b"%d" % number, timestamp_ms=NOW_MS + number), NOW_MS + number)
