"""One partition: appending, reading, producers, listeners, segments, flushing and deleting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.log.segment_file import OpenFiles
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.record_batch import (
    TimestampType,
    is_intact,
    parse_header,
    record_batches,
)
from support.batches import NOW_MS, SMALL, batch_of, fill, values_from

OpenLog = Callable[..., PartitionLog]


def test_an_empty_log_starts_and_ends_at_0(log: PartitionLog) -> None:
    offset = 0

    data = log.read(offset, 1_000)

    assert data == b""
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark, log.size_bytes) == (0, 0, 0, 0)


def test_offsets_are_consecutive(log: PartitionLog) -> None:
    log.append(batch_of(b"a", b"b"), NOW_MS)

    info = log.append(batch_of(b"c", b"d", b"e"), NOW_MS)

    assert (info.base_offset, info.last_offset, info.log_start_offset, info.duplicate) == (2, 4, 0, False)
    assert info.log_append_time_ms == -1
    assert log.high_watermark == log.log_end_offset == 5


def test_a_batch_is_stored_as_sent_except_offset_and_epoch(log: PartitionLog) -> None:
    sent = batch_of(b"a", b"b", codec=Codec.LZ4)
    log.append(batch_of(b"first"), NOW_MS)
    log.append(sent, NOW_MS)

    stored = log.read(1, 10_000)

    header = parse_header(stored)
    assert stored[16:] == sent[16:]
    assert (header.base_offset, header.partition_leader_epoch) == (1, 0)
    assert is_intact(stored, header)


def test_a_torn_second_batch_is_not_stored(log: PartitionLog) -> None:
    sent = batch_of(b"a") + batch_of(b"b")[:-1]

    log.append(sent, NOW_MS)

    assert log.size_bytes == len(batch_of(b"a"))


def test_reading_starts_with_the_batch_that_contains_the_offset(log: PartitionLog) -> None:
    log.append(batch_of(b"a", b"b", b"c"), NOW_MS)
    log.append(batch_of(b"d"), NOW_MS)

    data = log.read(2, 10_000)

    assert [header.base_offset for header, _ in record_batches(data)] == [0, 3]


def test_reading_returns_whole_batches_only(log: PartitionLog) -> None:
    fill(log, 10)
    batch_bytes = log.size_bytes // 10

    data = log.read(3, 3 * batch_bytes - 1)

    assert len(data) == 2 * batch_bytes
    assert [header.base_offset for header, _ in record_batches(data)] == [3, 4]


def test_the_first_batch_is_read_even_if_it_is_larger_than_the_limit(log: PartitionLog) -> None:
    fill(log, 2)

    data = log.read(1, 10)

    assert [header.base_offset for header, _ in record_batches(data)] == [1]


def test_without_the_minimum_nothing_larger_than_the_limit_is_read(log: PartitionLog) -> None:
    fill(log, 2)

    data = log.read(1, 10, min_one_message=False), log.read(0, 0, min_one_message=False)

    assert data == (b"", b"")


@pytest.mark.parametrize("offset", [-1, 11, 1 << 60])
def test_an_offset_outside_the_log_is_out_of_range(log: PartitionLog, offset: int) -> None:
    fill(log, 10)

    with pytest.raises(ApiError) as refusal:
        log.read(offset, 100)

    assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_refused_batch_leaves_the_log_unchanged(log: PartitionLog) -> None:
    fill(log, 1)
    before = (log.log_end_offset, log.size_bytes)

    with pytest.raises(ApiError) as refusal:
        log.append(batch_of(b"x")[:-1] + b"\xff", NOW_MS)

    assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE
    assert (log.log_end_offset, log.size_bytes) == before


def test_topic_limits_apply_to_appends(open_log: OpenLog) -> None:
    log = open_log(LogConfig(max_message_bytes=200))
    log.config = replace(log.config, max_message_bytes=100)

    with pytest.raises(ApiError) as refusal:
        log.append(batch_of(b"x" * 100), NOW_MS)

    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_zstd_is_refused_from_an_old_produce_version(log: PartitionLog) -> None:
    batch = batch_of(b"x", codec=Codec.ZSTD)

    with pytest.raises(ApiError) as refusal:
        log.append(batch, NOW_MS, api_version=6)

    assert refusal.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_log_append_time_is_returned_and_stored(open_log: OpenLog) -> None:
    log = open_log(LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME))

    info = log.append(batch_of(b"a", timestamp_ms=5), NOW_MS)

    stored = log.read(0, 1_000)
    header = parse_header(stored)
    assert info.log_append_time_ms == header.max_timestamp_ms == NOW_MS
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert is_intact(stored, header)


# Producers


def test_a_repeated_batch_gets_its_first_offset(log: PartitionLog) -> None:
    log.append(batch_of(b"a", b"b", producer=(7, 0, 0)), NOW_MS)
    log.append(batch_of(b"c", producer=(7, 0, 2)), NOW_MS)

    info = log.append(batch_of(b"a", b"b", producer=(7, 0, 0)), NOW_MS)

    assert (info.base_offset, info.last_offset, info.duplicate) == (0, 1, True)
    assert values_from(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_a_gap_in_the_sequence_is_refused(log: PartitionLog) -> None:
    log.append(batch_of(b"a", producer=(7, 0, 0)), NOW_MS)

    with pytest.raises(ApiError) as refusal:
        log.append(batch_of(b"c", producer=(7, 0, 2)), NOW_MS)

    assert refusal.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_listeners_do_not_hear_of_a_duplicate(log: PartitionLog) -> None:
    log.append(batch_of(b"a", producer=(7, 0, 0)), NOW_MS)
    heard: list[int] = []
    log.listeners.add(heard.append)

    log.append(batch_of(b"a", producer=(7, 0, 0)), NOW_MS)

    assert heard == []


@pytest.mark.parametrize("clean", [True, False])
def test_producers_survive_a_restart(open_log: OpenLog, clean: bool) -> None:
    log = open_log(SMALL)
    for sequence in range(60):
        log.append(batch_of(b"%d" % sequence, producer=(7, 0, sequence)), NOW_MS)
    if clean:
        log.close()
    else:
        log.release()

    again = open_log(SMALL)

    assert again.append(batch_of(b"55", producer=(7, 0, 55)), NOW_MS).base_offset == 55
    assert again.append(batch_of(b"60", producer=(7, 0, 60)), NOW_MS).base_offset == 60
    assert again.append(batch_of(b"59", producer=(7, 0, 59)), NOW_MS).duplicate


# Listeners


def test_listeners_hear_the_bytes_of_each_append(log: PartitionLog) -> None:
    heard: list[int] = []
    log.listeners.add(heard.append)

    log.append(batch_of(b"a"), NOW_MS)

    assert heard == [log.size_bytes]


def test_a_listener_can_remove_itself(log: PartitionLog) -> None:
    heard: list[int] = []

    def once(appended_bytes: int) -> None:
        heard.append(appended_bytes)
        log.listeners.discard(once)

    log.listeners.add(once)

    fill(log, 2)

    assert len(heard) == 1


# Segments


def test_a_full_segment_is_rolled(open_log: OpenLog, folder: Path) -> None:
    log = open_log(SMALL)

    fill(log, 100)

    assert len(log.segments) > 3
    assert all(segment.size_bytes <= SMALL.segment_bytes for segment in log.segments)
    assert sorted(path.name for path in folder.glob("*.log")) == [
        f"{segment.base_offset:020d}.log" for segment in log.segments
    ]
    assert values_from(log) == [(number, b"%d" % number) for number in range(100)]


@pytest.mark.parametrize(
    ("first_ms", "second_ms", "appended_ms", "segments"),
    [
        (NOW_MS, NOW_MS + 1_000, NOW_MS, 1),
        (NOW_MS, NOW_MS + 1_001, NOW_MS, 2),
        (NOW_MS, NOW_MS, NOW_MS + 5_000, 1),
        (-1, -1, NOW_MS + 1_000, 1),
        (-1, -1, NOW_MS + 1_001, 2),
    ],
    ids=[
        "young",
        "old by timestamps",
        "timestamps win over the clock",
        "young by the clock",
        "old by the clock",
    ],
)
def test_an_old_segment_is_rolled(
    open_log: OpenLog, first_ms: int, second_ms: int, appended_ms: int, segments: int
) -> None:
    log = open_log(LogConfig(segment_ms=1_000))
    log.append(batch_of(b"a", timestamp_ms=first_ms), NOW_MS)

    log.append(batch_of(b"b", timestamp_ms=second_ms), appended_ms)

    assert len(log.segments) == segments


def test_a_segment_with_a_full_index_is_rolled(open_log: OpenLog) -> None:
    log = open_log(LogConfig(index_interval_bytes=1, segment_index_bytes=8 * 5))

    fill(log, 40)

    assert len(log.segments) > 4
    assert len(values_from(log)) == 40


def test_reading_continues_in_the_next_segment(open_log: OpenLog) -> None:
    log = open_log(SMALL)
    fill(log, 60)
    second = log.segments[1]

    data = log.read(second.base_offset - 1, 100_000)

    assert [header.base_offset for header, _ in record_batches(data)] == [second.base_offset - 1]
    assert parse_header(log.read(second.base_offset, 100)).base_offset == second.base_offset


def test_few_descriptors_are_enough(folder: Path) -> None:
    files = OpenFiles(2)
    log = PartitionLog(folder, SMALL, NOW_MS, files)
    fill(log, 100)

    values = values_from(log)

    assert len(values) == 100
    assert 0 < len(files) <= 2 < len(log.segments)


def test_index_files_have_kafkas_format(open_log: OpenLog, folder: Path) -> None:
    log = open_log(SMALL)

    fill(log, 60)

    stem = folder / f"{0:020d}"
    index, times = stem.with_suffix(".index").read_bytes(), stem.with_suffix(".timeindex").read_bytes()
    offset, position = int.from_bytes(index[:4], "big"), int.from_bytes(index[4:8], "big")
    header = parse_header(stem.with_suffix(".log").read_bytes(), position)
    assert header.last_offset == offset
    assert int.from_bytes(times[-12:-4], "big") == NOW_MS + int.from_bytes(times[-4:], "big")
    assert int.from_bytes(times[-4:], "big") == log.segments[1].base_offset - 1


# Flushing and deleting


def test_flushing_covers_rolled_segments(open_log: OpenLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(SMALL)
    fill(log, 60)
    flushed: list[int] = []
    monkeypatch.setattr("os.fsync", flushed.append)

    log.flush()
    first = len(flushed)
    log.flush()

    assert first == len(log.segments) + 2  # the log's folder and its parent, for the new names
    assert len(flushed) == first + 1


def test_a_deleted_log_refuses_requests_and_answers_its_waiters(log: PartitionLog) -> None:
    fill(log, 1)
    heard: list[int] = []
    log.listeners.add(heard.append)

    log.deleted()

    assert heard == [0]
    with pytest.raises(ApiError) as refusal:
        log.read(0, 100)
    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
