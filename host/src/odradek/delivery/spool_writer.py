"""Group commit: records that arrive within ``telemetry.linger.ms`` are one batch of their partition.

Sans-io: the log, the threads and the clock are passed in. Everything runs on one thread, the host's.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from odradek.delivery.delivery_ledger import count
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.waiting.deferred import Deferred, Offload
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import encoded_varint
from odradek.wire.record_batch import EncodedRecords, build_batch

log = logging.getLogger(__name__)

BATCH_BYTES: Final = 256 << 10
"""A batch of this size is written at once: compressing it holds up the loop for half a millisecond. A larger
record is a batch of its own, compressed elsewhere."""
ZERO: Final = b"\x00"

Append = Callable[[int, bytes], None]
"""Append a batch to a partition.

Raises:
    ApiError: It cannot be written now.
"""
WhenFlushed = Callable[[int, Callable[[ApiError | None], None]], None]
"""Call back once everything in a partition is on the disk, or with the error that prevented it."""


class NoRoomError(ApiError):
    """The log has reached its largest size.

    Args:
        key: The bound.
    """

    def __init__(self, key: str) -> None:
        super().__init__(ErrorCode.THROTTLING_QUOTA_EXCEEDED, f"{key} is reached")
        self.key = key


class Entry(NamedTuple):
    """A waiting record."""

    timestamp_ms: int
    parts: Sequence[bytes]
    """Key, value and headers: the record after its offset delta."""
    size_bytes: int
    kept: Deferred[bool]


@dataclass(slots=True, eq=False)
class PartitionBuffer:
    """The records that wait for one partition."""

    entries: deque[Entry] = field(default_factory=deque)
    size_bytes: int = 0
    is_elsewhere: bool = False
    """A batch is being compressed; the next one waits, to keep the order."""


@dataclass(slots=True, eq=False)
class SpoolWriter:
    """Gathers records, writes batches and completes the records' deferreds."""

    clock: Clock
    timer: Timer
    write: Append
    offload: Offload
    linger_ms: int
    max_bytes: int
    """Bound of the bytes of all records that wait."""
    when_flushed: WhenFlushed | None = None
    """If given, a record counts as kept when it is on the disk, not when it is written."""
    codec: Codec = Codec.ZSTD
    held_bytes: int = 0
    """Bytes of the records that are not settled."""
    refused: dict[str, int] = field(default_factory=dict)
    """Records that were not kept, by reason."""
    is_refusing: bool = False
    """The last batch could not be kept."""
    buffers: dict[int, PartitionBuffer] = field(default_factory=dict)
    commit_task: TimerTask | None = None
    hurried: bool = False

    def append(self, partition: int, timestamp_ms: int, parts: Sequence[bytes]) -> bool | Deferred[bool]:
        """Take a record.

        Returns:
            Whether it is kept, which `settle` says when its batch is written; False at once without room.
        """
        size_bytes = sum(map(len, parts))
        if self.held_bytes + size_bytes > self.max_bytes:
            count(self.refused, "telemetry.buffer.max.bytes", 1)
            return False
        buffer = self.buffers.get(partition)
        if buffer is None:
            buffer = self.buffers[partition] = PartitionBuffer()
        kept: Deferred[bool] = Deferred()
        # A third of the cost of calling `Entry`.
        buffer.entries.append(tuple.__new__(Entry, (timestamp_ms, parts, size_bytes, kept)))
        buffer.size_bytes += size_bytes
        self.held_bytes += size_bytes
        if self.commit_task is None:
            self.commit_task = self.timer.schedule(self.clock.monotonic_ms() + self.linger_ms, self.commit)
        elif buffer.size_bytes >= BATCH_BYTES and not self.hurried:
            self.hurried = True
            self.commit_task.cancel()
            self.commit_task = self.timer.schedule(self.clock.monotonic_ms(), self.commit)
        return kept

    def commit(self) -> None:
        """Write the gathered records, batch by batch."""
        self.commit_task, self.hurried = None, False
        for partition, buffer in list(self.buffers.items()):  # completing an answer may bring the next push
            self.commit_partition(partition, buffer)

    def commit_partition(self, partition: int, buffer: PartitionBuffer) -> None:
        while buffer.entries and not buffer.is_elsewhere:
            batch = self.next_batch(buffer)
            build = partial(built, batch, self.codec)
            if len(batch) > 1 or batch[0].size_bytes <= BATCH_BYTES:
                self.finish(partition, batch, build())
            else:
                buffer.is_elsewhere = True
                self.offload(build, partial(self.built_elsewhere, partition, buffer, batch))

    def next_batch(self, buffer: PartitionBuffer) -> list[Entry]:
        """The next records, up to `BATCH_BYTES` or a single larger one."""
        batch = [buffer.entries.popleft()]
        size_bytes = batch[0].size_bytes
        while buffer.entries and size_bytes + buffer.entries[0].size_bytes <= BATCH_BYTES:
            batch.append(buffer.entries.popleft())
            size_bytes += batch[-1].size_bytes
        buffer.size_bytes -= size_bytes
        return batch

    def built_elsewhere(
        self, partition: int, buffer: PartitionBuffer, batch: list[Entry], outcome: bytes | Exception
    ) -> None:
        """Write a large batch that was compressed elsewhere, then the records that came meanwhile."""
        buffer.is_elsewhere = False
        self.finish(partition, batch, outcome)
        self.commit_partition(partition, buffer)

    def finish(self, partition: int, batch: list[Entry], outcome: bytes | Exception) -> None:
        """Write a batch, then settle it, at once or when it is on the disk."""
        if isinstance(outcome, Exception):
            self.settle(batch, outcome)
            return
        try:
            self.write(partition, outcome)
        except ApiError as error:
            self.settle(batch, error.kept())
            return
        if self.when_flushed is None:
            self.settle(batch, None)
        else:
            self.when_flushed(partition, partial(self.settle, batch))

    def settle(self, batch: list[Entry], error: Exception | None) -> None:
        """Complete the deferreds of a batch."""
        self.held_bytes -= sum(entry.size_bytes for entry in batch)
        if error is not None:
            count(self.refused, reason_of(error), len(batch))
        self.report(error)
        for entry in batch:
            entry.kept.complete(error is None)

    def report(self, error: Exception | None) -> None:
        """Log when refusing begins and when it ends, not per push."""
        if error is not None and not self.is_refusing:
            log.error("pushes cannot be kept, refusing them", extra={"problem": str(error)})
        elif error is None and self.is_refusing:
            log.warning("pushes are kept again", extra={"refused": dict(self.refused)})
        self.is_refusing = error is not None


def reason_of(error: Exception) -> str:
    """The reason of a refusal, as a label of a metric."""
    if isinstance(error, NoRoomError):
        return error.key
    return error.code.name if isinstance(error, ApiError) else type(error).__name__


def built(entries: Sequence[Entry], codec: Codec) -> bytes:
    """Some records as one compressed batch."""
    base_ms = max_ms = entries[0].timestamp_ms
    pieces: list[bytes] = []
    for index, (timestamp_ms, parts, size_bytes, _) in enumerate(entries):
        if timestamp_ms > max_ms:
            max_ms = timestamp_ms
        age, delta = encoded_varint(timestamp_ms - base_ms), encoded_varint(index)
        length = encoded_varint(size_bytes + len(age) + len(delta) + 1)
        pieces += (length, ZERO, age, delta, *parts)
    records = EncodedRecords(b"".join(pieces), len(entries), base_ms, max_ms)
    return build_batch(records, codec=codec, fast=True)
