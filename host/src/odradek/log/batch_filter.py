"""Batches from which compaction has removed records.

After org.apache.kafka.common.record.MemoryRecords.filterTo and DefaultRecordBatch.writeEmptyHeader (Kafka
4.3). A batch keeps its offsets, producer fields and leader epoch, whichever records are removed. A batch with
tombstones gets a delete horizon, which is stored in the field of the base timestamp (KIP-534).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from crc32c import crc32c

from odradek.wire.compression import Codec, compress
from odradek.wire.record import NO_TIMESTAMP, Record, append_record
from odradek.wire.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    RecordBatchHeader,
    TimestampType,
)

DELETE_HORIZON_FLAG: Final = 0x40
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_CRC_COVERED: Final = 21


def delete_horizon_ms(header: RecordBatchHeader) -> int | None:
    """The time from which the tombstones of a batch may be removed; None if it is not set yet."""
    return header.base_timestamp_ms if header.attributes & DELETE_HORIZON_FLAG else None


def filtered(header: RecordBatchHeader, kept: Sequence[Record], horizon_ms: int | None) -> bytes:
    """The batch of ``header`` with only the records in ``kept``, compressed with the same codec."""
    if not kept:
        return emptied(header)
    # The horizon takes the field of the base timestamp, so the records' deltas are relative to it.
    base_ms = kept[0].timestamp_ms if horizon_ms is None else horizon_ms
    parts: list[bytes] = []
    for record in kept:
        append_record(parts, record, record.offset - header.base_offset, record.timestamp_ms - base_ms)
    max_timestamp_ms = header.max_timestamp_ms
    if header.timestamp_type is TimestampType.CREATE_TIME:
        max_timestamp_ms = max(record.timestamp_ms for record in kept)
    body = b"".join(parts)
    changed = header._replace(
        attributes=header.attributes & ~DELETE_HORIZON_FLAG
        | (0 if horizon_ms is None else DELETE_HORIZON_FLAG),
        base_timestamp_ms=base_ms,
        max_timestamp_ms=max_timestamp_ms,
        record_count=len(kept),
    )
    return _written(changed, compress(header.codec, body) if header.codec else body)


def emptied(header: RecordBatchHeader) -> bytes:
    """The batch without records: a header that preserves the offsets and the producer's sequence."""
    attributes = header.attributes & ~CODEC_MASK & ~DELETE_HORIZON_FLAG | Codec.NONE
    return _written(
        header._replace(attributes=attributes, base_timestamp_ms=NO_TIMESTAMP, record_count=0), b""
    )


def _written(header: RecordBatchHeader, body: bytes) -> bytes:
    head = bytearray(
        _HEADER.pack(*header._replace(batch_length=HEADER_BYTES - LOG_OVERHEAD_BYTES + len(body)))
    )
    struct.pack_into(">I", head, 17, crc32c(body, crc32c(memoryview(head)[_CRC_COVERED:])))
    return bytes(head) + body
