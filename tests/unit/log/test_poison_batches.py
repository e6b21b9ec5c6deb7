"""Batches with a correct CRC and a wrong content: they are refused, and the log does not change."""

from __future__ import annotations

import pytest

from odradek.log import log_validator
from odradek.log.log_validator import OpeningBudget
from odradek.log.partition_log import PartitionLog
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Codec, compress
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX
from support.batches import NOW_MS, altered, batch_of, values_from

RECORD = b"\x0c\x00\x00\x00\x01\x01\x00"
SECOND_RECORD = b"\x0c\x00\x00\x02\x01\x01\x00"
NONSENSE = [
    pytest.param(b"\xff" * 40, id="nonsense"),
    pytest.param(RECORD, id="too few records"),
    pytest.param(RECORD + SECOND_RECORD + RECORD, id="too many records"),
    pytest.param(RECORD + SECOND_RECORD + b"\x00", id="bytes after the last record"),
    pytest.param(RECORD + b"\x0c\x00\x00\x02\x01\x02\x00", id="value beyond the record"),
    pytest.param(RECORD + b"\x0b\x00\x00\x02\x01\x01\x00", id="negative length"),
    pytest.param(RECORD + b"\x0c\x00\x00\x02\x03\x01\x00", id="key of -2 bytes"),
    pytest.param(RECORD + b"\x10\x00\x00\x02\x01\x01\x02\x01\x01", id="null header key"),
    pytest.param(RECORD + b"\x0e\x00\x00\x02\x01\x01\x00\x00", id="record longer than its parts"),
    pytest.param(RECORD + b"\x0c\x00\x00\x02\x01\x01\x06", id="more headers than bytes"),
    pytest.param(RECORD + b"\x14\x00\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", id="endless varint"),
]


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("body", NONSENSE)
def test_records_that_contradict_the_header_are_refused(log: PartitionLog, codec: Codec, body: bytes) -> None:
    log.append(batch_of(b"good"), NOW_MS)
    poison = altered(batch_of(b"a", b"b", codec=codec), body=compress(codec, body))

    with pytest.raises(ApiError) as refusal:
        log.append(poison, NOW_MS)

    assert refusal.value.code == ErrorCode.INVALID_RECORD
    assert (log.log_end_offset, log.size_bytes) == (1, len(batch_of(b"good")))


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("count", [3, 1_000, INT32_MAX])
def test_a_header_that_declares_more_records_than_fit_moves_no_offset(
    log: PartitionLog, codec: Codec, count: int
) -> None:
    poison = altered(
        batch_of(b"a", codec=codec),
        body=compress(codec, b"\x00\x00"),
        record_count=count,
        last_offset_delta=count - 1,
    )

    with pytest.raises(ApiError) as refusal:
        log.append(poison, NOW_MS)

    assert refusal.value.code in {ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE}
    assert log.log_end_offset == 0
    log.append(batch_of(b"good"), NOW_MS)
    assert values_from(log) == [(0, b"good")]


@pytest.mark.parametrize("codec", list(Codec))
def test_bytes_that_are_not_of_the_codec_are_refused(log: PartitionLog, codec: Codec) -> None:
    poison = altered(batch_of(b"a", codec=codec), body=b"of no codec at all")

    with pytest.raises(ApiError) as refusal:
        log.append(poison, NOW_MS)

    assert refusal.value.code == ErrorCode.INVALID_RECORD
    assert log.log_end_offset == 0


def test_too_many_records_are_refused_by_the_header_alone(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = compress(Codec.ZSTD, RECORD * 2_000_000)
    poison = altered(
        batch_of(b"a", codec=Codec.ZSTD), body=body, record_count=2_000_000, last_offset_delta=1_999_999
    )
    opened: list[int] = []
    monkeypatch.setattr(log_validator, "decompress", lambda codec, *_: opened.append(codec))

    with pytest.raises(ApiError) as refusal:
        log.prepare(poison, NOW_MS, 13, OpeningBudget(1_000_000, batch_records=100_000))

    assert len(poison) < 1_500
    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert opened == []
