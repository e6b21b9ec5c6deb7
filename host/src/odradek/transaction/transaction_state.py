"""The states of a transactional id (TransactionState.java, Kafka 4.3)."""

from __future__ import annotations

from enum import StrEnum


class TransactionState(StrEnum):
    """The states, as named by DescribeTransactions and ListTransactions.

    ``PREPARE_EPOCH_FENCE`` only exists as a name: where Kafka passes through it, this coordinator changes
    directly to ``PREPARE_ABORT``. A ``DEAD`` id has been deleted.
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
        """Whether the outcome is decided and stored, and markers are being written."""
        return self in _PREPARED

    @property
    def is_complete(self) -> bool:
        return self in _COMPLETE

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open: the id may start one, or expire."""
        return self is TransactionState.EMPTY or self in _COMPLETE


_PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
_COMPLETE = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
