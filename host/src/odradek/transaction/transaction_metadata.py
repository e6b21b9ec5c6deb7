"""What is known of one transactional id, and what it becomes.

After org.apache.kafka.coordinator.transaction.TransactionMetadata (Kafka 4.3). A value: each ``with_…`` gives
the next one, which the coordinator stores before it takes it over.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Final

from odradek.transaction.transaction_state import TransactionState

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
MAX_EPOCH: Final = 0x7FFF
EXHAUSTED_EPOCH: Final = MAX_EPOCH - 1
"""The last epoch a client is given: one more must be left to fence it."""

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ProducerIdAndEpoch:
    """Who a producer is."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """One transactional id at one moment."""

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    """The one before, if its epochs were exhausted."""
    next_producer_id: int = NO_PRODUCER_ID
    """The one after the transaction that is being completed, if this one's epochs are exhausted."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before the last bump, if its producer may ask again; -1 if it is fenced."""
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = -1
    updated_ms: int = -1

    @property
    def identity(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def epoch_exhausted(self) -> bool:
        return self.producer_epoch >= EXHAUSTED_EPOCH

    def is_followed_by(self, producer: ProducerIdAndEpoch) -> bool:
        """Whether this is the producer with its next id, which it is told before all markers are there."""
        return self.next_producer_id != NO_PRODUCER_ID and producer == self.completed(0).identity

    def is_overdue(self, now_ms: int) -> bool:
        """Whether it has been open for longer than its producer wanted."""
        return self.state is TransactionState.ONGOING and self.start_ms + self.timeout_ms < now_ms

    @property
    def is_commit(self) -> bool:
        """Of a prepared or complete transaction."""
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)

    def with_epoch(self, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
        """Ready for its first, or next, transaction."""
        return replace(
            self,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            partitions=frozenset(),
            start_ms=-1,
            updated_ms=now_ms,
        )

    def with_producer_id(
        self, producer_id: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> TransactionMetadata:
        """The same with a fresh producer id: the epochs of the old one are exhausted."""
        fresh = replace(self, producer_id=producer_id, previous_producer_id=self.producer_id)
        return fresh.with_epoch(0, last_epoch, timeout_ms, now_ms)

    def with_partitions(self, partitions: frozenset[TopicPartition], now_ms: int) -> TransactionMetadata:
        """These partitions take part; the first ones begin the transaction."""
        return replace(
            self,
            state=TransactionState.ONGOING,
            partitions=self.partitions | partitions,
            start_ms=now_ms if self.state.is_idle else self.start_ms,
            updated_ms=now_ms,
        )

    def prepared(
        self, *, committed: bool, bump_epoch: bool, next_producer_id: int, now_ms: int
    ) -> TransactionMetadata:
        """The outcome is decided.

        Args:
            committed: The outcome.
            bump_epoch: The markers carry the next epoch, which fences everything sent before (KIP-890).
            next_producer_id: Where that exhausts the epochs; else -1.
            now_ms: Also the start of a transaction that never had a partition.
        """
        return replace(
            self,
            producer_epoch=self.producer_epoch + 1 if bump_epoch else self.producer_epoch,
            last_producer_epoch=self.producer_epoch if bump_epoch else self.last_producer_epoch,
            next_producer_id=next_producer_id,
            state=TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT,
            start_ms=now_ms if self.state.is_idle else self.start_ms,
            updated_ms=now_ms,
        )

    def completed(self, now_ms: int) -> TransactionMetadata:
        """All markers are written."""
        rotates = self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            previous_producer_id=self.producer_id if rotates else self.previous_producer_id,
            next_producer_id=NO_PRODUCER_ID,
            producer_epoch=0 if rotates else self.producer_epoch,
            state=TransactionState.COMPLETE_COMMIT if self.is_commit else TransactionState.COMPLETE_ABORT,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    def to_text(self) -> str:
        """As it is stored."""
        fields = asdict(self) | {"partitions": sorted(self.partitions)}
        del fields["transactional_id"]
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_text(cls, transactional_id: str, text: str) -> TransactionMetadata:
        """What ``to_text`` made."""
        fields = json.loads(text)
        fields["state"] = TransactionState(fields["state"])
        fields["partitions"] = frozenset((topic, index) for topic, index in fields["partitions"])
        return cls(transactional_id=transactional_id, **fields)
