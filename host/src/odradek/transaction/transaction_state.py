"""The states of a transactional id (TransactionState.java, Kafka 4.3)."""

from __future__ import annotations

from enum import StrEnum


class TransactionState(StrEnum):
    """As DescribeTransactions and ListTransactions name them.

    ``PREPARE_EPOCH_FENCE`` is only known by its name: where Kafka passes through it, this coordinator goes
    straight to ``PREPARE_ABORT``. An id that is ``DEAD`` is not there any more.
    """

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    @property
    def is_prepared(self) -> bool:
        """The outcome is decided and stored; markers are being written."""
        return self in _PREPARED

    @property
    def is_complete(self) -> bool:
        return self in _COMPLETE

    @property
    def is_idle(self) -> bool:
        """No transaction: the id may begin one, and expire."""
        return self is TransactionState.EMPTY or self in _COMPLETE


_PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
_COMPLETE = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
