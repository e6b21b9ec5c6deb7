"""Validates a batch as a client sent it and turns it into the bytes to store.

After org.apache.kafka.storage.internals.log.LogValidator (Kafka 4.3). What is checked when:

1. The header, before anything is opened: its number of records must be possible for the bytes that follow,
   and at most ``produce.batch.max.records``, which Kafka does not bound.
2. The body is decompressed within a bound, for every codec.
3. All records are scanned without making objects of them (`record_scan`): each must be well-formed, and they
   must be as many as the header says. The scan also finds what the topic's rules are about: the timestamps,
   null keys, and offsets that are not consecutive.
4. Only a batch that breaks a rule, or has to be rebuilt, is turned into `Record` objects.

The cost of 2 to 4 is bounded by an `OpeningBudget`. A batch beyond it is `BatchWork`, for another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from odradek.log.log_config import LogConfig
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Buffer, Codec, TooLarge, decompress
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.limits import INT64_MAX
from odradek.wire.record import MIN_RECORD_BYTES, NO_TIMESTAMP, Record, TooManyHeaders, parse_records
from odradek.wire.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    TIMESTAMP_TYPE_FLAG,
    RecordBatchHeader,
    TimestampType,
    build_batch,
    parse_header,
    restamped,
    stamped,
)
from odradek.wire.record_scan import RecordScan, scan_records, walk_in_python, walk_records

LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME
LEADER_EPOCH: Final = 0
"""There is one node, which has always led every partition."""
DECOMPRESSED_BYTES: Final = 16 << 20
DECOMPRESSED_RATIO: Final = 16
"""A decompressed batch may have this many times ``max.message.bytes``, and always
``produce.decompressed.max.bytes``. Kafka has a bound of its own, ``max.decompressed.message.bytes``.
"""
SCANNING: Final = 200 if walk_records is walk_in_python else MIN_RECORD_BYTES
"""The work of scanning a record or a header: 1 µs in Python, at most 35 ns in C. A unit of work is 5 ns, in
which the slowest codec decompresses a byte."""
LISTING: Final = 1_600
"""The work of making a `Record` object, and a batch of it."""
CHECKING: Final = 10_000
"""The work of a `RecordCheck`."""
RecordCheck = Callable[[Record], str | None]
"""A topic's own rule: what is wrong with a record, or None. Another process must be able to import the
function."""
STAMPED_BYTES: Final = 16
"""The bytes of a batch that an append changes."""
MAX_RECORD_ERRORS: Final = 100
"""The most errors in one response. The records after them are not checked: there may be a million."""


class RecordError(NamedTuple):
    """Why one record of a batch was refused (KIP-467)."""

    batch_index: int
    message: str


class InvalidRecords(ApiError):
    """A batch was refused because of some of its records."""

    def __init__(self, code: ErrorCode, record_errors: Sequence[RecordError]) -> None:
        at_least = "at least " if len(record_errors) == MAX_RECORD_ERRORS else ""
        super().__init__(
            code, f"{at_least}{len(record_errors)} records were refused: {record_errors[0].message}"
        )
        self.record_errors = tuple(record_errors)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.record_errors)


class TooMuchWork(Exception):
    """A batch exceeds the budget; nothing is known about its records."""


@dataclass(slots=True)
class OpeningBudget:
    """How much of the batches of one request may be opened on the event loop."""

    work: int
    """Decompressed bytes, and what `SCANNING` and its neighbors say of records."""
    batch_records: int = INT64_MAX
    """The most records that one batch may have at all."""
    batch_bytes: int = DECOMPRESSED_BYTES
    """The size that each batch may have when opened, even if ``max.message.bytes`` is small."""

    def charge(self, work: int) -> None:
        """Use up a part of the budget.

        Raises:
            TooMuchWork: There is not as much left; nothing is used up.
        """
        if work > self.work:
            raise TooMuchWork
        self.work -= work

    @classmethod
    def unlimited(cls, batch_bytes: int = DECOMPRESSED_BYTES) -> OpeningBudget:
        """The budget of a process that serves no connections, and of the host's own batches."""
        return cls(INT64_MAX, batch_bytes=batch_bytes)


