"""The last batches of each idempotent producer on one partition, to recognize retries, and the open
transactions (KIP-98).

After org.apache.kafka.storage.internals.log.{ProducerStateManager,ProducerStateEntry,ProducerAppendInfo}.
With one replica a marker is below the high watermark at once, so a transaction is either open or complete.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from odradek.log.control_batch import TransactionMarker
from odradek.log.producer_ids import ProducerIds
from odradek.log.transaction_index import AbortedTransaction, TransactionIndex
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.record_batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, RecordBatchHeader

BATCHES_KEPT: Final = 5
"""``ProducerStateEntry.NUM_BATCHES_TO_RETAIN``: a producer has at most five requests in flight."""
_SEQUENCE_MASK: Final = 0x7FFFFFFF
_NO_OFFSET: Final = -1


class AppendedBatch(NamedTuple):
    """One batch of a producer in the log."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int


@dataclass(slots=True)
class ProducerState:
    """The epoch of one producer and its last five batches."""

    producer_epoch: int = NO_PRODUCER_EPOCH
    batches: list[AppendedBatch] = field(default_factory=list)
    """At most `BATCHES_KEPT`. A deque would take 600 bytes more."""
    last_timestamp_ms: int = -1
    coordinator_epoch: int = -1
    current_txn_first_offset: int = _NO_OFFSET
    """-1 unless a transaction is open."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class ProducerStateManager:
    """The producers of one partition, by id.

    The caller calls ``duplicate_of`` and ``check``, writes the batch, then calls ``appended``: the state does
    not change before the batch is in the log. For markers it calls ``check_marker`` and ``ended``.
    """

    __slots__ = ("_open_transactions", "aborted", "ids", "producers")

    def __init__(self, ids: ProducerIds | None = None) -> None:
        self.ids = ids or ProducerIds()
        self.producers: dict[int, ProducerState] = {}
        self.aborted = TransactionIndex()
        self._open_transactions: dict[int, int] = {}

    def restore(self, producers: dict[int, ProducerState], aborted: TransactionIndex) -> None:
        """Start from the content of a snapshot."""
        self.ids.known += len(producers) - len(self.producers)
        self.producers, self.aborted = producers, aborted
        self._open_transactions = dict(
            sorted(
                (state.current_txn_first_offset, producer_id)
                for producer_id, state in producers.items()
                if state.current_txn_first_offset != _NO_OFFSET
            )
        )

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if none is open."""
        return next(iter(self._open_transactions), None)

    def open_transactions(self) -> list[tuple[int, int]]:
        """Producer id and epoch of each open transaction, oldest first."""
        return [
            (producer_id, self.producers[producer_id].producer_epoch)
            for producer_id in self._open_transactions.values()
        ]

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer has an open transaction here, in this epoch."""
        state = self.producers.get(producer_id)
        return (
            state is not None
            and state.current_txn_first_offset != _NO_OFFSET
            and state.producer_epoch == producer_epoch
        )

    def duplicate_of(self, header: RecordBatchHeader) -> AppendedBatch | None:
        """The batch in the log that ``header`` repeats, with the same epoch and the same sequences."""
        state = self.producers.get(header.producer_id)
        if state is None or state.producer_epoch != header.producer_epoch:
            return None
        sequences = (header.base_sequence, header.last_sequence)
        for batch in state.batches:
            if batch[:2] == sequences:
                return batch
        return None

    def check(self, header: RecordBatchHeader) -> None:
        """Check that a batch, which is not a duplicate, may be appended.

        Raises:
            ApiError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER; INVALID_TXN_STATE for a batch
                outside the transaction that its producer has open; POLICY_VIOLATION: the host remembers too
                many producers.
        """
        state = self.producers.get(header.producer_id)
        if state is None:
            self.ids.limit.check()
        if state is None or state.producer_epoch == NO_PRODUCER_EPOCH:
            return  # a producer that is new or was forgotten may start with any sequence
        _check_epoch(header.producer_id, header.producer_epoch, state)
        if header.producer_epoch > state.producer_epoch or not state.batches:
            expected = 0
        else:
            expected = state.last_sequence + 1 & _SEQUENCE_MASK
        if header.base_sequence != expected:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"sequence {header.base_sequence} of producer {header.producer_id}, expected {expected}",
            )
        if state.current_txn_first_offset != _NO_OFFSET and not header.is_transactional:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has a transaction open, the batch is not part of it",
            )

    def check_marker(self, marker: TransactionMarker) -> None:
        """Check that this marker may be appended.

        Raises:
            ApiError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
        """
        state = self.producers.get(marker.producer_id)
        if state is None:
            return
        _check_epoch(marker.producer_id, marker.producer_epoch, state)
        if marker.coordinator_epoch < state.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch}, now {state.coordinator_epoch}",
            )

    def appended(self, header: RecordBatchHeader, base_offset: int, timestamp_ms: int) -> None:
        """Record that a producer's batch is in the log at ``base_offset``."""
        state = self._in_epoch(header.producer_id, header.producer_epoch)
        last_offset = base_offset + header.last_offset_delta
        batches = state.batches
        batches.append(
            AppendedBatch(header.base_sequence, header.last_sequence, base_offset, last_offset, timestamp_ms)
        )
        if len(batches) > BATCHES_KEPT:
            del batches[0]
        state.last_timestamp_ms = timestamp_ms
        if header.is_transactional and state.current_txn_first_offset == _NO_OFFSET:
            state.current_txn_first_offset = base_offset
            self._open_transactions[base_offset] = header.producer_id

    def ended(self, marker: TransactionMarker, offset: int, timestamp_ms: int) -> None:
        """Record that a marker is in the log at ``offset``."""
        state = self._in_epoch(marker.producer_id, marker.producer_epoch)
        state.coordinator_epoch = marker.coordinator_epoch
        state.last_timestamp_ms = timestamp_ms
        first_offset = state.current_txn_first_offset
        if first_offset == _NO_OFFSET:
            return
        state.current_txn_first_offset = _NO_OFFSET
        del self._open_transactions[first_offset]
        if not marker.committed:
            unstable = self.first_unstable_offset
            stable = offset + 1 if unstable is None else unstable
            self.aborted.append(AbortedTransaction(marker.producer_id, first_offset, offset, stable))

    def _in_epoch(self, producer_id: int, producer_epoch: int) -> ProducerState:
        state = self.producers.get(producer_id)
        if state is None:
            state = self.producers[producer_id] = ProducerState()
            self.ids.known += 1
        if state.producer_epoch != producer_epoch:
            # A new epoch starts its sequences from 0; batches of the old one can no longer be repeated.
            state.producer_epoch = producer_epoch
            state.batches.clear()
        return state

    def expire(self, now_ms: int) -> int:
        """Forget producers without appends for ``producer.id.expiration.ms``, unless they have an open
        transaction; return how many.
        """
        oldest_ms = now_ms - self.ids.config.expiration_ms
        silent = [
            producer_id
            for producer_id, state in self.producers.items()
            if state.last_timestamp_ms <= oldest_ms and state.current_txn_first_offset == _NO_OFFSET
        ]
        for producer_id in silent:
            del self.producers[producer_id]
        self.ids.known -= len(silent)
        return len(silent)

    def forget_all(self) -> None:
        """Forget all producers: the log is closed."""
        self.restore({}, TransactionIndex())


def _check_epoch(producer_id: int, producer_epoch: int, state: ProducerState) -> None:
    if producer_epoch < state.producer_epoch:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"epoch {producer_epoch} of producer {producer_id}, now {state.producer_epoch}",
        )
