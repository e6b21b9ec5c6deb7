"""Group commit: which records are gathered, when they are written, and who gets an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.delivery.spool_writer import BATCH_BYTES, SpoolWriter, built
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import encoded_varint
from odradek.wire.record_batch import parse_header, records
from support.examples import examples

LINGER_MS = 20


@dataclass
class Waiter:
    """Waits to be told whether its record is kept."""

    heard: list[bool] = field(default_factory=list)

    def told(self, kept: bool) -> None:
        self.heard.append(kept)


@dataclass
class Log:
    """Partitions in memory, which may be full; the test runs offloaded work."""

    batches: list[tuple[int, bytes]] = field(default_factory=list)
    full: bool = False
    work: list[tuple[Callable[[], Any], Callable[[Any], None]]] = field(default_factory=list)
    flushes: list[Callable[[ApiError | None], None]] = field(default_factory=list)

    def write(self, partition: int, batch: bytes) -> None:
        if self.full:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "cannot append: No space left on device")
        self.batches.append((partition, batch))

    def offload(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.work.append((work, done))

    def run_work(self) -> None:
        work, done = self.work.pop(0)
        done(work())

    def when_flushed(self, partition: int, callback: Callable[[ApiError | None], None]) -> None:
        self.flushes.append(callback)

    def values(self, partition: int) -> list[bytes | None]:
        return [
            record.value for index, batch in self.batches if index == partition for record in records(batch)
        ]


def parts_of(value: bytes) -> tuple[bytes, ...]:
    return encoded_varint(1) + b"k", encoded_varint(len(value)), value, b"\x00"


@dataclass
class Spool:
    clock: MockClock = field(default_factory=MockClock)
    log: Log = field(default_factory=Log)
    writer: SpoolWriter = field(init=False)

    def __post_init__(self) -> None:
        self.writer = self.made()

    def made(self, **changes: Any) -> SpoolWriter:
        given = {"linger_ms": LINGER_MS, "max_bytes": 10_000_000} | changes
        return SpoolWriter(
            clock=self.clock,
            timer=self.clock.timer,
            write=self.log.write,
            offload=self.log.offload,
            **given,
        )

    def push(self, value: bytes, partition: int = 0) -> Waiter:
        waiter = Waiter()
        self.append(partition, value, waiter)
        return waiter

    def append(self, partition: int, value: bytes, waiter: Waiter) -> None:
        kept = self.writer.append(partition, self.clock.now_ms(), parts_of(value))
        assert isinstance(kept, Deferred)
        kept.when_done(waiter.told)


@pytest.fixture
def spool() -> Spool:
    return Spool()


def test_records_within_the_linger_are_one_batch(spool: Spool) -> None:
    first = spool.push(b"one")
    spool.clock.advance(LINGER_MS - 1)
    second = spool.push(b"two")

    spool.clock.advance(1)

    assert len(spool.log.batches) == 1
    assert parse_header(spool.log.batches[0][1]).codec == Codec.ZSTD
    assert spool.log.values(0) == [b"one", b"two"]
    assert (first.heard, second.heard) == ([True], [True])


def test_no_push_is_answered_before_the_batch_is_written(spool: Spool) -> None:
    waiter = spool.push(b"one")

    spool.clock.advance(LINGER_MS - 1)

    assert waiter.heard == []
    assert spool.log.batches == []


def test_each_partition_has_its_own_batch(spool: Spool) -> None:
    spool.push(b"a", 0)
    spool.push(b"b", 2)
    spool.push(b"c", 0)

    spool.clock.advance(LINGER_MS)

    assert [partition for partition, _ in spool.log.batches] == [0, 2]
    assert spool.log.values(0) == [b"a", b"c"]


def test_a_push_made_while_another_is_answered_waits_for_the_next_batch(spool: Spool) -> None:
    @dataclass
    class Pipelining(Waiter):
        def told(self, kept: bool) -> None:
            super().told(kept)
            later.append(spool.push(b"next", partition=1))

    later: list[Waiter] = []
    first, second = Pipelining(), Waiter()
    for partition, waiter in ((0, first), (2, second)):
        spool.append(partition, b"a", waiter)

    spool.clock.advance(2 * LINGER_MS)

    assert [waiter.heard for waiter in (first, second, *later)] == [[True]] * 3


def test_a_full_batch_does_not_wait(spool: Spool) -> None:
    spool.push(b"small")
    spool.push(b"x" * BATCH_BYTES)

    spool.clock.advance(0)

    assert spool.log.values(0) == [b"small"]
    assert len(spool.log.work) == 1


def test_without_linger_the_batch_is_written_after_the_loop_turn(spool: Spool) -> None:
    spool.writer = spool.made(linger_ms=0)
    first, second = spool.push(b"one"), spool.push(b"two")

    spool.clock.advance(0)

    assert len(spool.log.batches) == 1
    assert first.heard == second.heard == [True]


def test_timestamps_and_offsets_are_those_of_the_records(spool: Spool) -> None:
    start_ms = spool.clock.now_ms()
    spool.push(b"one")
    spool.clock.advance(7)
    spool.push(b"two")

    spool.clock.advance(LINGER_MS)

    found = list(records(spool.log.batches[0][1]))
    assert [(record.offset, record.timestamp_ms) for record in found] == [(0, start_ms), (1, start_ms + 7)]


def test_a_large_record_is_compressed_elsewhere_and_keeps_its_place(spool: Spool) -> None:
    before = spool.push(b"before")
    large = spool.push(b"x" * (BATCH_BYTES + 1))
    after = spool.push(b"after")
    spool.clock.advance(LINGER_MS)
    assert (before.heard, large.heard, after.heard) == ([True], [], [])

    spool.log.run_work()

    assert [len(value or b"") for value in spool.log.values(0)] == [6, BATCH_BYTES + 1, 5]
    assert large.heard == after.heard == [True]


def test_a_failing_compressor_refuses_only_its_record(spool: Spool) -> None:
    large, after = spool.push(b"x" * (BATCH_BYTES + 1)), spool.push(b"after")
    spool.clock.advance(LINGER_MS)

    spool.log.work.pop()[1](MemoryError())

    assert (large.heard, after.heard) == ([False], [True])
    assert spool.writer.refused == {"MemoryError": 1}


def test_a_full_disk_refuses_until_there_is_room(spool: Spool) -> None:
    spool.log.full = True
    refused = spool.push(b"lost")
    spool.clock.advance(LINGER_MS)
    spool.log.full = False
    kept = spool.push(b"kept")

    spool.clock.advance(LINGER_MS)

    assert (refused.heard, kept.heard) == ([False], [True])
    assert spool.writer.refused == {"KAFKA_STORAGE_ERROR": 1}
    assert spool.log.values(0) == [b"kept"]


def test_waiting_bytes_are_bounded_until_they_are_written(spool: Spool) -> None:
    spool.writer = spool.made(max_bytes=100)
    spool.push(b"x" * 80)

    kept = spool.writer.append(0, 0, parts_of(b"y" * 80))

    spool.clock.advance(LINGER_MS)
    spool.push(b"z" * 80)
    assert kept is False
    assert spool.writer.refused == {"telemetry.buffer.max.bytes": 1}


def test_with_fsync_the_answer_waits_for_the_disk(spool: Spool) -> None:
    spool.writer = spool.made(when_flushed=spool.log.when_flushed)
    waiter = spool.push(b"one")
    spool.clock.advance(LINGER_MS)
    assert waiter.heard == []

    spool.log.flushes.pop()(None)

    assert waiter.heard == [True]


def test_a_failed_fsync_refuses(spool: Spool) -> None:
    spool.writer = spool.made(when_flushed=spool.log.when_flushed)
    waiter = spool.push(b"one")
    spool.clock.advance(LINGER_MS)

    spool.log.flushes.pop()(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "input/output error"))

    assert waiter.heard == [False]
    assert spool.writer.held_bytes == 0


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=300), st.integers(0, 30)), max_size=60))
def test_nothing_is_lost_or_reordered(pushes: list[tuple[int, bytes, int]]) -> None:
    spool = Spool()
    waiters = []
    for partition, value, pause_ms in pushes:
        waiters.append(spool.push(value, partition))
        spool.clock.advance(pause_ms)

    spool.clock.advance(LINGER_MS)

    for partition in range(3):
        assert spool.log.values(partition) == [value for index, value, _ in pushes if index == partition]
    assert all(waiter.heard == [True] for waiter in waiters)
    assert spool.writer.held_bytes == 0


def test_a_batch_equals_that_of_the_general_builder() -> None:
    from odradek.wire.record import Record
    from odradek.wire.record_batch import build_batch

    spool = Spool()
    spool.push(b"one")
    spool.clock.advance(3)
    spool.push(b"two" * 50)
    entries = list(spool.writer.buffers[0].entries)

    ours = built(entries, Codec.NONE)

    start_ms = entries[0].timestamp_ms
    assert ours == build_batch(
        [Record(b"k", b"one", start_ms), Record(b"k", b"two" * 50, start_ms + 3)], codec=Codec.NONE
    )
