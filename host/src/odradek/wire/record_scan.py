"""Check the records of a batch without making objects of them.

After org.apache.kafka.common.record.DefaultRecordBatch and PartialDefaultRecord (Kafka 4.3), which skip keys
and values too. A record is accepted here if and only if `record.parse_records` accepts it.

Every record of every client passes through this loop, so it is written for the usual form: numbers of one or
two bytes. `record.read_record` decides about all others, and about everything malformed. With records as
applications write them (lengths log-normal, keys, two headers or none) the scan takes a third of the time in
which the same records are read.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.wire.errors import Truncated
from odradek.wire.limits import INT64_MAX
from odradek.wire.record import MIN_RECORD_BYTES, NO_TIMESTAMP, MalformedRecord, read_record


class RecordScan(NamedTuple):
    """The figures of a batch whose records are well-formed."""

    max_timestamp_ms: int
    min_timestamp_ms: int
    """Of the records that have a timestamp; `INT64_MAX` if none has."""
    has_null_key: bool
    consecutive: bool
    """The offset deltas are 0, 1, 2 and so on."""
    headers: int
    """The headers of all records."""


def scan_records(
    body: bytes | memoryview, count: int, base_timestamp_ms: int, max_headers: int = INT64_MAX
) -> RecordScan:
    """Check the ``count`` records of ``body``, which must contain nothing else.

    Raises:
        WireError: A record is malformed, or there are more or fewer. `TooManyHeaders` if there are more
            headers than ``max_headers``; the records may be well-formed.
    """
    if count < 1 or count * MIN_RECORD_BYTES > len(body):
        raise Truncated(f"{count} records in {len(body)} bytes")
    try:
        return _scan(body, count, base_timestamp_ms, max_headers)
    except IndexError:
        raise Truncated(f"record ends after byte {len(body)}") from None


def _scan(  # noqa: C901  one loop without calls is what makes it fast
    body: bytes | memoryview, count: int, base_timestamp_ms: int, max_headers: int
) -> RecordScan:
    position, size, headers_left = 0, len(body), max_headers
    latest_ms, earliest_ms = -INT64_MAX, INT64_MAX
    has_null_key, consecutive = False, True
    for index in range(count):
        try:
            # `wide` collects the second bytes: one above 127 says that a third one follows.
            length, wide, at = body[position], 0, position + 2  # after the attributes, which mean nothing yet
            if length > 0x7F:
                wide = body[position + 1]
                length = length & 0x7F | wide << 7
                at += 1
            end = at - 1 + (length >> 1)
            timestamp = body[at]
            at += 1
            if timestamp > 0x7F:
                wide |= body[at]
                timestamp = timestamp & 0x7F | body[at] << 7
                at += 1
            offset = body[at]
            at += 1
            if offset > 0x7F:
                wide |= body[at]
                offset = offset & 0x7F | body[at] << 7
                at += 1
            key = body[at]
            at += 1
            if key > 0x7F:
                wide |= body[at]
                key = key & 0x7F | body[at] << 7
                at += 1
            if key != 1:  # null
                wide |= (key & 1) << 7
                at += key >> 1
            value = body[at]
            at += 1
            if value > 0x7F:
                wide |= body[at]
                value = value & 0x7F | body[at] << 7
                at += 1
            if value != 1:
                wide |= (value & 1) << 7
                at += value >> 1
            headers = body[at]
            at += 1
            if headers:
                wide |= headers | (headers & 1) << 7
                headers >>= 1
                for _ in range(2 * headers if wide < 0x80 else 0):
                    field = body[at]
                    wide |= field | (field & 1) << 7
                    at += 1 + (field >> 1)
            is_usual = wide < 0x80 and not length & 1 and at == end <= size and headers <= headers_left
        except IndexError:
            is_usual = False
        if is_usual:
            time_ms = base_timestamp_ms + ((timestamp >> 1) ^ -(timestamp & 1))
            has_null_key |= key == 1
            consecutive &= offset == index << 1
            position = end
        else:
            record, position = read_record(body, position, 0, base_timestamp_ms, headers_left)
            time_ms, headers = record.timestamp_ms, len(record.headers)
            has_null_key |= record.key is None
            consecutive &= record.offset == index
        headers_left -= headers
        if time_ms > latest_ms:
            latest_ms = time_ms
        if time_ms < earliest_ms and time_ms != NO_TIMESTAMP:
            earliest_ms = time_ms
    if position != size:
        raise MalformedRecord(f"{size - position} bytes after the last of {count} records")
    if latest_ms > INT64_MAX or earliest_ms < -INT64_MAX:
        raise MalformedRecord(f"timestamps from {earliest_ms} to {latest_ms}")
    return RecordScan(latest_ms, earliest_ms, has_null_key, consecutive, max_headers - headers_left)
