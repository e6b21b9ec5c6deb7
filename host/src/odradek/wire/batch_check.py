"""The checks of a Produce request: what can be said about a record batch without opening it.

After org.apache.kafka.common.requests.ProduceRequest and org.apache.kafka.storage.internals.log.UnifiedLog
(Kafka 4.3).
"""

from __future__ import annotations

import struct
from typing import Final

from odradek.wire.api_error import ApiError
from odradek.wire.compression import Buffer, Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX
from odradek.wire.record_batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    TRANSACTIONAL_FLAG,
    RecordBatchHeader,
    is_intact,
    parse_header,
)

_ZSTD: Final = int(Codec.ZSTD)
_FIRST_VERSION_WITH_ZSTD: Final = 7
_LENGTH: Final = struct.Struct(">i").unpack_from
_MAGIC_AT: Final = 16
_LEAST_LENGTH: Final = 14
"""Of a record of the oldest format, without its offset and its size."""


def check_batch(
    data: Buffer,
    *,
    max_message_bytes: int = INT32_MAX,
    segment_bytes: int = INT32_MAX,
    produce_version: int = INT32_MAX,
    transactions: bool = False,
) -> RecordBatchHeader:
    """Check one partition's bytes of a Produce request, without opening the batch: as `check_extent`, and
    what the log checks. Append only ``header.size_bytes`` of ``data``.

    Args:
        data: The ``records`` field.
        max_message_bytes: ``max.message.bytes`` of the topic.
        segment_bytes: ``segment.bytes`` of the topic.
        produce_version: Version of the request; zstd came with 7.
        transactions: Whether transactional batches are accepted.

    Raises:
        ApiError: INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE,
            UNSUPPORTED_COMPRESSION_TYPE, INVALID_TXN_STATE.
    """
    header = check_extent(data, produce_version)
    size_bytes = header.size_bytes
    batch = data if size_bytes == len(data) else memoryview(data)[:size_bytes]
    if size_bytes > max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE, f"batch of {size_bytes} bytes, at most {max_message_bytes} allowed"
        )
    if size_bytes > segment_bytes:
        raise ApiError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"batch of {size_bytes} bytes, segments hold {segment_bytes}"
        )
    if not is_intact(batch, header):
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "the CRC of the batch does not match its content")
    _check_fields(header)
    if header.attributes & TRANSACTIONAL_FLAG and (header.producer_id < 0 or not transactions):
        problem = "transactional batches are not accepted" if not transactions else "no producer id"
        raise ApiError(ErrorCode.INVALID_TXN_STATE, problem)
    return header


def check_extent(data: Buffer, produce_version: int) -> RecordBatchHeader:
    """Check that there is one batch of the current format. Bytes after it that are no whole batch are
    ignored, as in Kafka.

    Raises:
        ApiError: INVALID_RECORD, CORRUPT_MESSAGE, UNSUPPORTED_COMPRESSION_TYPE.
    """
    size_bytes = _whole_batch(data, 0)
    if not size_bytes:
        raise ApiError(ErrorCode.INVALID_RECORD, f"no whole record batch in {len(data)} bytes")
    if data[_MAGIC_AT] != MAGIC:
        raise ApiError(ErrorCode.INVALID_RECORD, f"batch of magic {data[_MAGIC_AT]}, must be {MAGIC}")
    if size_bytes < HEADER_BYTES:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"batch of {size_bytes} bytes, a header has {HEADER_BYTES}")
    header = parse_header(data)
    _check_codec(header.attributes & CODEC_MASK, produce_version)
    if size_bytes != len(data) and _whole_batch(data, size_bytes):
        raise ApiError(ErrorCode.INVALID_RECORD, "more than one record batch")
    return header


def _whole_batch(data: Buffer, at: int) -> int:
    """The size of the batch at an offset, 0 if it is not whole (ByteBufferLogInputStream).

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    left = len(data) - at
    if left < LOG_OVERHEAD_BYTES:
        return 0
    (length,) = _LENGTH(data, at + 8)
    if length < _LEAST_LENGTH:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"batch of length {length}, at least {_LEAST_LENGTH}")
    if left > _MAGIC_AT and data[at + _MAGIC_AT] > MAGIC:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {data[at + _MAGIC_AT]}")
    size_bytes: int = length + LOG_OVERHEAD_BYTES
    return size_bytes if size_bytes <= left else 0


def _check_codec(codec: int, produce_version: int) -> None:
    if codec < _ZSTD:
        return
    if codec == _ZSTD and produce_version < _FIRST_VERSION_WITH_ZSTD:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce {_FIRST_VERSION_WITH_ZSTD} or later"
        )
    if codec > _ZSTD:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown codec {codec}")


def _check_fields(header: RecordBatchHeader) -> None:
    if header.base_offset:
        raise ApiError(ErrorCode.INVALID_RECORD, f"base offset {header.base_offset}, must be 0")
    if header.record_count <= 0 or header.last_offset_delta + 1 != header.record_count:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records, last offset delta {header.last_offset_delta}",
        )
    if header.attributes & CONTROL_FLAG:
        raise ApiError(ErrorCode.INVALID_RECORD, "clients may not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"sequence {header.base_sequence} from the idempotent producer {header.producer_id}",
        )
