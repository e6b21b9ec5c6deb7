"""The state of one transactional id, and its transitions.

After org.apache.kafka.coordinator.transaction.TransactionMetadata (Kafka 4.3). The state is immutable: each
transition returns a new one, which the coordinator stores before it uses it.
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
"""The last epoch that a client gets: one more must be left to fence it."""

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ProducerIdAndEpoch:
    """The identity of a producer."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """The state of one transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    """The previous producer id, if its epochs were exhausted."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id after the transaction that is ending, if the current one's epochs are exhausted."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before the last bump, if its producer may retry; -1 if it is fenced."""
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
        """Whether this is the producer under its next id, which it learns before all markers are written."""
        return self.next_producer_id != NO_PRODUCER_ID and producer == self.completed(0).identity

    @property
    def is_commit(self) -> bool:
        """Whether the outcome of a prepared or complete transaction is a commit."""
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)

    def with_epoch(self, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
        """The state of a new epoch, before its first transaction."""
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
        """`with_epoch` with a new producer id, because the epochs of the old one are exhausted."""
        fresh = replace(self, producer_id=producer_id, previous_producer_id=self.producer_id)
        return fresh.with_epoch(0, last_epoch, timeout_ms, now_ms)

    def with_partitions(self, partitions: frozenset[TopicPartition], now_ms: int) -> TransactionMetadata:
        """The state with more partitions; the first ones start the transaction."""
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
        """The state once the outcome is decided.

        Args:
            committed: Whether the transaction commits.
            bump_epoch: Whether the markers carry the next epoch, which fences all earlier batches (KIP-890).
            next_producer_id: The next producer id if this exhausts the epochs, else -1.
            now_ms: The time; also the start of a transaction without partitions.
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
        """The state once all markers are written."""
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
        """The stored form."""
        fields = asdict(self) | {"partitions": sorted(self.partitions)}
        del fields["transactional_id"]
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_text(cls, transactional_id: str, text: str) -> TransactionMetadata:
        """The state from its stored form.

        Raises:
            ValueError: It is not the stored form of a state.
        """
        try:
            fields = json.loads(text)
            state = TransactionState(fields.pop("state"))
            partitions = frozenset((topic, index) for topic, index in fields.pop("partitions"))
            known = cls(transactional_id=transactional_id, state=state, partitions=partitions, **fields)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"the state of transactional id {transactional_id!r}: {error!r}") from error
        numbers = (*fields.values(), *(index for _, index in partitions))
        if not all(type(each) is int for each in numbers):
            raise ValueError(
                f"the state of transactional id {transactional_id!r}: a number is not an integer"
            )
        return known
