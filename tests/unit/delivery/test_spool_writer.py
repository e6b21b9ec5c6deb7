"""Group commit: what is gathered, when it is written, and who is told what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.delivery.spool_writer import BATCH_BYTES, SpoolWriter, built
from odradek.testing.clock import MockClock
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import encoded_varint
from odradek.wire.record_batch import parse_header, records

LINGER_MS = 20


@dataclass
class Waiter:
    heard: list[bool] = field(default_factory=list)

    def settle(self, kept: bool) -> None:
        self.heard.append(kept)


@dataclass
class Log:
    """Partitions in memory, which may be full, and work that is done when the test says so."""

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
class World:
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
        assert self.writer.append(partition, self.clock.now_ms(), parts_of(value), waiter)
        return waiter


@pytest.fixture
def world() -> World:
    return World()


def test_records_that_come_within_the_linger_are_one_batch(world: World) -> None:
    first = world.push(b"one")
    world.clock.advance(LINGER_MS - 1)
    second = world.push(b"two")

    world.clock.advance(1)

    assert len(world.log.batches) == 1
    assert parse_header(world.log.batches[0][1]).codec == Codec.ZSTD
    assert world.log.values(0) == [b"one", b"two"]
    assert (first.heard, second.heard) == ([True], [True])


def test_nobody_is_told_before_the_batch_is_written(world: World) -> None:
    waiter = world.push(b"one")

    world.clock.advance(LINGER_MS - 1)

    assert waiter.heard == []
    assert world.log.batches == []


def test_each_partition_has_its_own_batch(world: World) -> None:
    world.push(b"a", 0)
    world.push(b"b", 2)
    world.push(b"c", 0)

    world.clock.advance(LINGER_MS)

    assert [partition for partition, _ in world.log.batches] == [0, 2]
    assert world.log.values(0) == [b"a", b"c"]


def test_a_push_that_comes_with_the_answer_to_another_waits_for_the_next_batch(world: World) -> None:
    @dataclass
    class Pipelining(Waiter):
        def settle(self, kept: bool) -> None:
            super().settle(kept)
            later.append(world.push(b"next", partition=1))

    later: list[Waiter] = []
    first, second = Pipelining(), Waiter()
    for partition, waiter in ((0, first), (2, second)):
        world.writer.append(partition, world.clock.now_ms(), parts_of(b"a"), waiter)

    world.clock.advance(2 * LINGER_MS)

    assert [waiter.heard for waiter in (first, second, *later)] == [[True]] * 3


def test_a_full_batch_does_not_wait(world: World) -> None:
    world.push(b"small")
    world.push(b"x" * BATCH_BYTES)

    world.clock.advance(0)

    assert world.log.values(0) == [b"small"]
    assert len(world.log.work) == 1


def test_without_linger_the_batch_is_written_after_the_turn(world: World) -> None:
    world.writer = world.made(linger_ms=0)
    first, second = world.push(b"one"), world.push(b"two")

    world.clock.advance(0)

    assert len(world.log.batches) == 1
    assert first.heard == second.heard == [True]


def test_timestamps_and_offsets_are_those_of_the_records(world: World) -> None:
    start_ms = world.clock.now_ms()
    world.push(b"one")
    world.clock.advance(7)
    world.push(b"two")

    world.clock.advance(LINGER_MS)

    found = list(records(world.log.batches[0][1]))
    assert [(record.offset, record.timestamp_ms) for record in found] == [(0, start_ms), (1, start_ms + 7)]


def test_a_large_record_is_compressed_elsewhere_and_keeps_its_place(world: World) -> None:
    before = world.push(b"before")
    large = world.push(b"x" * (BATCH_BYTES + 1))
    after = world.push(b"after")
    world.clock.advance(LINGER_MS)
    assert (before.heard, large.heard, after.heard) == ([True], [], [])

    world.log.run_work()

    assert [len(value or b"") for value in world.log.values(0)] == [6, BATCH_BYTES + 1, 5]
    assert large.heard == after.heard == [True]


def test_a_compressor_that_fails_refuses_its_record_alone(world: World) -> None:
    large, after = world.push(b"x" * (BATCH_BYTES + 1)), world.push(b"after")
    world.clock.advance(LINGER_MS)

    world.log.work.pop()[1](MemoryError())

    assert (large.heard, after.heard) == ([False], [True])
    assert world.writer.refused == {"MemoryError": 1}


def test_a_full_disk_refuses_until_there_is_room(world: World) -> None:
    world.log.full = True
    refused = world.push(b"lost")
    world.clock.advance(LINGER_MS)
    world.log.full = False
    kept = world.push(b"kept")

    world.clock.advance(LINGER_MS)

    assert (refused.heard, kept.heard) == ([False], [True])
    assert world.writer.refused == {"KAFKA_STORAGE_ERROR": 1}
    assert world.log.values(0) == [b"kept"]


def test_what_waits_is_bounded_and_the_bound_is_lifted(world: World) -> None:
    world.writer = world.made(max_bytes=100)
    world.push(b"x" * 80)
    refused = Waiter()

    assert not world.writer.append(0, 0, parts_of(b"y" * 80), refused)

    world.clock.advance(LINGER_MS)
    world.push(b"z" * 80)
    assert refused.heard == []
    assert world.writer.refused == {"telemetry.buffer.max.bytes": 1}


def test_with_fsync_the_disk_decides(world: World) -> None:
    world.writer = world.made(when_flushed=world.log.when_flushed)
    waiter = world.push(b"one")
    world.clock.advance(LINGER_MS)
    assert waiter.heard == []

    world.log.flushes.pop()(None)

    assert waiter.heard == [True]


def test_a_failed_fsync_refuses(world: World) -> None:
    world.writer = world.made(when_flushed=world.log.when_flushed)
    waiter = world.push(b"one")
    world.clock.advance(LINGER_MS)

    world.log.flushes.pop()(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "input/output error"))

    assert waiter.heard == [False]
    assert world.writer.held_bytes == 0


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=300), st.integers(0, 30)), max_size=60))
def test_nothing_is_lost_or_reordered(pushes: list[tuple[int, bytes, int]]) -> None:
    world = World()
    waiters = []
    for partition, value, pause_ms in pushes:
        waiters.append(world.push(value, partition))
        world.clock.advance(pause_ms)

    world.clock.advance(LINGER_MS)

    for partition in range(3):
        assert world.log.values(partition) == [value for index, value, _ in pushes if index == partition]
    assert all(waiter.heard == [True] for waiter in waiters)
    assert world.writer.held_bytes == 0


def test_a_batch_is_what_the_general_builder_makes() -> None:
    from odradek.wire.record import Record
    from odradek.wire.record_batch import build_batch

    world = World()
    world.push(b"one")
    world.clock.advance(3)
    world.push(b"two" * 50)
    entries = list(world.writer.buffers[0].entries)

    ours = built(entries, Codec.NONE)

    start_ms = entries[0].timestamp_ms
    assert ours == build_batch(
        [Record(b"k", b"one", start_ms), Record(b"k", b"two" * 50, start_ms + 3)], codec=Codec.NONE
    )
