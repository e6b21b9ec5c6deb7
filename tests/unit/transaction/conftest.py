"""A coordinator on a mock clock, with recording partitions and a recording store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

import pytest

from odradek.testing.clock import MockClock
from odradek.transaction.transaction_config import TransactionConfig
from odradek.transaction.transaction_coordinator import TransactionCoordinator
from odradek.transaction.transaction_metadata import ProducerIdAndEpoch, TopicPartition
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

Marker = tuple[TopicPartition, int, int, bool]


@dataclass
class MemoryStore:
    """A store that can be told to fail."""

    rows: dict[str, str] = field(default_factory=dict)
    failures: int = 0
    """The number of further calls that fail."""

    def fail_when_told(self) -> None:
        if self.failures:
            self.failures -= 1
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def transactions(self) -> list[tuple[str, str]]:
        return list(self.rows.items())

    def put_transaction(self, transactional_id: str, text: str) -> None:
        self.fail_when_told()
        self.rows[transactional_id] = text

    def delete_transactions(self, transactional_ids: Iterable[str]) -> None:
        self.fail_when_told()
        for transactional_id in transactional_ids:
            del self.rows[transactional_id]


@dataclass
class Partitions:
    """Participants that can be told to fail."""

    markers: list[Marker] = field(default_factory=list)
    offsets: list[tuple[int, bool]] = field(default_factory=list)
    failures: int = 0
    broken: set[TopicPartition] = field(default_factory=set)
    """Partitions that fail always."""

    def write_marker(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, committed: bool
    ) -> None:
        if self.failures:
            self.failures -= 1
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        if partition in self.broken:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        self.markers.append((partition, producer_id, producer_epoch, committed))

    def complete_offsets(self, producer_id: int, committed: bool) -> None:
        self.offsets.append((producer_id, committed))


@dataclass
class TransactionHost:
    """A coordinator with its clock, store and partitions; `restart` creates a new one from the store."""

    clock: MockClock = field(default_factory=MockClock)
    store: MemoryStore = field(default_factory=MemoryStore)
    partitions: Partitions = field(default_factory=Partitions)
    ids: count[int] = field(default_factory=count)
    config: TransactionConfig = field(default_factory=TransactionConfig)
    coordinator: TransactionCoordinator = field(init=False)

    def __post_init__(self) -> None:
        self.coordinator = self.started()

    def started(self) -> TransactionCoordinator:
        coordinator = TransactionCoordinator(
            self.config,
            self.clock,
            self.clock.timer,
            self.store,
            self.partitions,
            self.ids.__next__,
        )
        coordinator.start()
        return coordinator

    def restart(self) -> None:
        """Restart as after kill -9: only the store remains."""
        self.coordinator.close()
        self.coordinator = self.started()

    def producer(self, transactional_id: str = "tx", timeout_ms: int = 60_000) -> ProducerIdAndEpoch:
        """A producer in its first, or next, incarnation."""
        return self.coordinator.init_producer_id(transactional_id, timeout_ms)

    def ongoing(self, *partitions: TopicPartition, transactional_id: str = "tx") -> ProducerIdAndEpoch:
        """A producer with a transaction on these partitions."""
        producer = self.producer(transactional_id)
        wanted = frozenset(partitions or [("t", 0)])
        self.coordinator.add_partitions(transactional_id, producer, wanted)
        return producer

    def in_epoch(self, epoch: int) -> ProducerIdAndEpoch:
        producer = self.producer()
        stored = self.coordinator.transactions["tx"].with_epoch(epoch, -1, 60_000, self.clock.now_ms())
        self.coordinator.transactions["tx"] = stored
        self.store.rows["tx"] = stored.to_text()
        return ProducerIdAndEpoch(producer.producer_id, epoch)


@pytest.fixture
def host() -> TransactionHost:
    return TransactionHost()
