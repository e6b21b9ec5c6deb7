"""Which transactional batches compaction may drop.

After org.apache.kafka.storage.internals.log.CleanedTransactionMetadata (Kafka 4.3): the records of an aborted
transaction are removed at once; a marker may be removed when no record of its transaction is left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from odradek.log.control_batch import TransactionMarker
from odradek.log.transaction_index import AbortedTransaction
from odradek.wire.record_batch import RecordBatchHeader


class CleanedTransactions:
    """The transactions of one pass over the log, which visits all batches in order."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self.discarded: list[int] = []
        """Offsets of ABORT markers whose transactions have no records left."""
        self._waiting = deque(sorted(aborted, key=lambda each: each.first_offset))
        self._aborted: dict[int, AbortedTransaction] = {}
        self._seen: set[int] = set()
        """Producers of which a batch of the current transaction was seen in this pass."""

    def data_goes(self, header: RecordBatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._begin(header.last_offset)
        if not header.is_transactional:
            return False
        self._seen.add(header.producer_id)
        return header.producer_id in self._aborted

    def marker_may_go(self, header: RecordBatchHeader, marker: TransactionMarker | None) -> bool:
        """Whether a marker is no longer needed; None is a marker that was emptied already."""
        self._begin(header.last_offset)
        if marker is None:
            return True
        # If any batch of the transaction is still in the log, consumers need the marker to tell how it
        # ended. An aborted batch counts although it is removed in this pass: the marker goes in a later
        # one.
        met = marker.producer_id in self._seen
        self._seen.discard(marker.producer_id)
        if marker.committed:
            return not met
        aborted = self._aborted.pop(marker.producer_id, None)
        if aborted is not None and not met:
            # Without records there is nothing to skip. Once the marker is gone, too, an index entry would
            # make consumers skip this producer's next transaction.
            self.discarded.append(aborted.last_offset)
        return not met

    def _begin(self, last_offset: int) -> None:
        while self._waiting and self._waiting[0].first_offset <= last_offset:
            entry = self._waiting.popleft()
            self._aborted[entry.producer_id] = entry
