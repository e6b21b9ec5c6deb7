"""The checks of EndTxn, for transaction versions 1 and 2 (KIP-890).

After org.apache.kafka.coordinator.transaction.TransactionCoordinator.endTransaction (Kafka 4.3). In version 1
the epoch stays, so a retried EndTxn looks like the first. In version 2 the first one has bumped the epoch, so
a retry carries the previous epoch.
"""

from __future__ import annotations

from odradek.transaction.transaction_metadata import (
    EXHAUSTED_EPOCH,
    ProducerIdAndEpoch,
    TransactionMetadata,
)
from odradek.transaction.transaction_state import TransactionState
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


def is_done_already(
    known: TransactionMetadata, producer: ProducerIdAndEpoch, *, committed: bool, version_2: bool
) -> bool:
    """Whether this request repeats one that has already been carried out.

    Raises:
        ApiError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE.
    """
    check = _check_version_2 if version_2 else _check_version_1
    return check(known, producer, committed)


def _check_version_1(known: TransactionMetadata, producer: ProducerIdAndEpoch, committed: bool) -> bool:
    if producer.producer_id != known.producer_id:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if producer.producer_epoch != known.producer_epoch:
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    if known.state is TransactionState.ONGOING:
        return False
    _check_outcome(known, committed)
    return True


def _check_version_2(known: TransactionMetadata, producer: ProducerIdAndEpoch, committed: bool) -> bool:
    rotated = (
        producer == ProducerIdAndEpoch(known.previous_producer_id, EXHAUSTED_EPOCH)
        and known.producer_epoch == 0
    )
    # A retry carries the previous epoch, or, if its epochs were exhausted, the last epoch of the previous id.
    repeated = rotated or producer.producer_epoch + 1 == known.producer_epoch
    if producer.producer_id != known.producer_id and not rotated:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if not _is_valid_epoch(known, producer, repeated):
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    if known.state is TransactionState.ONGOING:
        return False
    if repeated:
        _check_outcome(known, committed)
        return True
    if committed:
        raise _invalid(known)
    return False  # an abort that ends nothing still bumps the epoch


def _is_valid_epoch(known: TransactionMetadata, producer: ProducerIdAndEpoch, repeated: bool) -> bool:
    if known.state.is_prepared:
        return repeated
    same = producer.producer_epoch == known.producer_epoch
    return same or (known.state.is_complete and repeated)


def _check_outcome(known: TransactionMetadata, committed: bool) -> None:
    """Check that the transaction ended, or is ending, with the requested outcome."""
    if known.state is TransactionState.EMPTY or known.is_commit != committed:
        raise _invalid(known)
    if known.state.is_prepared:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)


def _invalid(known: TransactionMetadata) -> ApiError:
    return ApiError(ErrorCode.INVALID_TXN_STATE, f"the transaction is {known.state}")
