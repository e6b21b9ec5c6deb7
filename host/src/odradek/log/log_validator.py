"""Validates a batch as a client sent it and turns it into the bytes to store.

After org.apache.kafka.storage.internals.log.LogValidator (Kafka 4.3). Kafka decompresses every batch. This
host only opens a batch if it must: the topic is compacted, has a finite ``message.timestamp.before.max.ms``,
another codec than the batch or ``validate_records``, or a timestamp is too far in the future. The bound on
the future is finite by default, so it is first compared with the greatest timestamp in the header.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from odradek.log.log_config import LogConfig
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Buffer, Codec, TooLarge
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.record import NO_TIMESTAMP, Record
from odradek.wire.record_batch import (
    HEADER_BYTES,
    RecordBatchHeader,
    TimestampType,
    build_batch,
    records,
    restamped,
    stamped,
)

LEADER_EPOCH: Final = 0
"""There is one node, which has always led every partition."""
MIN_DECOMPRESSED_BYTES: Final = 16 << 20
DECOMPRESSED_RATIO: Final = 16
"""A decompressed batch may have this many times ``max.message.bytes``, and always 16 MiB. Kafka has no
bound.
"""
_NO_BOUND_MS: Final = 0x7FFFFFFFFFFFFFFF
_STAMPED_BYTES: Final = 16


MAX_RECORD_ERRORS: Final = 1_000
"""The most errors in one response: a small compressed batch may hold a million invalid records."""


class RecordError(NamedTuple):
    """Why one record of a batch was refused (KIP-467)."""

    batch_index: int
    message: str


class InvalidRecords(ApiError):
    """A batch was refused because of some of its records."""

    def __init__(self, code: ErrorCode, record_errors: Sequence[RecordError]) -> None:
        super().__init__(code, f"{len(record_errors)} records were refused: {record_errors[0].message}")
        self.record_errors = tuple(record_errors)


@dataclass(slots=True)
class ValidBatch:
    """The bytes to write, in parts, and the figures for the index."""

    parts: tuple[Buffer, ...]
    size_bytes: int
    max_timestamp_ms: int


def validated(
    batch: memoryview, header: RecordBatchHeader, config: LogConfig, base_offset: int, now_ms: int
) -> ValidBatch:
    """Give a batch, which has passed ``check_batch``, its offset and timestamps.

    Raises:
        ApiError: INVALID_TIMESTAMP, INVALID_RECORD (both as `InvalidRecords` if single records are invalid),
            MESSAGE_TOO_LARGE.
    """
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        raise ApiError(ErrorCode.INVALID_TIMESTAMP, "a producer cannot set log append time")
    max_timestamp_ms = header.max_timestamp_ms
    if _must_be_opened(header, config, now_ms):
        found = _opened(batch, header, config)
        _check_records(found, config, now_ms)
        if _must_be_rebuilt(found, header, config):
            return _rebuilt(found, header, config, base_offset, now_ms)
        # The header is the client's claim. Once the records are known, the index gets their real maximum.
        max_timestamp_ms = max(record.timestamp_ms for record in found)
    return _in_place(batch, header, config, base_offset, now_ms, max_timestamp_ms)


def _in_place(
    batch: memoryview,
    header: RecordBatchHeader,
    config: LogConfig,
    base_offset: int,
    now_ms: int,
    max_timestamp_ms: int,
) -> ValidBatch:
    if config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
        max_timestamp_ms = now_ms
    elif max_timestamp_ms == header.max_timestamp_ms:
        # The usual case: only 16 bytes change, none of which the CRC covers.
        head = stamped(header, base_offset, LEADER_EPOCH)
        return ValidBatch((head, batch[_STAMPED_BYTES:]), header.size_bytes, max_timestamp_ms)
    head = restamped(
        batch, header, base_offset, LEADER_EPOCH, config.message_timestamp_type, max_timestamp_ms
    )
    return ValidBatch((head, batch[HEADER_BYTES:]), header.size_bytes, max_timestamp_ms)


def _must_be_opened(header: RecordBatchHeader, config: LogConfig, now_ms: int) -> bool:
    if config.validate_records or config.is_compacted:
        return True
    if config.compression_type is not None and config.compression_type != header.codec:
        return True
    return config.message_timestamp_type is TimestampType.CREATE_TIME and (
        config.message_timestamp_before_max_ms != _NO_BOUND_MS
        or header.max_timestamp_ms - now_ms > config.message_timestamp_after_max_ms
    )


def _opened(batch: memoryview, header: RecordBatchHeader, config: LogConfig) -> list[Record]:
    max_bytes = max(MIN_DECOMPRESSED_BYTES, DECOMPRESSED_RATIO * config.max_message_bytes)
    try:
        return list(records(batch, header, max_bytes))
    except TooLarge as error:
        raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except WireError as error:
        # Not CORRUPT_MESSAGE, which is for the CRC: a client would retry with the same bytes.
        raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from error


def _check_records(found: list[Record], config: LogConfig, now_ms: int) -> None:
    keyless = config.is_compacted
    untimely = config.message_timestamp_type is TimestampType.CREATE_TIME
    late_ms = now_ms - config.message_timestamp_before_max_ms
    early_ms = now_ms + config.message_timestamp_after_max_ms
    missing: list[RecordError] = []
    out_of_bounds: list[RecordError] = []
    for index, record in enumerate(found):
        if keyless and record.key is None:
            missing.append(RecordError(index, "a compacted topic needs a key in every record"))
        elif untimely and not (
            record.timestamp_ms == NO_TIMESTAMP or late_ms <= record.timestamp_ms <= early_ms
        ):
            problem = f"timestamp {record.timestamp_ms} is not within {late_ms} to {early_ms}"
            out_of_bounds.append(RecordError(index, problem))
    if out_of_bounds:
        raise InvalidRecords(ErrorCode.INVALID_TIMESTAMP, sorted(out_of_bounds + missing)[:MAX_RECORD_ERRORS])
    if missing:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, missing[:MAX_RECORD_ERRORS])


def _must_be_rebuilt(found: list[Record], header: RecordBatchHeader, config: LogConfig) -> bool:
    if config.compression_type is not None and config.compression_type != header.codec:
        return True
    if header.codec == Codec.NONE:
        return False  # Kafka does not check the offsets of an uncompressed batch either
    return any(record.offset != index for index, record in enumerate(found))


def _rebuilt(
    found: list[Record], header: RecordBatchHeader, config: LogConfig, base_offset: int, now_ms: int
) -> ValidBatch:
    stamp = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    batch = build_batch(
        found,
        codec=header.codec if config.compression_type is None else config.compression_type,
        base_offset=base_offset,
        partition_leader_epoch=LEADER_EPOCH,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        log_append_time_ms=now_ms if stamp else None,
        transactional=header.is_transactional,
    )
    if len(batch) > config.max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{len(batch)} bytes after recompression, at most {config.max_message_bytes} allowed",
        )
    max_timestamp_ms = now_ms if stamp else max(record.timestamp_ms for record in found)
    return ValidBatch((batch,), len(batch), max_timestamp_ms)
