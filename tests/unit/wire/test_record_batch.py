"""RecordBatch of magic 2: layout, checks of Produce, stamping, and compatibility with aiokafka."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from crc32c import crc32c

from odradek.wire.api_error import ApiError
from odradek.wire.batch_check import check_batch
from odradek.wire.compression import Codec, TooLarge
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.limits import INT64_MAX
from odradek.wire.record import NO_TIMESTAMP, Record, encoded_varint, parse_records, varlong
from odradek.wire.record_batch import (
    HEADER_BYTES,
    TimestampType,
    build_batch,
    is_intact,
    parse_header,
    record_batches,
    records,
    restamped,
    stamped,
)
from odradek.wire.record_scan import scan_records, walk_in_python, walk_records
from support.error_codes import code_of

RECORDS = [
    Record(b"key", b"value", 1_000, (("trace", b"\x01\x02"), ("empty", None), ("", b"")), 0),
    Record(None, None, 900, (), 1),
    Record(b"", b"", 5_000, (), 2),
    Record(b"k" * 300, b"v" * 70_000, 1_000, (("h" * 100, b"x" * 200),), 3),
]
BATCH = build_batch(RECORDS)


def crc_renewed(batch: bytearray) -> bytes:
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


def changed(position: int, layout: str, value: int, batch: bytes = BATCH) -> bytes:
    """A batch with another value in one field and a correct CRC."""
    other = bytearray(batch)
    struct.pack_into(layout, other, position, value)
    return crc_renewed(other)


@pytest.mark.parametrize("codec", list(Codec))
def test_records_are_read_back(codec: Codec) -> None:
    batch = build_batch(RECORDS, codec=codec)

    found = list(records(batch))

    assert found == RECORDS


@pytest.mark.parametrize("codec", list(Codec))
def test_aiokafka_reads_our_batches(codec: Codec) -> None:
    batch = build_batch(
        RECORDS, codec=codec, producer_id=4711, producer_epoch=2, base_sequence=17, base_offset=100
    )

    foreign = DefaultRecordBatch(batch)

    assert foreign.validate_crc()
    assert (foreign.producer_id, foreign.producer_epoch, foreign.base_sequence) == (4711, 2, 17)
    assert [
        (record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
        for record in foreign
    ] == [
        (100 + record.offset, record.timestamp_ms, record.key, record.value, record.headers)
        for record in RECORDS
    ]


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_of_aiokafka_are_read(codec: Codec) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for record in RECORDS:
        builder.append(
            record.offset, record.timestamp_ms, record.key, record.value, headers=list(record.headers)
        )
    batch = bytes(builder.build())

    header = check_batch(batch)

    assert header.codec == codec
    assert list(records(batch)) == RECORDS


def test_the_header_describes_the_batch() -> None:
    batch = build_batch(
        RECORDS,
        codec=Codec.LZ4,
        base_offset=40,
        partition_leader_epoch=7,
        producer_id=1 << 40,
        producer_epoch=3,
        base_sequence=0x7FFFFFFE,
        transactional=True,
    )

    header = parse_header(batch)

    assert header.size_bytes == len(batch)
    assert (header.base_offset, header.last_offset, header.next_offset) == (40, 43, 44)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (1_000, 5_000)
    assert (header.partition_leader_epoch, header.record_count) == (7, 4)
    assert (header.producer_id, header.producer_epoch) == (1 << 40, 3)
    assert header.last_sequence == 1  # after 2^31-1 comes 0
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert header.is_transactional
    assert not header.is_control


def test_a_batch_without_producer_has_no_last_sequence() -> None:
    batch = BATCH

    header = parse_header(batch)

    assert header.last_sequence == -1


def test_a_batch_needs_a_record() -> None:
    nothing: list[Record] = []

    with pytest.raises(ValueError, match="needs a record"):
        build_batch(nothing)


def test_log_append_time_is_the_timestamp_of_every_record() -> None:
    batch = build_batch(RECORDS, log_append_time_ms=77)

    found = list(records(batch))

    assert {record.timestamp_ms for record in found} == {77}


def test_stamping_keeps_the_crc() -> None:
    header = parse_header(BATCH)

    batch = stamped(header, 123_456_789_012, 9) + BATCH[16:]

    assert parse_header(batch)._replace(base_offset=0, partition_leader_epoch=-1) == header
    assert parse_header(batch).base_offset == 123_456_789_012
    assert is_intact(batch, parse_header(batch))


def test_restamping_updates_the_crc() -> None:
    header = parse_header(BATCH)

    batch = restamped(BATCH, header, 5, 0, TimestampType.LOG_APPEND_TIME, 42) + BATCH[HEADER_BYTES:]

    after = parse_header(batch)
    assert is_intact(batch, after)
    assert (after.base_offset, after.max_timestamp_ms) == (5, 42)
    assert after.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert DefaultRecordBatch(batch).validate_crc()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (BATCH[:60], ErrorCode.INVALID_RECORD),
        (BATCH[:-1], ErrorCode.INVALID_RECORD),
        (BATCH + BATCH, ErrorCode.INVALID_RECORD),
        (BATCH + changed(16, ">b", 1), ErrorCode.INVALID_RECORD),
        (changed(16, ">b", 1), ErrorCode.INVALID_RECORD),
        (changed(16, ">b", 3), ErrorCode.CORRUPT_MESSAGE),
        (changed(8, ">i", 48), ErrorCode.CORRUPT_MESSAGE),
        (changed(8, ">i", -1), ErrorCode.CORRUPT_MESSAGE),
        (changed(0, ">q", 1), ErrorCode.INVALID_RECORD),
        (changed(21, ">h", 5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (BATCH[:17] + bytes(4) + BATCH[21:], ErrorCode.CORRUPT_MESSAGE),
        (BATCH[:-1] + b"\xff", ErrorCode.CORRUPT_MESSAGE),
        (changed(57, ">i", 0), ErrorCode.INVALID_RECORD),
        (changed(57, ">i", -1), ErrorCode.INVALID_RECORD),
        (changed(57, ">i", 5), ErrorCode.INVALID_RECORD),
        (changed(23, ">i", 4), ErrorCode.INVALID_RECORD),
        (build_batch(RECORDS, control=True), ErrorCode.INVALID_RECORD),
        (build_batch(RECORDS, producer_id=1, producer_epoch=0), ErrorCode.INVALID_RECORD),
        (
            build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True),
            ErrorCode.INVALID_TXN_STATE,
        ),
    ],
    ids=[
        "nothing",
        "shorter than a header",
        "cut",
        "two batches",
        "second batch of magic 1",
        "magic 1",
        "magic 3",
        "length shorter than a header",
        "negative length",
        "base offset",
        "unknown codec",
        "wrong CRC",
        "flipped byte",
        "no records",
        "negative count",
        "count above the offsets",
        "offsets above the count",
        "control bit",
        "producer without sequence",
        "transactional",
    ],
)
def test_an_invalid_batch_is_refused(data: bytes, code: ErrorCode) -> None:
    received = memoryview(data)

    with pytest.raises(ApiError) as refusal:
        check_batch(received)

    assert refusal.value.code == code


def test_a_torn_second_batch_is_dropped_as_kafka_does() -> None:
    data = BATCH + BATCH[:-1]

    header = check_batch(data)

    assert header.size_bytes == len(BATCH)


@pytest.mark.parametrize("produce_version", [3, 6, 7])
def test_zstd_needs_produce_version_7(produce_version: int) -> None:
    batch = build_batch(RECORDS, codec=Codec.ZSTD)

    code = code_of(lambda: check_batch(batch, produce_version=produce_version))

    assert code == (ErrorCode.NONE if produce_version >= 7 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


def test_size_limits_are_enforced() -> None:
    size_bytes = len(BATCH)

    codes = [
        code_of(lambda: check_batch(BATCH, max_message_bytes=size_bytes, segment_bytes=size_bytes)),
        code_of(lambda: check_batch(BATCH, max_message_bytes=size_bytes - 1)),
        code_of(lambda: check_batch(BATCH, segment_bytes=size_bytes - 1)),
    ]

    assert codes == [ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE]


def test_transactional_batches_are_accepted_on_request() -> None:
    batch = build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)

    header = check_batch(batch, transactions=True)

    assert header.is_transactional


def body_of(*raw_records: bytes, count: int = 1) -> bytes:
    """A batch with a correct CRC around records that may be wrong."""
    batch = bytearray(build_batch([Record(None, None, 0)])[:HEADER_BYTES] + b"".join(raw_records))
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">i", batch, 23, count - 1)
    struct.pack_into(">i", batch, 57, count)
    return crc_renewed(batch)


NULLS = b"\x00\x00\x00\x01\x01\x00"
"""Attributes, deltas 0, null key, null value, no header."""


@pytest.mark.parametrize(
    "batch",
    [
        body_of(),
        body_of(b"\x0c" + NULLS, count=2),
        body_of(b"\x0c" + NULLS, count=0x7FFFFFFF),
        body_of(b"\x0c" + NULLS + b"\x0c"),
        body_of(b"\x0e" + NULLS),
        body_of(b"\x0a" + NULLS),
        body_of(b"\x01" + NULLS),
        body_of(b"\x0c" + NULLS[:3] + b"\x03" + NULLS[4:]),
        body_of(b"\x0c" + NULLS[:3] + b"\x20" + NULLS[4:]),
        body_of(b"\x0c" + NULLS[:5] + b"\x02"),
        body_of(b"\x0c" + NULLS[:5] + b"\x01"),
        body_of(b"\x10" + NULLS[:5] + b"\x02\x01\x01"),
        body_of(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + NULLS),
        body_of(b"\x80\x80\x80\x80\x80\x80\x80"),
        body_of(
            b"\x2a\x00" + encoded_varint((1 << 63) - 1) + NULLS[2:],
            b"\x20\x00" + encoded_varint((1 << 63) - 1) + NULLS[2:],
        ),
    ],
)
def test_inconsistent_records_are_refused(batch: bytes) -> None:
    header = parse_header(batch)

    with pytest.raises(WireError):
        list(records(batch, header))


def only_records() -> Iterator[bytearray]:
    """Bodies of one record, with lengths that take up to three bytes."""
    for key in (None, b"", b"k" * 63, b"k" * 64, b"k" * 8_192):
        for size in (0, 63, 64, 8_128, 8_191, 8_192, 16_500):
            for value in (bytes(size), None):
                for headers in ((), (("h", b"x"),)):
                    yield bytearray(build_batch([Record(key, value, 5, headers)])[HEADER_BYTES:])


def read_or_none(body: bytes) -> tuple[int, int, bool, bool] | None:
    """What `scan_records` finds in a body of one record, from the record itself."""
    try:
        (found,) = parse_records(body, 1, 0, 5)
    except WireError:
        return None
    earliest_ms = INT64_MAX if found.timestamp_ms == NO_TIMESTAMP else found.timestamp_ms
    return found.timestamp_ms, earliest_ms, found.key is None, found.offset == 0


def scan_or_none(body: bytes) -> tuple[int, int, bool, bool] | None:
    try:
        return scan_records(body, 1, 5)[:4]
    except WireError:
        return None


@pytest.mark.parametrize("byte", [0, 1, 2, 0x7F, 0x80, 0x81, 0xFF])
def test_a_scan_of_one_record_accepts_what_can_be_read(byte: int) -> None:
    accepted = 0
    for body in only_records():
        for position in {*range(min(9, len(body))), len(body) - 1}:
            before, body[position] = body[position], byte

            found = scan_or_none(bytes(body))

            assert walk_in_python(bytes(body), 1, 5, INT64_MAX) == walk_records(bytes(body), 1, 5, INT64_MAX)
            assert found == read_or_none(bytes(body))
            accepted += found is not None
            body[position] = before
    assert accepted > 70


def test_decompression_of_records_is_bounded() -> None:
    batch = build_batch([Record(None, bytes(1 << 20))], codec=Codec.ZSTD)

    with pytest.raises(TooLarge):
        list(records(batch, max_bytes=1 << 19))


def test_header_keys_that_are_not_utf_8_survive_a_rebuild() -> None:
    record = Record(None, b"v", 1, ((b"\xff\xfe".decode("utf-8", "surrogateescape"), b"x"),))

    (found,) = records(build_batch([record]))

    assert build_batch([found]) == build_batch([record])
    assert found.headers[0][0].encode("utf-8", "surrogateescape") == b"\xff\xfe"


@pytest.mark.parametrize(
    "value", [0, -1, 63, 64, -64, -65, 8191, 8192, -8193, 0x7FFFFFFF, -0x80000000, (1 << 63) - 1, -(1 << 63)]
)
def test_varints_are_read_back(value: int) -> None:
    encoded = encoded_varint(value)

    decoded = varlong(encoded, 0)

    assert decoded == (value, len(encoded))


def test_consecutive_batches_are_read_up_to_the_torn_one() -> None:
    data = BATCH + build_batch(RECORDS, base_offset=4) + BATCH[:100]

    found = [(header.base_offset, bytes(batch)) for header, batch in record_batches(data)]

    assert found == [(0, BATCH), (4, build_batch(RECORDS, base_offset=4))]


def test_bytes_that_are_not_batches_are_refused() -> None:
    data = BATCH + bytes(100)

    with pytest.raises(WireError):
        list(record_batches(data))