class PreparedBatch(NamedTuple):
    """A valid batch that lacks only its offset; the caller may send it to another process."""

    header: RecordBatchHeader
    """As it is stored, but for the offset and the epoch."""
    body: Buffer
    """Everything after the first 16 bytes, which the CRC does not cover."""
    max_timestamp_ms: int

    def at(self, base_offset: int) -> tuple[Buffer, Buffer]:
        """The bytes to store at an offset, in parts."""
        return stamped(self.header, base_offset, LEADER_EPOCH), self.body


def prepared(
    batch: memoryview,
    header: RecordBatchHeader,
    config: LogConfig,
    now_ms: int,
    budget: OpeningBudget,
    check: RecordCheck | None = None,
) -> PreparedBatch:
    """Validate a batch, which has passed ``check_batch``, and give it its timestamps.

    Raises:
        ApiError: INVALID_TIMESTAMP, INVALID_RECORD (both as `InvalidRecords` if single records are invalid),
            MESSAGE_TOO_LARGE.
        TooMuchWork: The batch exceeds the budget.
    """
    check_count(header, budget.batch_records)
    budget.charge(SCANNING * header.record_count)
    if header.attributes & CODEC_MASK:
        body: bytes | memoryview = _decompressed(batch, header, config, budget)
    else:
        body = batch[HEADER_BYTES:]
    scan = _scanned(body, header, budget)
    if header.attributes & TIMESTAMP_TYPE_FLAG:
        _check_timestamp_type(header, config)
    if check is not None or _breaks_rules(scan, config, now_ms):
        budget.charge((LISTING if check is None else CHECKING) * header.record_count)
        _check_records(_listed(body, header), config, now_ms, check)
    if config.compression_type is not None and config.compression_type != header.codec:
        budget.charge(LISTING * header.record_count)
        return _rebuilt(_listed(body, header), header, config, now_ms)
    if not scan.consecutive and header.codec != Codec.NONE:  # nor does Kafka rebuild such a batch
        raise ApiError(ErrorCode.INVALID_RECORD, "the offsets of a compressed batch are not consecutive")
    return _in_place(batch, header, config, now_ms, scan.max_timestamp_ms)


def trusted(batch: memoryview, header: RecordBatchHeader, config: LogConfig, now_ms: int) -> PreparedBatch:
    """A batch that the host has built: its records are not looked at."""
    return _in_place(batch, header, config, now_ms, header.max_timestamp_ms)


def check_count(header: RecordBatchHeader, most: int) -> None:
    """Refuse a header that declares too many records.

    Raises:
        ApiError: MESSAGE_TOO_LARGE, upon which the Java producer splits the batch; INVALID_RECORD if so many
            records cannot be in so many bytes.
    """
    count = header.record_count
    body_bytes = header.batch_length + LOG_OVERHEAD_BYTES - HEADER_BYTES
    if count * MIN_RECORD_BYTES > body_bytes and not header.attributes & CODEC_MASK:
        raise ApiError(ErrorCode.INVALID_RECORD, f"{count} records in {body_bytes} bytes")
    if count > most:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"batch of {count} records, at most {most} allowed",
        )


def _in_place(
    batch: memoryview, header: RecordBatchHeader, config: LogConfig, now_ms: int, max_timestamp_ms: int
) -> PreparedBatch:
    timestamp_type = config.message_timestamp_type
    if timestamp_type is LOG_APPEND_TIME:
        max_timestamp_ms = now_ms
    elif max_timestamp_ms == header.max_timestamp_ms and not header.attributes & TIMESTAMP_TYPE_FLAG:
        # The usual case: only 16 bytes change, none of which the CRC covers.
        return PreparedBatch(header, batch[STAMPED_BYTES:], max_timestamp_ms)
    # The header is the client's claim. The index and the consumers get the real maximum.
    head = restamped(batch, header, 0, LEADER_EPOCH, timestamp_type, max_timestamp_ms)
    body = b"".join((head[STAMPED_BYTES:], batch[HEADER_BYTES:]))
    return PreparedBatch(parse_header(head), body, max_timestamp_ms)


