"""Snapshots of the producers and aborted transactions, so that a restart only reads later batches.

A Kafka snapshot has one batch of each producer; these have all five, so that a retry is recognized even after
a restart. ``<offset>.snapshot`` holds the state before the batch at that offset.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from crc32c import crc32c

from odradek.log.private_file import write_private
from odradek.log.producer_state_manager import BATCHES_KEPT, AppendedBatch, ProducerState
from odradek.log.transaction_index import TransactionIndex

SNAPSHOT_SUFFIX: Final = ".snapshot"
VERSION: Final = 2
_HEAD: Final = struct.Struct(">hI")
"""Version, CRC of the rest."""
_COUNT: Final = struct.Struct(">I")
_PRODUCER: Final = struct.Struct(">qhqiqb")
_BATCH: Final = struct.Struct(">iiqqq")

Producers = dict[int, ProducerState]


def encode_snapshot(producers: Producers, aborted: TransactionIndex | None = None) -> bytes:
    parts = [_COUNT.pack(len(producers))]
    for producer_id, state in producers.items():
        parts.append(
            _PRODUCER.pack(
                producer_id,
                state.producer_epoch,
                state.last_timestamp_ms,
                state.coordinator_epoch,
                state.current_txn_first_offset,
                len(state.batches),
            )
        )
        parts += (_BATCH.pack(*batch) for batch in state.batches)
    if aborted is not None:
        parts.append(aborted.encoded())
    body = b"".join(parts)
    return _HEAD.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> tuple[Producers, TransactionIndex] | None:
    """The content of a snapshot; None if the bytes are damaged or have another version."""
    if len(data) < _HEAD.size + _COUNT.size:
        return None
    version, crc = _HEAD.unpack_from(data)
    if version != VERSION or crc32c(memoryview(data)[_HEAD.size :]) != crc:
        return None
    producers: Producers = {}
    (count,) = _COUNT.unpack_from(data, _HEAD.size)
    position = _HEAD.size + _COUNT.size
    for _ in range(count):
        producer_id, epoch, last_timestamp_ms, coordinator_epoch, txn_offset, batches = _PRODUCER.unpack_from(
            data, position
        )
        position += _PRODUCER.size
        end = position + batches * _BATCH.size
        kept = [AppendedBatch(*batch) for batch in _BATCH.iter_unpack(data[position:end])]
        producers[producer_id] = ProducerState(
            epoch, kept[-BATCHES_KEPT:], last_timestamp_ms, coordinator_epoch, txn_offset
        )
        position = end
    return producers, TransactionIndex.decoded(data[position:])


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    """The offsets of the snapshots among the files of a folder, newest first."""
    stems = (name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX))
    return sorted((int(stem) for stem in stems if stem.isdecimal()), reverse=True)


def snapshot_path(directory: Path, offset: int) -> Path:
    return directory / f"{offset:020d}{SNAPSHOT_SUFFIX}"


def save_snapshot(
    directory: Path, offset: int, producers: Producers, aborted: TransactionIndex | None = None
) -> None:
    """Write a snapshot. Of the older ones keep the newest, in case this one turns out to be unreadable.

    Raises:
        OSError: No snapshot was written.
    """
    path = snapshot_path(directory, offset)
    draft = path.with_name(path.name + ".tmp")
    write_private(draft, encode_snapshot(producers, aborted))
    draft.rename(path)
    older = [each for each in snapshot_offsets(os.listdir(directory)) if each < offset]
    for each in older[1:]:
        snapshot_path(directory, each).unlink(missing_ok=True)


def load_snapshot(
    directory: Path, end_offset: int, offsets: Iterable[int]
) -> tuple[int, Producers, TransactionIndex]:
    """The newest readable snapshot up to ``end_offset``, and its offset. Later ones are deleted.

    Without a readable snapshot: no producers, at offset 0.

    Args:
        directory: The partition's folder.
        end_offset: The end of the log.
        offsets: Of all snapshots, newest first.
    """
    for offset in offsets:
        path = snapshot_path(directory, offset)
        found = decode_snapshot(path.read_bytes()) if offset <= end_offset else None
        if found is not None:
            return offset, *found
        path.unlink(missing_ok=True)
    return 0, {}, TransactionIndex()
