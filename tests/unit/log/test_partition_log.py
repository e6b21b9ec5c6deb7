"""One partition: appending, reading, rolling, timestamps, failing disks."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from crc32c import crc32c

from odradek.log.log_config import LogConfig
from odradek.log.offset_lookup import MAX_OPENED
from odradek.log.open_files import OpenFiles
from odradek.log.partition_log import PartitionLog
from odradek.log.segment import Located, Segment
from odradek.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import Record
from odradek.wire.record_batch import (
    HEADER_BYTES,
    TimestampType,
    build_batch,
    is_intact,
    parse_header,
    record_batches,
    restamped,
)
from support.batches import NOW_MS, batch_of, values_from

SMALL = LogConfig(segment_bytes=2_000, index_interval_bytes=300)
OpenLog = Callable[..., PartitionLog]


def fill(log: PartitionLog, count: int) -> None:
    for number in range(count):
        log.append(batch_of(b"%d" % number, timestamp_ms=NOW_MS + number), NOW_MS + number)


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


# Timestamps


def test_a_timestamp_lookup_finds_the_exact_record(open_log: OpenLog) -> None:
    log = open_log(SMALL)
    for number in range(0, 90, 3):
        records = [Record(None, b"x", NOW_MS + 10 * (number + index)) for index in range(3)]
        log.append(build_batch(records, codec=Codec.GZIP), NOW_MS)

    found = [result_of(log.offset_for_time(NOW_MS + 10 * number - 5)) for number in range(90)]

    assert len(log.segments) > 1
    assert found == [(NOW_MS + 10 * number, number) for number in range(90)]
    assert result_of(log.offset_for_time(NOW_MS + 891)) is None


def test_the_greatest_timestamp_is_found_in_any_segment(open_log: OpenLog) -> None:
    log = open_log(SMALL)
    fill(log, 20)
    records = [Record(None, b"x", NOW_MS), Record(None, b"peak", NOW_MS + 60_000), Record(None, b"x", NOW_MS)]
    log.append(build_batch(records), NOW_MS)
    fill(log, 40)

    found = result_of(log.max_timestamp_offset())

    assert len(log.segments) > 2
    assert found == (NOW_MS + 60_000, 21)


def test_an_empty_log_has_no_timestamps(log: PartitionLog) -> None:
    timestamp_ms = 0

    found = result_of(log.offset_for_time(timestamp_ms))

    assert found is None
    assert result_of(log.max_timestamp_offset()) is None


def test_with_log_append_time_a_lookup_returns_the_batch(open_log: OpenLog) -> None:
    log = open_log(LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME))
    log.append(batch_of(b"a", b"b"), NOW_MS)
    log.append(batch_of(b"c", b"d"), NOW_MS + 10)

    found = result_of(log.offset_for_time(NOW_MS + 1))

    assert found == (NOW_MS + 10, 2)


def test_a_timestamp_lookup_decompresses_few_batches_with_a_wrong_max_timestamp(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5 * MAX_OPENED):
        batch = batch_of(b"x", timestamp_ms=NOW_MS)
        promising = restamped(
            batch, parse_header(batch), 0, -1, TimestampType.CREATE_TIME, max_timestamp_ms=NOW_MS + 1_000
        )
        log.append(promising + batch[HEADER_BYTES:], NOW_MS, trusted_records=True)
    opened: list[int] = []
    read_batch = Segment.read_batch

    def noting(segment: Segment, found: Located) -> bytes:
        opened.append(found[1].base_offset)
        return read_batch(segment, found)

    monkeypatch.setattr(Segment, "read_batch", noting)

    found = result_of(log.offset_for_time(NOW_MS + 500))

    assert opened == list(range(MAX_OPENED))
    assert found == (NOW_MS + 1_000, MAX_OPENED)


def test_a_batch_that_cannot_be_decompressed_is_found_by_its_header(log: PartitionLog) -> None:
    junk = bytearray(batch_of(b"x" * 50))
    junk[61:] = b"\xff" * (len(junk) - 61)
    junk[17:21] = crc32c(bytes(junk[21:])).to_bytes(4, "big")
    log.append(bytes(junk), NOW_MS, trusted_records=True)

    found = result_of(log.offset_for_time(NOW_MS))

    assert found == (NOW_MS, 0)


# Failing disks


class Disk:
    """A disk with this many free bytes; replaces ``os.pwritev`` and ``os.pwrite``."""

    def __init__(self, left_bytes: int) -> None:
        self.left_bytes = left_bytes

    def take(self, data: bytes) -> bytes:
        if not self.left_bytes:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = data[: self.left_bytes]
        self.left_bytes -= len(taken)
        return taken

    def pwritev(self, descriptor: int, parts: Sequence[bytes], position: int) -> int:
        return PWRITE(descriptor, self.take(b"".join(parts)), position)

    def pwrite(self, descriptor: int, data: bytes, position: int) -> int:
        return PWRITE(descriptor, self.take(bytes(data)), position)


PWRITE = os.pwrite


@pytest.mark.parametrize("left_bytes", [0, 1, 30])
def test_a_full_disk_loses_no_acknowledged_record(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch, left_bytes: int
) -> None:
    log = open_log()
    fill(log, 3)
    disk = Disk(left_bytes)
    with monkeypatch.context() as patch:
        patch.setattr("os.pwritev", disk.pwritev)
        patch.setattr("os.pwrite", disk.pwrite)

        with pytest.raises(ApiError) as refusal:
            log.append(batch_of(b"lost", producer=(7, 0, 0)), NOW_MS)

    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.segments[-1].path.stat().st_size == log.size_bytes
    log.append(batch_of(b"3", producer=(7, 0, 0)), NOW_MS)
    log.release()
    assert values_from(open_log()) == [(number, b"%d" % number) for number in range(4)]


def test_a_short_write_is_completed(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def halting(descriptor: int, parts: Sequence[bytes], position: int) -> int:
        return PWRITE(descriptor, b"".join(parts)[:20], position)

    with monkeypatch.context() as patch:
        patch.setattr("os.pwritev", halting)

        log.append(batch_of(b"a"), NOW_MS)

    assert values_from(log) == [(0, b"a")]


def test_an_append_fails_if_its_segment_cannot_be_created(open_log: OpenLog, folder: Path) -> None:
    log = open_log(LogConfig(segment_bytes=100))
    log.append(batch_of(b"a"), NOW_MS)
    blocker = folder / f"{1:020d}.log"
    blocker.mkdir()

    with pytest.raises(ApiError) as refusal:
        log.append(batch_of(b"b"), NOW_MS)

    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert values_from(log) == [(0, b"a")]
    blocker.rmdir()
    assert log.append(batch_of(b"b"), NOW_MS).base_offset == 1


def test_an_index_that_cannot_be_saved_is_rebuilt(open_log: OpenLog, folder: Path) -> None:
    log = open_log(SMALL)
    blocker = folder / f"{0:020d}.timeindex.tmp"
    blocker.mkdir()
    (blocker / "x").touch()

    fill(log, 60)

    assert len(log.segments) > 1
    assert result_of(log.offset_for_time(NOW_MS + 3)) == (NOW_MS + 3, 3)


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
