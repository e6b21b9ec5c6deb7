"""Check the records of a batch without making objects of them.

After org.apache.kafka.common.record.DefaultRecordBatch and PartialDefaultRecord (Kafka 4.3), which skip keys
and values too. A record is accepted here if and only if `record.parse_records` accepts it.

Every record of every client passes through this loop, so it is written for the usual shape: numbers of one or
two bytes. Such a record takes about ten lookups, a third of the time that `Record` takes. `_skimmed` decides
about all others, and about everything malformed.

A batch often has one record only. If that has the usual shape, `_only` needs no loop.

Producers often send records of one size. Several of those are checked together by `_run`: each field of all
of them is one slice, so that the interpreter's work is per batch, and not per record.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from odradek.wire.errors import Truncated, WireError
from odradek.wire.limits import INT64_MAX
from odradek.wire.record import MIN_RECORD_BYTES, NO_TIMESTAMP, MalformedRecord, varint, varlong

FIRST_RUN: Final = 16
LONGEST_RUN: Final = 1_024
"""How many records of the same shape are looked for at once, at first and after successes."""
PAUSE: Final = 64
"""How many records pass before the next attempt after one that failed."""
_OFFSETS_OF_ONE_BYTE: Final = bytes(2 * index for index in range(64))
_FIRST_BYTES: Final = bytes(2 * index & 0x7F | 0x80 for index in range(8_192))
_SECOND_BYTES: Final = bytes(2 * index >> 7 for index in range(8_192))
_BELOW_ALL: Final = -(1 << 65)
_UNSEEN: Final = -1
"""Stands for the timestamp of no record: encoded numbers are positive."""


class ScanTooLong(WireError):
    """The records take longer than the caller allows; they may be well-formed."""


class RecordScan(NamedTuple):
    """The figures of a batch whose records are well-formed."""

    max_timestamp_ms: int
    min_timestamp_ms: int
    """Of the records that have a timestamp; `INT64_MAX` if none has."""
    has_null_key: bool
    consecutive: bool
    """The offset deltas are 0, 1, 2 and so on."""
    work: int
    """How many records were checked one by one, how many headers, and an eighth of the other records."""


def scan_records(
    body: bytes | memoryview,
    count: int,
    base_timestamp_ms: int,
    max_singles: int = INT64_MAX,
    max_headers: int = INT64_MAX,
) -> RecordScan:
    """Check the ``count`` records of ``body``, which must contain nothing else.

    Raises:
        WireError: A record is malformed, or there are more or fewer. `ScanTooLong` if more than
            ``max_singles`` would have to be checked one by one, or more than ``max_headers`` be read.
    """
    if count < 1 or count * MIN_RECORD_BYTES > len(body):
        raise Truncated(f"{count} records in {len(body)} bytes")
    try:
        scan = _only(body, base_timestamp_ms) if count == 1 else None
    except IndexError:
        scan = None
    try:
        if scan is None:
            scan = _scan(body, count, base_timestamp_ms, max_singles, max_headers)
    except IndexError:
        raise Truncated(f"record ends after byte {len(body)}") from None
    latest_ms, earliest_ms = scan.max_timestamp_ms, scan.min_timestamp_ms
    if latest_ms > INT64_MAX or earliest_ms < -INT64_MAX:
        raise MalformedRecord(f"timestamps from {earliest_ms} to {latest_ms}")
    return scan


def _only(body: bytes | memoryview, base_timestamp_ms: int) -> RecordScan | None:
    """The figures of a body with one record of the usual shape: its deltas are 0, it has no headers, and its
    lengths take two bytes at most. None for every other body.
    """
    second_bytes = 0  # if one of them says that a third follows, everything decoded from there on is wrong
    length, at = body[0], 2  # after the attributes, which mean nothing yet
    if length > 0x7F:
        second_bytes = body[1]
        length, at = length & 0x7F | second_bytes << 7, 3
    if length != len(body) - at + 1 << 1 or body[at] or body[at + 1]:
        return None
    key = body[at + 2]
    at += 3
    if key > 0x7F:
        second = body[at]
        second_bytes |= second
        key = key & 0x7F | second << 7
        at += 1
    if key != 1:
        second_bytes |= (key & 1) << 7
        at += key >> 1
    value = body[at]
    at += 1
    if value > 0x7F:
        second = body[at]
        second_bytes |= second
        value = value & 0x7F | second << 7
        at += 1
    if value != 1:
        second_bytes |= (value & 1) << 7
        at += value >> 1
    if second_bytes > 0x7F or at + 1 != len(body) or body[at]:
        return None
    earliest_ms = INT64_MAX if base_timestamp_ms == NO_TIMESTAMP else base_timestamp_ms
    return RecordScan(base_timestamp_ms, earliest_ms, key == 1, True, 1)


def _scan(  # noqa: C901  one loop without calls is what makes it fast
    body: bytes | memoryview, count: int, base_timestamp_ms: int, max_singles: int, max_headers: int
) -> RecordScan:
    """The figures of any body."""
    size = len(body)
    index = position = 0
    highest = _BELOW_ALL
    lowest = INT64_MAX - base_timestamp_ms
    without_timestamp = NO_TIMESTAMP - base_timestamp_ms
    last_encoded = _UNSEEN
    has_null_key, consecutive, headers_left = False, True, max_headers
    in_runs = 0
    last_bytes, run, run_limit, try_run_at = 0, 0, FIRST_RUN, 0
    while True:
        stop = min(count, max_singles + in_runs)
        if index >= stop:
            raise ScanTooLong(f"more than {max_singles} records of different shapes")
        try:
            for index in range(index, stop):  # noqa: B020  goes on after an unusual record
                # Second bytes are collected: if one of them says that a third follows, everything decoded
                # from there on is wrong, and the record is unusual.
                second_bytes = 0
                length = body[position]
                at = position + 2  # after the length and the attributes, which mean nothing yet
                if length > 0x7F:
                    second_bytes = body[position + 1]
                    length = length & 0x7F | second_bytes << 7
                    at += 1
                end = at - 1 + (length >> 1)
                timestamp = body[at]
                at += 1
                if timestamp > 0x7F:
                    second = body[at]
                    second_bytes |= second
                    timestamp = timestamp & 0x7F | second << 7
                    at += 1
                offset = body[at]
                at += 1
                if offset > 0x7F:
                    second = body[at]
                    second_bytes |= second
                    offset = offset & 0x7F | second << 7
                    at += 1
                key = body[at]
                at += 1
                if key > 0x7F:
                    second = body[at]
                    second_bytes |= second
                    key = key & 0x7F | second << 7
                    at += 1
                if key != 1:
                    at += key >> 1
                value = body[at]
                at += 1
                if value > 0x7F:
                    second = body[at]
                    second_bytes |= second
                    value = value & 0x7F | second << 7
                    at += 1
                if value != 1:
                    # Odd numbers stand for negative lengths; -1, which is 1, is null.
                    second_bytes |= (value & 1) << 7
                    at += value >> 1
                if second_bytes > 0x7F or length & 1 or end > size:
                    break
                headers = body[at]
                if headers:
                    # The number takes one byte.
                    if headers & 1 or headers > 0x7F:
                        break
                    headers >>= 1
                    if headers > headers_left:
                        break
                    at = _headers_end(body, at + 1, end, headers) - 1
                    headers_left -= headers
                if at + 1 != end:
                    break
                if key & 1:
                    if key != 1:
                        break
                    has_null_key = True
                if offset != index << 1:
                    consecutive = False
                if timestamp != last_encoded:
                    last_encoded = timestamp
                    delta = (timestamp >> 1) ^ -(timestamp & 1)
                    if delta > highest:
                        highest = delta
                    if delta < lowest and delta != without_timestamp:
                        lowest = delta
                if end - position == last_bytes and index >= try_run_at and not headers:
                    position = end
                    run, timestamps = _run(
                        body, end, last_bytes, index + 1, min(run_limit, count - index - 1)
                    )
                    if run:
                        run_limit = min(2 * run_limit, LONGEST_RUN)
                        for timestamp in timestamps:
                            delta = (timestamp >> 1) ^ -(timestamp & 1)
                            if delta > highest:
                                highest = delta
                            if delta < lowest and delta != without_timestamp:
                                lowest = delta
                        break
                    run_limit, try_run_at = FIRST_RUN, index + PAUSE
                    continue
                last_bytes = end - position
                position = end
            else:
                if stop == count:
                    break
                index = stop
                continue
        except IndexError:
            run = 0  # the record is unusual, or the body ends: the next lines find out
        if run:
            in_runs += run
            index += run + 1
            position += run * last_bytes
            run = 0
            if index == count:
                break
            continue
        delta, offset_delta, is_null, headers, position = _skimmed(body, position, headers_left)
        headers_left -= headers
        has_null_key |= is_null
        consecutive &= offset_delta == index
        if delta > highest:
            highest = delta
        if delta < lowest and delta != without_timestamp:
            lowest = delta
        index += 1
        if index == count:
            break
    if position != size:
        raise MalformedRecord(f"{size - position} bytes after the last of {count} records")
    latest_ms, earliest_ms = base_timestamp_ms + highest, base_timestamp_ms + lowest
    work = count - in_runs + in_runs // 8 + max_headers - headers_left
    return RecordScan(latest_ms, earliest_ms, has_null_key, consecutive, work)


def _run(
    body: bytes | memoryview, position: int, size: int, index: int, most: int
) -> tuple[int, Collection[int]]:
    """Check several records of the same shape as the one before them, each field of all of them at once.

    Args:
        body: The records.
        position: Where the first of them begins. The record before it is well-formed and has no headers.
        size: Bytes of each record, and of the one before.
        index: The number of the first record.
        most: How many records to check.

    Returns:
        How many records were checked: 0 if any of them differs. Their encoded timestamp deltas.
    """
    width_ends = 64 if index < 64 else 8_192  # the first number whose offset takes one byte more
    most = min(most, width_ends - index, (len(body) - position) // size)
    if most < FIRST_RUN:
        return 0, ()
    template = bytes(body[position - size : position])
    time_at = 2 if template[0] < 0x80 else 3
    offset_at = time_at + (1 if template[time_at] < 0x80 else 2)
    key_at = offset_at + (1 if template[offset_at] < 0x80 else 2)
    if key_at - offset_at != (1 if index < 64 else 2):
        return 0, ()
    key_length, value_at = varint(template, key_at)
    value_at += max(0, key_length)
    _, value = varint(template, value_at)
    stop = position + most * size
    lengths = (*range(time_at - 1), *range(key_at, value_at - max(0, key_length)), *range(value_at, value))
    for at in (*lengths, size - 1):
        if bytes(body[position + at : stop : size]) != template[at : at + 1] * most:
            return 0, ()
    if index < 64:
        expected = _OFFSETS_OF_ONE_BYTE[index : index + most]
    else:
        expected = _SECOND_BYTES[index : index + most]
        if bytes(body[position + offset_at + 1 : stop : size]) != expected:
            return 0, ()
        expected = _FIRST_BYTES[index : index + most]
    if bytes(body[position + offset_at : stop : size]) != expected:
        return 0, ()
    return _timestamps(body, position + time_at, stop, size, offset_at - time_at, most)


def _timestamps(
    body: bytes | memoryview, position: int, stop: int, size: int, width: int, count: int
) -> tuple[int, Collection[int]]:
    first = bytes(body[position:stop:size])
    if width == 1:
        different = set(first)
        return (count, different) if max(different) < 0x80 else (0, ())
    second = bytes(body[position + 1 : stop : size])
    if min(first) < 0x80 or max(second) > 0x7F:
        return 0, ()
    return count, {low & 0x7F | high << 7 for low, high in set(zip(first, second, strict=True))}


def _skimmed(body: bytes | memoryview, position: int, max_headers: int) -> tuple[int, int, bool, int, int]:
    """Timestamp delta, offset delta, whether the key is null, the number of headers, and the end."""
    length, position = varint(body, position)
    end = position + length
    if length < 0 or end > len(body):
        raise Truncated(f"record of {length} bytes at {position}, {len(body) - position} left")
    timestamp_delta, position = varlong(body, position + 1)
    offset_delta, position = varint(body, position)
    key_length, position = _skipped(body, position, end)
    _, position = _skipped(body, position, end)
    count, position = varint(body, position)
    if not 0 <= 2 * count <= end - position:
        raise MalformedRecord(f"{count} headers in {end - position} bytes")
    if count > max_headers:
        raise ScanTooLong(f"more than {max_headers} headers")
    position = _headers_end(body, position, end, count)
    if position != end:
        raise MalformedRecord(f"record should end at {end}, ends at {position}")
    return timestamp_delta, offset_delta, key_length < 0, count, end


def _headers_end(body: bytes | memoryview, position: int, end: int, count: int) -> int:
    """The position after ``count`` headers."""
    for _ in range(count):
        length = body[position]
        if length < 0x7F and not length & 1:
            position += 1 + (length >> 1)
        else:
            length, position = _skipped(body, position, end)
            if length < 0:
                raise MalformedRecord("null header key")
        length = body[position]
        if length < 0x7F and not length & 1:
            position += 1 + (length >> 1)
        else:
            _, position = _skipped(body, position, end)
    return position


def _skipped(body: bytes | memoryview, position: int, end: int) -> tuple[int, int]:
    """Length of a nullable field, and the position after it."""
    length, position = varint(body, position)
    if length < 0:
        if length != -1:
            raise MalformedRecord(f"length {length} at {position}")
        return length, position
    position += length
    if position > end:
        raise Truncated(f"{length} bytes end at {position}, the record at {end}")
    return length, position
