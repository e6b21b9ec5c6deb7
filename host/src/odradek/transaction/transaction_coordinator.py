"""The transaction coordinator: producer ids and epochs, open transactions, and how they end.

After org.apache.kafka.coordinator.transaction.{TransactionCoordinator,TransactionStateManager,
TransactionMarkerChannelManager} (Kafka 4.3). Every new state is stored before it takes effect, so after a
crash a decided transaction is completed and an open one is still open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from odradek.settings.state_limit import StateLimit
from odradek.transaction.end_transaction import is_done_already
from odradek.transaction.transaction_config import TransactionConfig
from odradek.transaction.transaction_log import TransactionParticipants, TransactionStore
from odradek.transaction.transaction_metadata import (
    EXHAUSTED_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ProducerIdAndEpoch,
    TopicPartition,
    TransactionMetadata,
)
from odradek.transaction.transaction_state import TransactionState
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

MARKERS_PER_STEP: Final = 64
"""A marker takes some 20 µs. The rest of a larger transaction follows when the loop is free again."""
RETRY_MS: Final = 1_000
"""Delay after a marker that could not be written."""


@dataclass(slots=True, eq=False)
class TransactionCoordinator:
    """All transactional ids of the host.

    Call `start` before the first request: it completes the transactions that were decided before a crash.
    Requests for a transaction whose markers are being written fail with CONCURRENT_TRANSACTIONS, and clients
    retry them.
    """

    config: TransactionConfig
    clock: Clock
    timer: Timer
    store: TransactionStore
    participants: TransactionParticipants
    new_producer_id: Callable[[], int]
    transactions: dict[str, TransactionMetadata] = field(default_factory=dict)
    deadlines: dict[str, int] = field(default_factory=dict)
    """When each open transaction times out, on the monotonic clock: its start is stored as wall time."""
    unmarked: dict[str, list[TopicPartition]] = field(default_factory=dict)
    """The partitions of a prepared transaction that have no marker yet, by transactional id."""
    tasks: dict[str, TimerTask] = field(default_factory=dict)
    """The next step of a prepared transaction, by transactional id."""
    sweeps: dict[str, TimerTask] = field(default_factory=dict)
    open_partitions: int = 0
    """The partitions of all transactions that are open or ending."""
    ids_limit: StateLimit = field(init=False)
    partitions_limit: StateLimit = field(init=False)

    def __post_init__(self) -> None:
        self.ids_limit = StateLimit(
            "transactional ids",
            "transactional.ids.max",
            self.config.max_ids,
            self.transactions.__len__,
            self.clock,
        )
        self.partitions_limit = StateLimit(
            "partitions in transactions",
            "transaction.partitions.max",
            self.config.max_partitions,
            lambda: self.open_partitions,
            self.clock,
        )

    @property
    def limits(self) -> list[StateLimit]:
        return [self.ids_limit, self.partitions_limit]

    def __iter__(self) -> Iterator[TransactionMetadata]:
        return iter(tuple(self.transactions.values()))

    # Start and stop

    def start(self) -> None:
        """Load all ids, complete decided transactions, and start to look for timed-out and expired ones.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE: the store cannot be read.
        """
        for transactional_id, text in self.store.transactions():
            known = TransactionMetadata.from_text(transactional_id, text)
            self.transactions[transactional_id] = known
            self.open_partitions += len(known.partitions)
        for transaction in self:
            if transaction.state is TransactionState.ONGOING:
                left_ms = transaction.start_ms + transaction.timeout_ms - self.clock.now_ms()
                self._open(transaction, min(max(left_ms, 0), transaction.timeout_ms))
            elif transaction.state.is_prepared:
                self._begin_markers(transaction)
        self._repeat("abort", self.config.abort_timed_out_interval_ms, self.abort_timed_out)
        self._repeat("expire", self.config.remove_expired_interval_ms, self.remove_expired)

    def _repeat(self, name: str, interval_ms: int, action: Callable[[], None]) -> None:
        def due() -> None:
            self._repeat(name, interval_ms, action)
            action()

        self.sweeps[name] = self.timer.schedule(self.clock.monotonic_ms() + interval_ms, due)

    def close(self) -> None:
        """Cancel every timer."""
        for task in (*self.tasks.values(), *self.sweeps.values()):
            task.cancel()

    # Requests

    def transaction(self, transactional_id: str) -> TransactionMetadata:
        """The state of a transactional id.

        Raises:
            ApiError: INVALID_REQUEST for the empty id, TRANSACTIONAL_ID_NOT_FOUND.
        """
        _check_id(transactional_id)
        known = self.transactions.get(transactional_id)
        if known is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return known

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None = None
    ) -> ProducerIdAndEpoch:
        """Give a producer its id and the next epoch, which fences the instance with the previous epoch.

        Args:
            transactional_id: The same for all instances of one producer.
            timeout_ms: How long its transactions may be open.
            expected: The producer's current id and epoch, if it continues after an error (KIP-360).

        Raises:
            ApiError: INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED; POLICY_VIOLATION: there
                are too many ids; CONCURRENT_TRANSACTIONS while the previous transaction is ending.
        """
        _check_id(transactional_id)
        if not 0 < timeout_ms <= self.config.transaction_max_timeout_ms:
            raise ApiError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        known = self.transactions.get(transactional_id)
        if known is None:
            self.ids_limit.check()
            known = TransactionMetadata(
                transactional_id=transactional_id, producer_id=self.new_producer_id(), timeout_ms=timeout_ms
            )
        if expected is not None and not _may_go_on(known, expected):
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        if known.state is TransactionState.ONGOING:
            # An instance has died, or is fenced now. Its transaction is aborted first; the client retries
            # until it is.
            self._end(known, committed=False, bump_epoch=True)
        if not known.state.is_idle:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return self._put(self._next_incarnation(known, timeout_ms, expected)).identity

    def _next_incarnation(
        self, known: TransactionMetadata, timeout_ms: int, expected: ProducerIdAndEpoch | None
    ) -> TransactionMetadata:
        now_ms = self.clock.now_ms()
        epoch = known.producer_epoch
        goes_on = expected is not None and expected.producer_epoch == epoch
        if known.epoch_exhausted and (expected is None or goes_on):
            # A new producer id starts its epochs from 0.
            last_epoch = NO_PRODUCER_EPOCH if expected is None else epoch
            return known.with_producer_id(self.new_producer_id(), last_epoch, timeout_ms, now_ms)
        if expected is None:
            # A new instance: forgetting the last epoch fences any retry of the old instance.
            return known.with_epoch(epoch + 1, NO_PRODUCER_EPOCH, timeout_ms, now_ms)
        if epoch == NO_PRODUCER_EPOCH or goes_on:
            return known.with_epoch(epoch + 1, epoch, timeout_ms, now_ms)
        if expected.producer_epoch == known.last_producer_epoch:  # the response to this request was lost
            return known.with_epoch(epoch, known.last_producer_epoch, timeout_ms, now_ms)
        raise ApiError(ErrorCode.PRODUCER_FENCED)

    def add_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: frozenset[TopicPartition]
    ) -> None:
        """Add partitions to the producer's transaction; the first ones start it.

        Raises:
            ApiError: INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS;
                POLICY_VIOLATION: too many partitions are in transactions.
        """
        known = self._of_producer(transactional_id, producer)
        if known.state is TransactionState.ONGOING and partitions <= known.partitions:
            return
        self.partitions_limit.check(len(partitions - known.partitions))
        self._put(known.with_partitions(partitions, self.clock.now_ms()))

    def verify_partition(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partition: TopicPartition
    ) -> None:
        """Check that a partition is part of the producer's transaction.

        Raises:
            ApiError: As `add_partitions`; TRANSACTION_ABORTABLE if it is not.
        """
        if partition not in self._of_producer(transactional_id, producer).partitions:
            raise ApiError(
                ErrorCode.TRANSACTION_ABORTABLE, f"{partition[0]}-{partition[1]} is not in the transaction"
            )

    def _of_producer(self, transactional_id: str, producer: ProducerIdAndEpoch) -> TransactionMetadata:
        """The transaction of this producer, unless it is ending."""
        known = self._mapped(transactional_id)
        if known.is_followed_by(producer):
            # EndTxn has given the producer its next id, but not all markers of the old id are written.
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if known.producer_id != producer.producer_id:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if known.producer_epoch != producer.producer_epoch:
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        if known.state.is_prepared:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return known

    def _mapped(self, transactional_id: str) -> TransactionMetadata:
        _check_id(transactional_id)
        known = self.transactions.get(transactional_id)
        if known is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return known

    def end(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, committed: bool, version_2: bool
    ) -> ProducerIdAndEpoch:
        """Commit or abort a transaction; return the producer's id and epoch from now on.

        Args:
            transactional_id: The transactional id.
            producer: The producer that asks.
            committed: Whether to commit.
            version_2: Whether to bump the epoch: the markers carry the next one, and the producer continues
                with it (KIP-890).

        Raises:
            ApiError: INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_TXN_STATE;
                CONCURRENT_TRANSACTIONS for a retry while markers are being written.
        """
        known = self._mapped(transactional_id)
        if is_done_already(known, producer, committed=committed, version_2=version_2):
            return known.identity
        return self._end(known, committed=committed, bump_epoch=version_2)

    # Outcomes

    def _end(self, known: TransactionMetadata, *, committed: bool, bump_epoch: bool) -> ProducerIdAndEpoch:
        exhausted = bump_epoch and known.epoch_exhausted
        prepared = known.prepared(
            committed=committed,
            bump_epoch=bump_epoch,
            next_producer_id=self.new_producer_id() if exhausted else NO_PRODUCER_ID,
            now_ms=self.clock.now_ms(),
        )
        self._put(prepared)
        # Decided and stored: from here on the transaction ends this way, even after a crash.
        self._begin_markers(prepared)
        return prepared.completed(0).identity

    def _put(self, transaction: TransactionMetadata) -> TransactionMetadata:
        self.store.put_transaction(transaction.transactional_id, transaction.to_text())
        before = self.transactions.get(transaction.transactional_id)
        self.open_partitions += len(transaction.partitions) - (len(before.partitions) if before else 0)
        self.transactions[transaction.transactional_id] = transaction
        if transaction.state is TransactionState.ONGOING:
            self._open(transaction, transaction.timeout_ms)
        else:
            self.deadlines.pop(transaction.transactional_id, None)
        return transaction

    def _open(self, transaction: TransactionMetadata, left_ms: int) -> None:
        """Set the deadline of an open transaction, unless it already has one."""
        self.deadlines.setdefault(transaction.transactional_id, self.clock.monotonic_ms() + left_ms)

    def _begin_markers(self, prepared: TransactionMetadata) -> None:
        self.unmarked[prepared.transactional_id] = sorted(prepared.partitions, reverse=True)
        self._write_markers(prepared)

    def _write_markers(self, prepared: TransactionMetadata) -> None:
        """Write a limited number of markers, then complete the transaction or schedule the next step."""
        name = prepared.transactional_id
        self.tasks.pop(name, None)
        unmarked = self.unmarked[name]
        try:
            for _ in range(min(len(unmarked), MARKERS_PER_STEP)):
                self.participants.write_marker(
                    unmarked[-1], prepared.producer_id, prepared.producer_epoch, prepared.is_commit
                )
                unmarked.pop()
            if not unmarked:
                self._complete(prepared)
                return
            delay_ms = 0
        except ApiError as error:
            if unmarked:
                unmarked.insert(0, unmarked.pop())  # one failing disk must not hold up the other partitions
            log.warning(
                "cannot complete a transaction: trying again",
                extra={"id": name, "problem": str(error), "retry_ms": RETRY_MS},
            )
            delay_ms = RETRY_MS
        at_ms = self.clock.monotonic_ms() + delay_ms
        self.tasks[name] = self.timer.schedule(at_ms, lambda: self._write_markers(prepared))

    def _complete(self, prepared: TransactionMetadata) -> None:
        self.participants.complete_offsets(prepared.producer_id, prepared.is_commit)
        # Stored last: after a crash before this point all markers are written again, which is harmless.
        self._put(prepared.completed(self.clock.now_ms()))
        del self.unmarked[prepared.transactional_id]

    # Upkeep

    def abort_timed_out(self) -> None:
        """Abort transactions that have been open for longer than their time-outs, and fence their
        producers.
        """
        now_ms = self.clock.monotonic_ms()
        self._abort_some([name for name, deadline_ms in self.deadlines.items() if deadline_ms < now_ms])

    def _abort_some(self, waiting: list[str]) -> None:
        """Abort a limited number, the others in a later step: many may time out at the same moment."""
        markers, now_ms = 0, self.clock.monotonic_ms()
        while waiting and markers < MARKERS_PER_STEP:
            name = waiting.pop()
            if self.deadlines.get(name, now_ms) >= now_ms:
                continue  # has ended meanwhile
            known = self.transactions[name]
            markers += 1 + len(known.partitions)
            try:
                self._end(known, committed=False, bump_epoch=True)
            except ApiError as error:
                problem = {"id": known.transactional_id, "problem": str(error)}
                log.warning("cannot abort a timed-out transaction: the next sweep tries again", extra=problem)
        if waiting:
            next_turn_ms = self.clock.monotonic_ms() + 1
            self.sweeps["aborts"] = self.timer.schedule(next_turn_ms, lambda: self._abort_some(waiting))

    def remove_expired(self) -> None:
        """Delete ids that were idle for ``transactional.id.expiration.ms``."""
        oldest_ms = self.clock.now_ms() - self.config.transactional_id_expiration_ms
        expired = [
            known.transactional_id for known in self if known.state.is_idle and known.updated_ms <= oldest_ms
        ]
        try:
            self.store.delete_transactions(expired)
        except ApiError as error:
            log.warning(
                "cannot delete expired transactional ids: the next sweep tries again",
                extra={"problem": str(error)},
            )
            return
        for transactional_id in expired:
            del self.transactions[transactional_id]


def _check_id(transactional_id: str) -> None:
    if not transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")


def _may_go_on(known: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Whether the expected producer id is one that this producer may have; the epoch is checked later."""
    return (
        known.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == known.producer_id
        or known.is_followed_by(expected)
        or (expected.producer_id == known.previous_producer_id and expected.producer_epoch >= EXHAUSTED_EPOCH)
    )
