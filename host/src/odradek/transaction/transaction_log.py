"""What the coordinator needs from others: a place that survives, and partitions to write markers to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from odradek.transaction.transaction_metadata import TopicPartition


class TransactionStore(Protocol):
    """Transactional ids and their state. What was put survives kill -9 when the call returns.

    Every method may raise `ApiError`: COORDINATOR_NOT_AVAILABLE, and nothing has changed.
    """

    def transactions(self) -> Iterable[tuple[str, str]]:
        """All ids and what was put for them."""

    def put_transaction(self, transactional_id: str, text: str) -> None:
        """Set the state of an id."""

    def delete_transactions(self, transactional_ids: Iterable[str]) -> None:
        """Forget ids."""


class TransactionParticipants(Protocol):
    """Where the outcome of a transaction has to be known."""

    def write_marker(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, committed: bool
    ) -> None:
        """Commit or abort what the producer has written to a partition; one that is gone is passed over.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; it will be tried again.
        """

    def complete_offsets(self, producer_id: int, committed: bool) -> None:
        """Commit or drop the offsets that the producer's transaction holds, of all groups.

        Raises:
            ApiError: They could not be stored; it will be tried again.
        """
