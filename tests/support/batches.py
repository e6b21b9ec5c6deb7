"""Batches for tests of the log."""

from __future__ import annotations

from odradek.log.partition_log import PartitionLog
from odradek.wire.compression import Codec
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch, record_batches, records

NOW_MS = 1_700_000_000_000


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


def values_from(log: PartitionLog, offset: int = 0) -> list[tuple[int, bytes | None]]:
    """Offset and value of every readable record from ``offset`` on."""
    found: list[tuple[int, bytes | None]] = []
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20)
        for header, batch in record_batches(data):
            found += ((record.offset, record.value) for record in records(batch, header))
            offset = header.next_offset
    return found
