"""One record inside a batch of magic 2: zig-zag varints, nullable key and value, headers.

After org.apache.kafka.common.record.DefaultRecord and utils.ByteUtils (Kafka 4.3). Every length is checked
against the remaining bytes before it is used; a length that does not fit is a ``WireError``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from odradek.wire.errors import Truncated, WireError
from odradek.wire.limits import INT64_MAX
from odradek.wire.varint import read_varint
from odradek.wire.varint import varint as unsigned_varint

NO_TIMESTAMP: Final = -1
MIN_RECORD_BYTES: Final = 7
"""One byte each for length, attributes, timestamp delta, offset delta, null key, null value, no headers."""
_INT32_BITS: Final = 0xFFFFFFFF
_INT64_BITS: Final = 0xFFFFFFFFFFFFFFFF

Headers = tuple[tuple[str, bytes | None], ...]


class MalformedRecord(WireError):
    """The lengths or numbers inside a record are inconsistent."""


class TooManyHeaders(WireError):
    """The records have more headers than the caller allows; they may be well-formed."""


class Record(NamedTuple):
    """A record as its producer sent it."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int = NO_TIMESTAMP
    headers: Headers = ()
    """A key that is not UTF-8 has surrogate escapes, so that encoding it again gives the same bytes."""
    offset: int = 0


def parse_records(body: bytes, count: int, base_offset: int, base_timestamp_ms: int) -> Iterator[Record]:
    """The ``count`` records of ``body``, which must contain nothing else.

    Raises:
        WireError: While iterating, at the first malformed record.
    """
    if count < 0 or count * MIN_RECORD_BYTES > len(body):
        raise Truncated(f"{count} records in {len(body)} bytes")
    position = 0
    try:
        for _ in range(count):
            record, position = read_record(body, position, base_offset, base_timestamp_ms)
            yield record
    except IndexError:
        raise Truncated(f"record ends after byte {len(body)}") from None
    if position != len(body):
        raise MalformedRecord(f"{len(body) - position} bytes after the last of {count} records")


def read_record(
    body: bytes | memoryview,
    position: int,
    base_offset: int,
    base_timestamp_ms: int,
    max_headers: int = INT64_MAX,
) -> tuple[Record, int]:
    """The record at ``position``, and the position after it.

    Raises:
        IndexError: The body ends inside the record.
        WireError: The record is malformed. `TooManyHeaders` if it has more headers than ``max_headers``.
    """
    length, position = varint(body, position)
    end = position + length
    if length < 0 or end > len(body):
        raise Truncated(f"record of {length} bytes at {position}, {len(body) - position} left")
    timestamp_delta, position = varlong(body, position + 1)  # after the attributes, which mean nothing yet
    offset_delta, position = varint(body, position)
    key, position = _nullable(body, position, end)
    value, position = _nullable(body, position, end)
    headers, position = _headers(body, position, end, max_headers)
    if position != end:
        raise MalformedRecord(f"record should end at {end}, ends at {position}")
    timestamp_ms = base_timestamp_ms + timestamp_delta
    if not -INT64_MAX <= timestamp_ms <= INT64_MAX:
        raise MalformedRecord(f"timestamp {timestamp_ms}")
    return Record(key, value, timestamp_ms, headers, base_offset + offset_delta), end


def _nullable(body: bytes | memoryview, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = varint(body, position)
    stop = position + length
    if length < 0:
        if length != -1:
            raise MalformedRecord(f"length {length} at {position}")
        return None, position
    if stop > end:
        raise Truncated(f"need {length} bytes at {position}, have {end - position}")
    return bytes(body[position:stop]), stop


def _headers(body: bytes | memoryview, position: int, end: int, most: int) -> tuple[Headers, int]:
    if body[position] == 0:
        return (), position + 1
    count, position = varint(body, position)
    if not 0 <= 2 * count <= end - position:
        raise MalformedRecord(f"{count} headers in {end - position} bytes")
    if count > most:
        raise TooManyHeaders(f"more than {most} headers")
    headers = []
    for _ in range(count):
        key, position = _nullable(body, position, end)
        if key is None:
            raise MalformedRecord("null header key")
        value, position = _nullable(body, position, end)
        headers.append((key.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position


def varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A signed zig-zag varint of up to 32 bits and the position after it. ``IndexError`` if the data ends."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return _long_varint(data, position, _INT32_BITS)


def varlong(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Like `varint`, with up to 64 bits."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return _long_varint(data, position, _INT64_BITS)


def _long_varint(data: bytes | memoryview, position: int, largest: int) -> tuple[int, int]:
    value, position = read_varint(data, position, largest)
    return (value >> 1) ^ -(value & 1), position


_ONE_BYTE: Final = tuple(bytes((unsigned,)) for unsigned in range(0x80))
_NULL: Final = b"\x01"


def encoded_varint(value: int) -> bytes:
    """``value``, which has at most 64 bits, as a signed zig-zag varint."""
    unsigned = value << 1 if value >= 0 else ~(value << 1)
    return _ONE_BYTE[unsigned] if unsigned < 0x80 else unsigned_varint(unsigned)


def append_record(parts: list[bytes], record: Record, offset_delta: int, timestamp_delta_ms: int) -> None:
    """Append the encoded pieces of ``record`` to ``parts``, which the caller joins. Values are not copied."""
    body = [b"\x00", encoded_varint(timestamp_delta_ms), encoded_varint(offset_delta)]
    _append_nullable(body, record.key)
    _append_nullable(body, record.value)
    body.append(encoded_headers(record.headers) if record.headers else b"\x00")
    parts.append(encoded_varint(sum(map(len, body))))
    parts += body


def encoded_headers(headers: Headers) -> bytes:
    """The number of headers, then the headers."""
    parts = [encoded_varint(len(headers))]
    for key, value in headers:
        _append_nullable(parts, key.encode("utf-8", "surrogateescape"))
        _append_nullable(parts, value)
    return b"".join(parts)


def _append_nullable(parts: list[bytes], value: bytes | None) -> None:
    if value is None:
        parts.append(_NULL)
    else:
        length = len(value)
        parts.append(_ONE_BYTE[length << 1] if length < 64 else encoded_varint(length))
        parts.append(value)
