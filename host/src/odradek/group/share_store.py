"""What share groups need of their store, besides what all groups have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

SharePartitionKey = tuple[str, bytes, int]
"""Group, topic id, partition."""
SharePartitionRow = tuple[str, bytes, int, int, int, bytes]
"""Group, topic id, partition, start offset (-1 if nothing was delivered yet), how many records from there on
are done, and their states."""
UNINITIALIZED = -1
"""The start offset of a partition that nothing was delivered of."""


class ShareStore(Protocol):
    """Durable storage of delivery states. Each call is one transaction."""

    def share_partitions(self) -> Iterable[SharePartitionRow]:
        """The delivery states of all groups."""

    def share_partition(self, group_id: str, topic_id: bytes, partition: int) -> SharePartitionRow | None:
        """One delivery state; None if there is none."""

    def put_share_partitions(self, rows: Iterable[SharePartitionRow]) -> None:
        """Set delivery states."""

    def delete_share_partitions(self, keys: Iterable[SharePartitionKey]) -> None:
        """Delete delivery states."""

    def delete_share_topics(self, topic_ids: Sequence[bytes]) -> None:
        """Delete the delivery states of topics."""
