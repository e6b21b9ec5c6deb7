"""Add the partition of a produced batch to its transaction."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.broker.transactions.transaction_errors import (
    GENERIC_ERROR_VERSION,
    IMPLICIT_VERSION,
    verification_error,
)
from odradek.log.partition_log import PartitionLog
from odradek.transaction.transaction_coordinator import TransactionCoordinator
from odradek.transaction.transaction_metadata import ProducerIdAndEpoch, TopicPartition
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.record_batch import RecordBatchHeader


@dataclass(frozen=True, slots=True)
class TransactionJoin:
    """The transaction of one Produce request, if it has one."""

    transactional_id: str | None
    version: int
    """The version of the request."""
    transactions: TransactionCoordinator

    def join(self, partition: TopicPartition, log: PartitionLog, header: RecordBatchHeader) -> None:
        """Check that a partition accepts the first batch of a transaction; newer clients add it by this
        batch.

        Raises:
            ApiError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, OUT_OF_ORDER_SEQUENCE_NUMBER, or the result of
                `verification_error`.
        """
        if self.transactional_id is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
        implicit = self.version >= IMPLICIT_VERSION
        if implicit and header.base_sequence != 0 and header.producer_id not in log.producers.producers:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"sequence {header.base_sequence} of the unknown producer {header.producer_id}",
            )
        try:
            if implicit:
                self.transactions.add_partitions(self.transactional_id, producer, frozenset({partition}))
            else:
                self.transactions.verify_partition(self.transactional_id, producer, partition)
        except ApiError as error:
            generic_error = self.version >= GENERIC_ERROR_VERSION
            raise verification_error(error, implicit=implicit, generic_error=generic_error) from None
