"""Transactions of several producers, in any order, with aborts, timeouts, zombies, full disks and restarts,
compared with a list: ``read_committed`` returns exactly the committed records, in order.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.broker.broker import Broker
from odradek.broker.transactions.transaction_join import TransactionJoin
from odradek.log.partition_log import PartitionLog
from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.metadata.store import MetadataStore
from odradek.metadata.transaction_store import SqliteTransactionStore
from odradek.testing.clock import MockClock
from odradek.transaction.transaction_log import TransactionParticipants
from odradek.transaction.transaction_metadata import ProducerIdAndEpoch, TopicPartition
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.record_batch import record_batches, records
from support.batches import batch_of
from support.broker import make_broker
from support.examples import examples

PARTITIONS = 3
TIMEOUT_MS = 60_000
SWEEP_MS = 10_000
FETCH_BYTES = 150
"""Two batches at a time."""
NAMES = ("red", "green", "blue")


@dataclass(eq=False)
class Transaction:
    """The outcome; None while it is open."""

    committed: bool | None = None


@dataclass
class Producer:
    """One incarnation of a transactional id."""

    name: str
    identity: ProducerIdAndEpoch
    version_2: bool
    sequences: dict[int, int] = field(default_factory=dict)
    transaction: Transaction | None = None


@dataclass
class Disk:
    """Participants whose next markers cannot be written."""

    behind: TransactionParticipants
    failures: int = 0

    def write_marker(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, committed: bool
    ) -> None:
        if self.failures:
            self.failures -= 1
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        self.behind.write_marker(partition, producer_id, producer_epoch, committed)

    def complete_offsets(self, producer_id: int, committed: bool) -> None:
        self.behind.complete_offsets(producer_id, committed)


def seen_with_read_committed(log: PartitionLog) -> list[bytes | None]:
    """Read as a client does: up to the last stable offset, some batches at a time, without the aborted
    records.
    """
    values: list[bytes | None] = []
    offset = log.log_start_offset
    while offset < log.last_stable_offset:
        fetched = [
            (header, batch)
            for header, batch in record_batches(log.read(offset, FETCH_BYTES))
            if header.base_offset < log.last_stable_offset
        ]
        end_offset = fetched[-1][0].next_offset
        aborted = sorted(log.aborted_transactions(offset, end_offset), key=attrgetter("first_offset"))
        skipped: set[int] = set()
        for header, batch in fetched:
            while aborted and aborted[0].first_offset <= header.last_offset:
                skipped.add(aborted.pop(0).producer_id)
            if header.is_control:
                skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                values += [record.value for record in records(batch, header)]
        offset = end_offset
    return values


def seen_with_read_uncommitted(log: PartitionLog) -> list[bytes | None]:
    return [
        record.value
        for header, batch in record_batches(log.read(0, 1 << 30))
        if not header.is_control
        for record in records(batch, header)
    ]


class Transactions(RuleBasedStateMachine):
    """Each value is written once, so that lists can be compared."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="odradek-transactions-"))
        self.broker = self.opened(MockClock())
        self.written: list[list[tuple[bytes, Transaction | None]]] = [[] for _ in range(PARTITIONS)]
        self.producers: dict[str, Producer] = {}
        self.zombies: list[Producer] = []
        self.count = 0

    def opened(self, clock: MockClock) -> Broker:
        self.stores = (
            MetadataStore(self.folder / "metadata.db"),
            SqliteOffsetStore(self.folder / "metadata.db"),
            SqliteTransactionStore(self.folder / "metadata.db"),
        )
        metadata, offsets, transactions = self.stores
        broker = make_broker(
            self.folder / "logs", metadata=metadata, offsets=offsets, transactions=transactions, clock=clock
        )
        self.disk = Disk(broker.transactions.participants)
        broker.transactions.participants = self.disk
        return broker

    @initialize()
    def create(self) -> None:
        self.broker.topics.create("t", PARTITIONS, {})

    def log(self, index: int) -> PartitionLog:
        return self.broker.topics.log("t", index)

    @property
    def clock(self) -> MockClock:
        assert isinstance(self.broker.clock, MockClock)
        return self.broker.clock

    def value(self) -> bytes:
        self.count += 1
        return b"%d" % self.count

    @rule(name=st.sampled_from(NAMES), version_2=st.booleans())
    def init(self, name: str, version_2: bool) -> None:
        before = self.producers.pop(name, None)
        if before is not None:
            self.zombies.append(before)
        for _ in range(3):
            try:
                identity = self.broker.transactions.init_producer_id(name, TIMEOUT_MS)
            except ApiError as error:
                if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    raise
                if before is not None and before.transaction is not None:
                    before.transaction.committed = False
                    before.transaction = None
                self.clock.advance(1_000)
            else:
                self.producers[name] = Producer(name, identity, version_2)
                return

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), index=st.integers(0, PARTITIONS - 1))
    def produce(self, data: st.DataObject, index: int) -> None:
        producer = self.producers[data.draw(st.sampled_from(sorted(self.producers)))]
        value = self.value()
        try:
            if not producer.version_2:
                wanted = frozenset({("t", index)})
                self.broker.transactions.add_partitions(producer.name, producer.identity, wanted)
            self.send(producer, index, value)
        except ApiError as error:
            if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                raise
            return
        producer.transaction = producer.transaction or Transaction()
        producer.sequences[index] = producer.sequences.get(index, 0) + 1
        self.written[index].append((value, producer.transaction))

    def send(self, producer: Producer, index: int, value: bytes) -> None:
        join = TransactionJoin(producer.name, 12 if producer.version_2 else 11, self.broker.transactions)
        identity = producer.identity
        sequence = producer.sequences.get(index, 0)
        batch = batch_of(
            value,
            producer=(identity.producer_id, identity.producer_epoch, sequence),
            transactional=True,
        )
        log = self.log(index)
        log.append(batch, self.clock.now_ms(), join_transaction=partial(join.join, ("t", index), log))

    @rule(index=st.integers(0, PARTITIONS - 1))
    def produce_plain(self, index: int) -> None:
        value = self.value()
        self.log(index).append(batch_of(value), self.clock.now_ms())
        self.written[index].append((value, None))

    @precondition(lambda self: self.zombies)
    @rule(data=st.data(), index=st.integers(0, PARTITIONS - 1))
    def zombie(self, data: st.DataObject, index: int) -> None:
        zombie = data.draw(st.sampled_from(self.zombies))
        if zombie.name not in self.producers:
            return
        code = ErrorCode.NONE
        try:
            self.send(zombie, index, b"from the dead")
        except ApiError as error:
            code = error.code
        assert code is not ErrorCode.NONE

    @precondition(lambda self: any(each.transaction for each in self.producers.values()))
    @rule(data=st.data(), committed=st.booleans(), failing_markers=st.integers(0, 2))
    def end(self, data: st.DataObject, committed: bool, failing_markers: int) -> None:
        names = sorted(name for name, each in self.producers.items() if each.transaction)
        producer = self.producers[data.draw(st.sampled_from(names))]
        assert producer.transaction is not None
        self.disk.failures = failing_markers

        identity = self.broker.transactions.end(
            producer.name, producer.identity, committed=committed, version_2=producer.version_2
        )

        producer.transaction.committed = committed
        producer.transaction = None
        if identity != producer.identity:
            producer.identity, producer.sequences = identity, {}
        self.disk.failures = 0

    @rule()
    def time_out(self) -> None:
        self.clock.advance(TIMEOUT_MS + SWEEP_MS + 1)
        for name, producer in list(self.producers.items()):
            if producer.transaction is not None:
                producer.transaction.committed = False
                self.zombies.append(self.producers.pop(name))

    @rule()
    def wait(self) -> None:
        self.clock.advance(0)

    @rule(closed=st.booleans())
    def restart(self, closed: bool) -> None:
        self.stop(closed)
        self.broker = self.opened(MockClock(self.clock.time_ms))

    def stop(self, closed: bool) -> None:
        self.broker.transactions.close()
        if closed:
            self.broker.logs.close()
        for log in self.broker.logs:
            log.release()
        for store in self.stores:
            store.close()

    @invariant()
    def consumers_read_the_committed_records(self) -> None:
        settled = not self.broker.transactions.unmarked
        for index, written in enumerate(self.written):
            if self.broker.topics.named("t") is None:
                return
            everything = [value for value, _ in written]
            assert seen_with_read_uncommitted(self.log(index)) == everything
            expected: list[bytes] = []
            for value, transaction in written:
                if transaction is not None and transaction.committed is None:
                    break
                if transaction is None or transaction.committed:
                    expected.append(value)
            seen = seen_with_read_committed(self.log(index))
            assert seen == (expected if settled else expected[: len(seen)])

    def teardown(self) -> None:
        self.clock.advance(10_000)
        self.consumers_read_the_committed_records()
        self.stop(closed=True)
        shutil.rmtree(self.folder)


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(max_examples=examples(25), stateful_step_count=30, derandomize=True)
