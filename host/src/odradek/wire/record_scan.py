"""Check the records of a batch without making objects of them.

After org.apache.kafka.common.record.DefaultRecordBatch and PartialDefaultRecord (Kafka 4.4), which skip keys
and values too. A record is accepted here if and only if `record.parse_records` accepts it.

Every record of every client passes through `walk_records`. The distribution odradek-speed has it as a C
function; the one below is used without it. It is written for the usual form, numbers of one or two bytes, and
`record.read_record` decides about all others.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.wire.errors import Truncated, WireError
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


Walk = tuple[int, int, int, int, bool, bool, int]
"""The well-formed records, the position after them, four figures of a `RecordScan`, and the headers that are
left of those allowed."""


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
    walked = walk_records(body, count, base_timestamp_ms, max_headers)
    found, position, latest_ms, earliest_ms, has_null_key, consecutive, headers_left = walked
    if found < count:
        try:
            read_record(body, position, 0, base_timestamp_ms, headers_left)
        except IndexError:
            raise Truncated(f"record ends after byte {len(body)}") from None
        raise MalformedRecord(f"record {found} at {position}")
    if position != len(body):
        raise MalformedRecord(f"{len(body) - position} bytes after the last of {count} records")
    return RecordScan(latest_ms, earliest_ms, has_null_key, consecutive, max_headers - headers_left)


def walk_in_python(  # noqa: C901  one loop without calls is what makes it fast
    body: bytes | memoryview, count: int, base_timestamp_ms: int, max_headers: int
) -> Walk:
    """Walk over well-formed records, up to ``count``, or to the first that is not well-formed."""
    index, position, size, headers_left = 0, 0, len(body), max_headers
    latest_ms, earliest_ms = -INT64_MAX, INT64_MAX
    has_null_key, consecutive = False, True
    is_common_time = abs(base_timestamp_ms) < INT64_MAX >> 1
    while index < count:
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
            is_usual = (
                wide < 0x80 and not length & 1 and at == end <= size and headers <= headers_left
            ) and is_common_time
        except IndexError:
            is_usual = False
        if is_usual:
            time_ms = base_timestamp_ms + ((timestamp >> 1) ^ -(timestamp & 1))
            has_null_key |= key == 1
            consecutive &= offset == index << 1
            position = end
        else:
            try:
                record, position = read_record(body, position, 0, base_timestamp_ms, headers_left)
            except (IndexError, WireError):
                break
            time_ms, headers = record.timestamp_ms, len(record.headers)
            has_null_key |= record.key is None
            consecutive &= record.offset == index
        headers_left -= headers
        if time_ms > latest_ms:
            latest_ms = time_ms
        if time_ms < earliest_ms and time_ms != NO_TIMESTAMP:
            earliest_ms = time_ms
        index += 1
    return index, position, latest_ms, earliest_ms, has_null_key, consecutive, headers_left


try:
    from odradek_speed.records import walk_records as walk_records
except ImportError:  # not installed, or installed where there was no compiler
    walk_records = walk_in_python
