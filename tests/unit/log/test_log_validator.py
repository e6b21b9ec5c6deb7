"""From a batch as sent to the bytes in the log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from odradek.log.log_config import LogConfig
from odradek.log.log_validator import (
    MAX_RECORD_ERRORS,
    InvalidRecords,
    OpeningBudget,
    PreparedBatch,
    prepared,
)
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Codec, compress
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import Record
from odradek.wire.record_batch import (
    RecordBatchHeader,
    TimestampType,
    build_batch,
    is_intact,
    parse_header,
    records,
)
from support.batches import NOW_MS, altered, batch_of

COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))
STAMPING = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)


def stored(sent: bytes, config: LogConfig) -> tuple[bytes, PreparedBatch, RecordBatchHeader]:
    """The bytes that are stored for ``sent`` at offset 50."""
    batch = prepared(memoryview(sent), parse_header(sent), config, NOW_MS, OpeningBudget.unlimited())
    data = b"".join(batch.at(50))
    return data, batch, parse_header(data)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("config", [LogConfig(), COMPACTED], ids=["plain", "compacted"])
def test_a_valid_batch_changes_only_in_offset_and_epoch(codec: Codec, config: LogConfig) -> None:
    sent = batch_of(b"a", b"b", codec=codec, producer=(7, 1, 4))

    data, batch, header = stored(sent, config)

    assert data[16:] == sent[16:]
    assert (header.base_offset, header.partition_leader_epoch) == (50, 0)
    assert (batch.header.size_bytes, batch.max_timestamp_ms) == (len(data), NOW_MS)


def test_log_append_time_is_stamped() -> None:
    sent = batch_of(b"a", b"b", timestamp_ms=5, codec=Codec.GZIP)

    data, batch, header = stored(sent, STAMPING)

    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.max_timestamp_ms == header.max_timestamp_ms == NOW_MS
    assert is_intact(data, header)
    assert [record.timestamp_ms for record in records(data)] == [NOW_MS, NOW_MS]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_the_bit_of_log_append_time_of_a_producer_is_taken_away(codec: Codec) -> None:
    sent = batch_of(b"a", timestamp_ms=NOW_MS, codec=codec)

    data, _, header = stored(altered(sent, attributes=int(codec) | 8), LogConfig())

    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert is_intact(data, header)
    assert [record.timestamp_ms for record in records(data)] == [NOW_MS]


@pytest.mark.parametrize(("config", "timestamp_ms"), [(STAMPING, NOW_MS), (LogConfig(), -1)])
def test_a_producer_cannot_set_log_append_time_where_there_is_no_other(
    config: LogConfig, timestamp_ms: int
) -> None:
    sent = altered(batch_of(b"a", b"b", timestamp_ms=timestamp_ms), attributes=8)

    with pytest.raises(InvalidRecords) as refusal:
        stored(sent, config)

    assert refusal.value.code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in refusal.value.record_errors] == [0, 1]


def test_a_wrong_max_timestamp_is_corrected() -> None:
    sent = altered(batch_of(b"a", timestamp_ms=NOW_MS), max_timestamp_ms=NOW_MS + 7)

    data, batch, header = stored(sent, LogConfig())

    assert batch.max_timestamp_ms == header.max_timestamp_ms == NOW_MS
    assert is_intact(data, header)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_compacted_topic_needs_keys(codec: Codec) -> None:
    keys = [b"k", None, b"", None]
    sent = build_batch([Record(key, b"x") for key in keys], codec=codec)

    with pytest.raises(InvalidRecords) as refusal:
        stored(sent, COMPACTED)

    assert refusal.value.code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refusal.value.record_errors] == [1, 3]


@pytest.mark.parametrize(
    ("delta_ms", "before_max_ms", "after_max_ms", "accepted"),
    [
        (3_600_000, None, None, True),
        (3_600_001, None, None, False),
        (-(10**12), None, None, True),
        (-1_000, 1_000, None, True),
        (-1_001, 1_000, None, False),
        (50, None, 50, True),
        (51, None, 50, False),
    ],
)
def test_timestamps_are_bounded(
    delta_ms: int, before_max_ms: int | None, after_max_ms: int | None, accepted: bool
) -> None:
    config = LogConfig()
    if before_max_ms is not None:
        config = replace(config, message_timestamp_before_max_ms=before_max_ms)
    if after_max_ms is not None:
        config = replace(config, message_timestamp_after_max_ms=after_max_ms)
    sent = build_batch([Record(None, b"a", NOW_MS), Record(None, b"b", NOW_MS + delta_ms)])

    refused = untimely_records(sent, config)

    assert refused == ([] if accepted else [1])


def untimely_records(sent: bytes, config: LogConfig) -> list[int]:
    try:
        stored(sent, config)
    except InvalidRecords as refusal:
        untimely = refusal.code == ErrorCode.INVALID_TIMESTAMP
        return [error.batch_index for error in refusal.record_errors if untimely]
    return []


def test_a_record_without_timestamp_is_accepted() -> None:
    sent = build_batch([Record(None, b"a")])

    refused = untimely_records(sent, LogConfig(message_timestamp_before_max_ms=1_000))

    assert refused == []


def test_log_append_time_has_no_bounds() -> None:
    sent = build_batch([Record(None, b"a", NOW_MS + 10**12)])

    _, batch, _ = stored(sent, STAMPING)

    assert batch.max_timestamp_ms == NOW_MS


@pytest.mark.parametrize("target", list(Codec))
@pytest.mark.parametrize("source", list(Codec))
def test_a_topic_codec_recompresses_the_batch(source: Codec, target: Codec) -> None:
    sent = batch_of(b"a" * 500, b"b" * 500, codec=source, producer=(7, 1, 4))

    data, _, header = stored(sent, LogConfig(compression_type=target))

    assert header.codec == target
    assert is_intact(data, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 4)
    assert [(record.offset, record.value) for record in records(data)] == [(50, b"a" * 500), (51, b"b" * 500)]
    assert source != target or data[16:] == sent[16:]


def test_recompression_and_log_append_time_combine() -> None:
    sent = batch_of(b"a", timestamp_ms=5)

    data, batch, header = stored(sent, replace(STAMPING, compression_type=Codec.LZ4))

    assert (header.codec, header.timestamp_type) == (Codec.LZ4, TimestampType.LOG_APPEND_TIME)
    assert batch.max_timestamp_ms == header.max_timestamp_ms == NOW_MS
    assert is_intact(data, header)


def test_the_size_limit_applies_after_recompression_too() -> None:
    sent = batch_of(bytes(10_000), codec=Codec.ZSTD)

    with pytest.raises(ApiError) as refusal:
        stored(sent, LogConfig(compression_type=Codec.NONE, max_message_bytes=5_000))

    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_wrong_offset_deltas_are_refused_in_compressed_batches_only(codec: Codec) -> None:
    inner = b"\x0c\x00\x00\x00\x01\x01\x00" + b"\x0c\x00\x00\x08\x01\x01\x00"  # deltas 0 and 4
    sent = altered(batch_of(b"a", b"b", codec=codec), body=compress(codec, inner))

    if codec is Codec.NONE:
        assert [record.offset for record in records(stored(sent, LogConfig())[0])] == [50, 54]
    else:
        with pytest.raises(ApiError) as refusal:
            stored(sent, LogConfig())
        assert refusal.value.code == ErrorCode.INVALID_RECORD
    rebuilt = stored(sent, LogConfig(compression_type=Codec.ZSTD))[0]
    assert [record.offset for record in records(rebuilt)] == [50, 51]


@pytest.mark.parametrize(("most_bytes", "accepted"), [(1_070, True), (1_069, False)])
def test_a_topic_bounds_what_a_batch_opens_to(most_bytes: int, accepted: bool) -> None:
    sent = batch_of(bytes(1_060), codec=Codec.ZSTD)
    config = LogConfig(max_decompressed_message_bytes=most_bytes)

    if accepted:
        assert stored(sent, config)[0][61:] == sent[61:]
    else:
        with pytest.raises(ApiError) as refusal:
            stored(sent, config)
        assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_decompression_bomb_is_too_large() -> None:
    sent = altered(batch_of(b"a", codec=Codec.ZSTD), body=compress(Codec.ZSTD, bytes(40 << 20)))

    with pytest.raises(ApiError) as refusal:
        stored(sent, LogConfig())

    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_refusal_names_a_bounded_number_of_records() -> None:
    sent = build_batch([Record(None, b"")] * (MAX_RECORD_ERRORS + 5), codec=Codec.ZSTD)

    with pytest.raises(InvalidRecords) as refusal:
        stored(sent, COMPACTED)

    assert len(refusal.value.record_errors) == MAX_RECORD_ERRORS
    assert f"at least {MAX_RECORD_ERRORS} records were refused" in str(refusal.value)


def test_no_record_is_checked_once_the_refusal_is_full() -> None:
    checked = 0

    def refused(_: Record) -> str:
        nonlocal checked
        checked += 1
        return "no"

    sent = batch_of(*[b"junk"] * (MAX_RECORD_ERRORS + 5))

    with pytest.raises(InvalidRecords):
        prepared(
            memoryview(sent),
            parse_header(sent),
            LogConfig(),
            NOW_MS,
            OpeningBudget.unlimited(),
            check=refused,
        )

    assert checked == MAX_RECORD_ERRORS
