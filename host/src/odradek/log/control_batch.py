"""Control batches: the markers that end a transaction on a partition (KIP-98).

After org.apache.kafka.common.record.{ControlRecordType,EndTransactionMarker}; the value is EndTxnMarker.json,
version 0.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from odradek.wire.compression import Buffer
from odradek.wire.errors import WireError
from odradek.wire.record import Record
from odradek.wire.record_batch import RecordBatchHeader, build_batch, records

ABORT: Final = 0
COMMIT: Final = 1
_KEY: Final = struct.Struct(">hh")
"""Version, type."""
_VALUE: Final = struct.Struct(">hi")
"""Version, coordinator epoch."""


class TransactionMarker(NamedTuple):
    """The end of a producer's transaction."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int = 0


def marker_batch(marker: TransactionMarker, base_offset: int, leader_epoch: int, now_ms: int) -> bytes:
    """The control batch that stores a marker in the log."""
    kind = COMMIT if marker.committed else ABORT
    record = Record(_KEY.pack(0, kind), _VALUE.pack(0, marker.coordinator_epoch), now_ms)
    return build_batch(
        [record],
        base_offset=base_offset,
        partition_leader_epoch=leader_epoch,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        control=True,
    )


def marker_of(batch: Buffer, header: RecordBatchHeader) -> TransactionMarker | None:
    """The marker in a control batch; None if compaction has emptied it, or if it holds something else."""
    try:
        record = next(records(batch, header), None)
        if record is None or record.key is None or record.value is None:
            return None
        _, kind = _KEY.unpack_from(record.key)
        _, coordinator_epoch = _VALUE.unpack_from(record.value)
    except (WireError, struct.error):
        return None
    if kind not in (ABORT, COMMIT):
        return None
    return TransactionMarker(header.producer_id, header.producer_epoch, kind == COMMIT, coordinator_epoch)