def _decompressed(
    batch: memoryview, header: RecordBatchHeader, config: LogConfig, budget: OpeningBudget
) -> bytes:
    """The encoded records."""
    max_bytes = min(
        max(budget.batch_bytes, DECOMPRESSED_RATIO * config.max_message_bytes),
        config.max_decompressed_message_bytes,
    )
    allowed_bytes = min(max_bytes, budget.work)
    if max(header.size_bytes, header.record_count * MIN_RECORD_BYTES) > allowed_bytes < max_bytes:
        raise TooMuchWork
    try:
        body = decompress(header.codec, batch[HEADER_BYTES:], allowed_bytes)
    except TooLarge as error:
        if allowed_bytes < max_bytes:
            budget.work = 0
            raise TooMuchWork from None
        raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except WireError as error:
        # Not CORRUPT_MESSAGE, which is for the CRC: a client would retry with the same bytes.
        raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from error
    budget.work -= len(body)
    return body


def _scanned(body: bytes | memoryview, header: RecordBatchHeader, budget: OpeningBudget) -> RecordScan:
    try:
        most_headers = budget.work // SCANNING
        scan = scan_records(body, header.record_count, header.base_timestamp_ms, most_headers)
    except TooManyHeaders:
        budget.work = 0  # they have been counted that far
        raise TooMuchWork from None
    except WireError as error:
        raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from error
    budget.charge(SCANNING * scan.headers)
    return scan


def _check_timestamp_type(header: RecordBatchHeader, config: LogConfig) -> None:
    """As in Kafka, only a topic with log append time, or the lack of a time, refuses a batch that claims to
    have been stamped already; elsewhere the claim is taken away.
    """
    if config.message_timestamp_type is LOG_APPEND_TIME or header.max_timestamp_ms == NO_TIMESTAMP:
        problem = "a producer cannot set log append time"
        indexes = range(min(header.record_count, MAX_RECORD_ERRORS))
        errors = [RecordError(index, problem) for index in indexes]
        raise InvalidRecords(ErrorCode.INVALID_TIMESTAMP, errors)


def _breaks_rules(scan: RecordScan, config: LogConfig, now_ms: int) -> bool:
    if config.is_compacted and scan.has_null_key:
        return True
    return config.message_timestamp_type is not LOG_APPEND_TIME and (
        scan.max_timestamp_ms > now_ms + config.message_timestamp_after_max_ms
        or scan.min_timestamp_ms < now_ms - config.message_timestamp_before_max_ms
    )


def _listed(body: bytes | memoryview, header: RecordBatchHeader) -> Iterator[Record]:
    return parse_records(bytes(body), header.record_count, 0, header.base_timestamp_ms)


def _check_records(
    found: Iterable[Record], config: LogConfig, now_ms: int, check: RecordCheck | None
) -> None:
    """Refuse a batch, naming the first `MAX_RECORD_ERRORS` records that the topic does not allow.

    The error code is INVALID_TIMESTAMP if one of these has a wrong timestamp, otherwise INVALID_RECORD.
    """
    keyless = config.is_compacted
    bounded = config.message_timestamp_type is not LOG_APPEND_TIME
    late_ms = now_ms - config.message_timestamp_before_max_ms
    early_ms = now_ms + config.message_timestamp_after_max_ms
    errors: list[RecordError] = []
    untimely = False
    for index, record in enumerate(found):
        if keyless and record.key is None:
            problem: str | None = "a compacted topic needs a key in every record"
        elif bounded and not (
            record.timestamp_ms == NO_TIMESTAMP or late_ms <= record.timestamp_ms <= early_ms
        ):
            untimely = True
            problem = f"timestamp {record.timestamp_ms} is not within {late_ms} to {early_ms}"
        else:
            problem = None if check is None else check(record)
        if problem is not None:
            errors.append(RecordError(index, problem))
            if len(errors) == MAX_RECORD_ERRORS:
                break
    if errors:
        raise InvalidRecords(ErrorCode.INVALID_TIMESTAMP if untimely else ErrorCode.INVALID_RECORD, errors)


def _rebuilt(
    found: Iterable[Record], header: RecordBatchHeader, config: LogConfig, now_ms: int
) -> PreparedBatch:
    stamp = config.message_timestamp_type is LOG_APPEND_TIME
    batch = build_batch(
        found,
        codec=header.codec if config.compression_type is None else config.compression_type,
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
    rebuilt = parse_header(batch)
    return PreparedBatch(rebuilt, batch[STAMPED_BYTES:], rebuilt.max_timestamp_ms)
