"""One partition: the record of a timestamp."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from crc32c import crc32c

from odradek.log.log_config import LogConfig
from odradek.log.offset_lookup import MAX_OPENED
from odradek.log.partition_log import PartitionLog
from odradek.log.segment import Located, Segment
from odradek.waiting.steps import result_of
from odradek.wire.compression import Codec
from odradek.wire.record import Record
from odradek.wire.record_batch import (
    HEADER_BYTES,
    TimestampType,
    build_batch,
    parse_header,
    restamped,
)
from support.batches import NOW_MS, SMALL, batch_of, fill

OpenLog = Callable[..., PartitionLog]


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
