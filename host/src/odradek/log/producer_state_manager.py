"""What each idempotent producer has written to one partition, so that a retry is not written twice (KIP-98).

After org.apache.kafka.storage.internals.log.{ProducerStateManager,ProducerStateEntry,ProducerAppendInfo}.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.record_batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, RecordBatchHeader

BATCHES_KEPT: Final = 5
"""``ProducerStateEntry.NUM_BATCHES_TO_RETAIN``: a producer has at most five requests in flight."""
PRODUCER_ID_EXPIRATION_MS: Final = 86_400_000
"""Default of ``producer.id.expiration.ms``."""
_SEQUENCE_MASK: Final = 0x7FFFFFFF
_NO_OFFSET: Final = -1


class AppendedBatch(NamedTuple):
    """One batch of a producer, as it stands in the log."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int


@dataclass(slots=True)
class ProducerState:
    """The epoch of one producer and its last five batches."""

    producer_epoch: int = NO_PRODUCER_EPOCH
    batches: deque[AppendedBatch] = field(default_factory=lambda: deque(maxlen=BATCHES_KEPT))
    last_timestamp_ms: int = -1
    coordinator_epoch: int = -1
    current_txn_first_offset: int = _NO_OFFSET
    """-1 unless a transaction is open."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class ProducerStateManager:
    """The producers of one partition by their id.

    The caller asks ``duplicate_of``, then ``check``, writes the batch, and then calls ``appended``; nothing
    changes before the batch is in the log.
    """

    __slots__ = ("expiration_ms", "producers")

    def __init__(self, expiration_ms: int = PRODUCER_ID_EXPIRATION_MS) -> None:
        self.expiration_ms = expiration_ms
        self.producers: dict[int, ProducerState] = {}

    def duplicate_of(self, header: RecordBatchHeader) -> AppendedBatch | None:
        """The batch in the log that ``header`` repeats: same epoch, exactly the same sequences."""
        state = self.producers.get(header.producer_id)
        if state is None or state.producer_epoch != header.producer_epoch:
            return None
        sequences = (header.base_sequence, header.last_sequence)
        for batch in state.batches:
            if batch[:2] == sequences:
                return batch
        return None

    def check(self, header: RecordBatchHeader) -> None:
        """Whether a batch that is no duplicate may follow.

        Raises:
            ApiError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        state = self.producers.get(header.producer_id)
        if state is None or state.producer_epoch == NO_PRODUCER_EPOCH:
            return
        if header.producer_epoch < state.producer_epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {header.producer_epoch} of producer {header.producer_id}, now {state.producer_epoch}",
            )
        if header.producer_epoch > state.producer_epoch:
            expected = 0
        elif state.batches:
            expected = state.last_sequence + 1 & _SEQUENCE_MASK
        else:
            return
        if header.base_sequence != expected:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"sequence {header.base_sequence} of producer {header.producer_id}, expected {expected}",
            )

    def appended(self, header: RecordBatchHeader, base_offset: int, timestamp_ms: int) -> None:
        """A batch of a producer is in the log at ``base_offset``."""
        state = self.producers.get(header.producer_id)
        if state is None:
            state = self.producers[header.producer_id] = ProducerState()
        if state.producer_epoch != header.producer_epoch:
            state.producer_epoch = header.producer_epoch
            state.batches.clear()
        last_offset = base_offset + header.last_offset_delta
        state.batches.append(
            AppendedBatch(header.base_sequence, header.last_sequence, base_offset, last_offset, timestamp_ms)
        )
        state.last_timestamp_ms = timestamp_ms

    def expire(self, now_ms: int) -> int:
        """Forget producers that have been silent too long; how many there were."""
        oldest_ms = now_ms - self.expiration_ms
        silent = [
            producer_id
            for producer_id, state in self.producers.items()
            if state.last_timestamp_ms <= oldest_ms and state.current_txn_first_offset == _NO_OFFSET
        ]
        for producer_id in silent:
            del self.producers[producer_id]
        return len(silent)
