"""Compaction: which records stay, which are removed, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from odradek.log.cleanable import cleanable, filthiest
from odradek.log.cleaner import Cleaner
from odradek.log.control_batch import TransactionMarker
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.waiting.steps import result_of, run_steps
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import Record
from odradek.wire.record_batch import (
    RecordBatchHeader,
    TimestampType,
    build_batch,
    is_intact,
    record_batches,
    records,
)
from support.batches import NOW_MS

COMPACT = LogConfig(
    segment_bytes=1_000,
    index_interval_bytes=200,
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=10_000,
    min_cleanable_dirty_ratio=0.0,
)
OpenLog = Callable[..., PartitionLog]
Entry = tuple[int, bytes | None, bytes | None]


def put(
    log: PartitionLog, *pairs: tuple[str, str | None], codec: Codec = Codec.NONE, at_ms: int = NOW_MS
) -> int:
    """Append one batch of keys and values; return its first offset."""
    batch = build_batch(
        [Record(key.encode(), None if value is None else value.encode(), at_ms) for key, value in pairs],
        codec=codec,
    )
    return log.append(batch, at_ms).base_offset


def compact(log: PartitionLog, now_ms: int = NOW_MS, buffer_bytes: int = 1 << 20) -> None:
    run_steps(Cleaner(cleanable(log, now_ms), now_ms, buffer_bytes).steps())


def entries(log: PartitionLog) -> list[Entry]:
    """Offset, key and value of all data records."""
    found: list[Entry] = []
    for header, batch in batches(log):
        assert is_intact(batch, header)
        if not header.is_control:
            found += ((record.offset, record.key, record.value) for record in records(batch, header))
    return found


def batches(log: PartitionLog) -> Iterator[tuple[RecordBatchHeader, memoryview]]:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20)
        if not data:
            return
        for header, batch in record_batches(data):
            yield header, batch
            offset = header.next_offset


def test_the_last_value_of_each_key_stays_at_its_offset(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    put(log, ("a", "1"), ("b", "1"), ("a", "2"))
    put(log, ("c", "1"))
    put(log, ("b", "2"))
    log.roll(NOW_MS)
    put(log, ("a", "3"))

    compact(log)

    assert entries(log) == [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2"), (5, b"a", b"3")]
    assert (log.log_start_offset, log.log_end_offset) == (0, 6)


def test_the_active_segment_is_never_compacted(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    put(log, ("a", "1"))
    put(log, ("a", "2"))

    compact(log)

    assert [value for _, _, value in entries(log)] == [b"1", b"2"]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_keeps_its_offsets_codec_and_timestamps(open_log: OpenLog, codec: Codec) -> None:
    log = open_log(COMPACT)
    put(log, ("a", "old"), ("b", "x" * 50), ("a", "new"), ("d", "1"), codec=codec, at_ms=NOW_MS + 5)
    put(log, ("d", "2"))
    log.roll(NOW_MS)

    compact(log)

    header, batch = next(batches(log))
    assert (header.base_offset, header.last_offset, header.record_count, header.codec) == (0, 3, 2, codec)
    assert [(each.offset, each.timestamp_ms) for each in records(batch, header)] == [
        (1, NOW_MS + 5),
        (2, NOW_MS + 5),
    ]


def test_log_append_time_survives(open_log: OpenLog) -> None:
    log = open_log(replace(COMPACT, message_timestamp_type=TimestampType.LOG_APPEND_TIME))
    put(log, ("a", "1"), ("b", "1"), at_ms=NOW_MS)
    put(log, ("a", "2"), at_ms=NOW_MS + 9)
    log.roll(NOW_MS)

    compact(log)

    found = [record for header, batch in batches(log) for record in records(batch, header)]
    assert [(record.offset, record.timestamp_ms) for record in found] == [(1, NOW_MS), (2, NOW_MS + 9)]


def test_a_tombstone_stays_until_its_delete_horizon(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    put(log, ("a", "1"))
    put(log, ("a", None))
    put(log, ("b", "1"))
    log.roll(NOW_MS)

    compact(log, NOW_MS)
    first = entries(log)
    put(log, ("c", "1"))
    log.roll(NOW_MS)
    compact(log, NOW_MS + 9_999)
    second = entries(log)
    put(log, ("d", "1"))
    log.roll(NOW_MS)
    compact(log, NOW_MS + 10_000)

    assert first == [(1, b"a", None), (2, b"b", b"1")]
    assert second == [(1, b"a", None), (2, b"b", b"1"), (3, b"c", b"1")]
    assert entries(log) == [(2, b"b", b"1"), (3, b"c", b"1"), (4, b"d", b"1")]


def test_a_tombstone_keeps_the_timestamp_of_its_producer(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    put(log, ("a", None), at_ms=NOW_MS - 77)
    log.roll(NOW_MS)

    compact(log, NOW_MS)

    header, batch = next(batches(log))
    assert header.base_timestamp_ms == NOW_MS + 10_000
    assert [record.timestamp_ms for record in records(batch, header)] == [NOW_MS - 77]
    assert result_of(log.offset_for_time(NOW_MS - 100)) == (NOW_MS - 77, 0)


def test_the_last_batch_of_a_round_stays_without_records(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    put(log, ("a", None))
    log.roll(NOW_MS)
    compact(log, NOW_MS)
    log.roll(NOW_MS)
    log.append(build_batch([Record(b"a", b"1", NOW_MS)]), NOW_MS)
    log.roll(NOW_MS)
    put(log, ("z", "1"))
    log.roll(NOW_MS)
    put(log, ("z", "2"))

    compact(log, NOW_MS + 20_000)

    assert [(header.last_offset, header.record_count) for header, _ in batches(log)] == [
        (1, 1),
        (2, 1),
        (3, 1),
    ]


def test_the_last_batch_of_a_producer_stays_empty_for_its_sequence(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    batch = build_batch([Record(b"a", b"1", NOW_MS)], producer_id=7, producer_epoch=0, base_sequence=0)
    log.append(batch, NOW_MS)
    put(log, ("a", "2"))
    log.roll(NOW_MS)

    compact(log)

    header, _ = next(batches(log))
    assert (header.producer_id, header.record_count, header.last_sequence) == (7, 0, 0)
    log.close()
    again = open_log(COMPACT)
    assert again.append(batch, NOW_MS).duplicate
    assert [value for _, _, value in entries(again)] == [b"2"]


def test_small_segments_are_merged(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    for number in range(60):
        put(log, (f"k{number % 3}", f"{number}"))
    log.roll(NOW_MS)
    compact(log)
    put(log, ("k3", "60"))
    log.roll(NOW_MS)

    compact(log)

    assert [segment.base_offset for segment in log.segments] == [0, 61]
    assert [value for _, _, value in entries(log)] == [b"57", b"58", b"59", b"60"]
    assert not list(log.directory.glob("*.cleaned"))


def test_a_small_map_needs_several_rounds(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    for number in range(40):
        put(log, (f"k{number}", "old"))
    for number in range(40):
        put(log, (f"k{number}", "new"))
    log.roll(NOW_MS)
    rounds = 0

    while cleanable(log, NOW_MS).dirty_bytes:
        compact(log, buffer_bytes=200 * 25)
        rounds += 1

    assert rounds == 4
    assert [value for _, _, value in entries(log)] == [b"new"] * 40


def test_the_compacted_position_survives_a_restart(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    log.roll(NOW_MS)
    compact(log)
    log.close()

    again = open_log(COMPACT)

    assert again.first_dirty_offset == 2
    assert filthiest([cleanable(again, NOW_MS)]) is None
    assert entries(again) == [(1, b"a", b"2")]


def test_old_records_without_a_key_are_removed(open_log: OpenLog) -> None:
    log = open_log(replace(COMPACT, cleanup_policy=frozenset({"delete"})))
    log.append(build_batch([Record(None, b"x", NOW_MS), Record(b"a", b"1", NOW_MS)]), NOW_MS)
    log.roll(NOW_MS)
    log.config = COMPACT

    compact(log)

    assert entries(log) == [(1, b"a", b"1")]


def dirty_log(open_log: OpenLog, config: LogConfig) -> PartitionLog:
    log = open_log(config)
    put(log, ("a", "1" * 300), at_ms=NOW_MS)
    log.roll(NOW_MS)
    compact(log)
    put(log, ("b", "1" * 90), at_ms=NOW_MS + 50)
    log.roll(NOW_MS)
    return log


@pytest.mark.parametrize(("ratio", "due"), [(0.25, True), (0.35, False)])
def test_a_log_is_compacted_above_its_dirty_ratio(open_log: OpenLog, ratio: float, due: bool) -> None:
    log = dirty_log(open_log, replace(COMPACT, min_cleanable_dirty_ratio=ratio))

    found = filthiest([cleanable(log, NOW_MS + 50)])

    assert (found is not None) == due
    assert 0.25 < cleanable(log, NOW_MS).ratio < 0.35


@pytest.mark.parametrize(("later_ms", "due"), [(1_050, False), (1_051, True)])
def test_a_record_that_waits_too_long_makes_its_log_due(open_log: OpenLog, later_ms: int, due: bool) -> None:
    log = dirty_log(open_log, replace(COMPACT, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1_000))

    found = filthiest([cleanable(log, NOW_MS + later_ms)])

    assert (found is not None) == due


@pytest.mark.parametrize(("later_ms", "due"), [(1_049, False), (1_050, True)])
def test_a_record_younger_than_the_minimum_lag_waits(open_log: OpenLog, later_ms: int, due: bool) -> None:
    log = open_log(replace(COMPACT, min_compaction_lag_ms=1_000))
    put(log, ("a", "1"), at_ms=NOW_MS + 50)
    log.roll(NOW_MS)

    found = filthiest([cleanable(log, NOW_MS + later_ms)])

    assert (found is not None) == due


def test_a_segment_of_a_compacted_log_is_rolled_after_max_compaction_lag(open_log: OpenLog) -> None:
    log = open_log(replace(COMPACT, max_compaction_lag_ms=1_000))
    put(log, ("a", "1"), at_ms=NOW_MS)

    put(log, ("a", "2"), at_ms=NOW_MS + 1_001)

    assert len(log.segments) == 2


# Transactions


def transactional(log: PartitionLog, key: str, sequence: int, producer_id: int = 7) -> None:
    batch = build_batch(
        [Record(key.encode(), b"%d" % sequence, NOW_MS)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    log.append(batch, NOW_MS, join_transaction=lambda _: None)


def kinds(log: PartitionLog) -> list[tuple[int, bool, int]]:
    return [(header.base_offset, header.is_control, header.record_count) for header, _ in batches(log)]


def test_nothing_of_an_open_transaction_is_compacted(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    log.roll(NOW_MS)
    transactional(log, "a", 0)
    log.roll(NOW_MS)

    compact(log)

    assert [offset for offset, _, _ in entries(log)] == [1, 2]
    assert cleanable(log, NOW_MS).dirty_bytes == 0


def test_records_of_an_aborted_transaction_go_first_then_its_marker(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    put(log, ("a", "kept"))
    transactional(log, "a", 0)
    transactional(log, "b", 1)
    log.append_marker(TransactionMarker(7, 0, committed=False), NOW_MS)
    log.producers.producers.clear()
    put(log, ("z", "1"))
    log.roll(NOW_MS)

    seen = []
    for pass_number in range(4):
        compact(log, NOW_MS + pass_number * 20_000)
        seen.append((kinds(log), len(log.producers.aborted)))
        put(log, (f"z{pass_number}", "1"))
        log.roll(NOW_MS)

    assert entries(log)[0] == (0, b"a", b"kept")
    assert seen[0] == ([(0, False, 1), (3, True, 1), (4, False, 1)], 1)
    assert seen[1] == ([(0, False, 1), (3, True, 1), (4, False, 1), (5, False, 1)], 0)
    assert [offset for offset, _, _ in seen[2][0]] == [0, 4, 5, 6]


def test_a_committed_transaction_is_compacted_like_other_records(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    transactional(log, "a", 0)
    transactional(log, "a", 1)
    log.append_marker(TransactionMarker(7, 0, committed=True), NOW_MS)
    put(log, ("z", "1"))
    log.roll(NOW_MS)

    compact(log)

    assert entries(log) == [(1, b"a", b"1"), (3, b"z", b"1")]
    assert kinds(log) == [(1, False, 1), (2, True, 1), (3, False, 1)]


# Interference


def test_deleting_the_log_ends_the_round(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    for number in range(30):
        put(log, ("a", f"{number}"))
    steps = Cleaner(cleanable(log, NOW_MS), NOW_MS).steps()
    for _ in range(5):
        next(steps)

    log.deleted()

    assert run_steps(steps) >= 0
    assert not list(log.directory.glob("*.cleaned"))


def test_deleting_records_ends_the_round(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    for number in range(60):
        put(log, ("a", f"{number}"))
    steps = Cleaner(cleanable(log, NOW_MS), NOW_MS).steps()
    for _ in range(70):
        next(steps)

    log.delete_records(50)
    run_steps(steps)

    assert [offset for offset, _, _ in entries(log)][-10:] == list(range(50, 60))
    assert log.log_start_offset == 50
    compact(log)
    assert entries(log)[-1] == (59, b"a", b"59")


def test_appends_continue_during_a_round(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    for number in range(60):
        put(log, ("a", f"{number}"))
    for number, _ in enumerate(Cleaner(cleanable(log, NOW_MS), NOW_MS).steps()):
        put(log, ("b", f"{number}"))

    compact(log)

    values = {key: value for _, key, value in entries(log)}
    assert values == {b"a": b"59", b"b": b"%d" % number}


def test_an_abandoned_round_leaves_nothing_behind(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    for number in range(60):
        put(log, ("a", f"{number}"))
    before = entries(log)
    steps = Cleaner(cleanable(log, NOW_MS), NOW_MS).steps()
    for _ in range(100):
        next(steps)

    steps.close()

    assert entries(log) == before
    assert not list(log.directory.glob("*.cleaned"))


def test_a_damaged_batch_ends_the_round_and_is_reported(open_log: OpenLog) -> None:
    log = open_log(COMPACT)
    put(log, ("a", "1"), ("b", "2"))
    log.roll(NOW_MS)
    with log.segments[0].path.open("r+b") as file:
        file.seek(61)
        file.write(b"\xff\xff\xff\xff\xff\xff\xff")

    with pytest.raises(ApiError) as refusal:
        compact(log)

    assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE
    assert len(log.segments) == 2
