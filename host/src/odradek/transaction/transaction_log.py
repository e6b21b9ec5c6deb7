"""The interfaces that the coordinator needs: a durable store, and the participants of a transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from odradek.transaction.transaction_metadata import TopicPartition


class TransactionStore(Protocol):
    """Transactional ids and their states. A state survives kill -9 once `put_transaction` has returned.

    Every method may raise an `ApiError` with COORDINATOR_NOT_AVAILABLE; nothing has changed then.
    """

    def transactions(self) -> Iterable[tuple[str, str]]:
        """All ids and their states, as passed to `put_transaction`."""

    def put_transaction(self, transactional_id: str, text: str) -> None:
        """Set the state of an id."""

    def delete_transactions(self, transactional_ids: Iterable[str]) -> None:
        """Delete ids."""


class TransactionParticipants(Protocol):
    """The partitions and groups that must learn the outcome of a transaction."""

    def write_marker(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, committed: bool
    ) -> None:
        """Write the marker of a transaction to a partition; does nothing if the partition no longer exists.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the coordinator will retry.
        """

    def complete_offsets(self, producer_id: int, committed: bool) -> None:
        """Commit or drop the pending offsets of the producer's transaction, in all groups.

        Raises:
            ApiError: The offsets could not be stored; the coordinator will retry.
        """
