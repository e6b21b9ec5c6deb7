"""Unsigned varints (ByteUtils.java): lengths, counts and tags of flexible versions (KIP-482), and, zig-zag
coded, the numbers of records.
"""

from __future__ import annotations

from odradek.wire.errors import WireError
from odradek.wire.types import Buffer

LARGEST = 0x7FFF_FFFF
"""Lengths, counts and tags fit into a Java int."""
MAX_TAGS = 10_000
"""The most tags in a tagged section, as in Kafka 4.4."""
MAX_STRING = 32_767
"""The most bytes of a string, as in Kafka 4.4. Older versions of messages cannot declare more."""


def read_varint(buffer: Buffer | bytearray, offset: int, largest: int = LARGEST) -> tuple[int, int]:
    """The number at ``offset`` and the offset after it.

    Raises:
        IndexError: The buffer ends first. Compiled readers turn this into `Truncated`.
        WireError: The varint has more bytes than ``largest``, or exceeds it.
    """
    value = shift = 0
    while largest >> shift:
        byte = buffer[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > largest:
                raise WireError(f"varint {value} exceeds {largest}")
            return value, offset
        shift += 7
    raise WireError(f"varint of more than {shift // 7} bytes before {offset}")


def varint(value: int) -> bytes:
    """The bytes of a number from 0 on."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


SMALL = tuple(varint(value) for value in range(256))
"""The encoded bytes of small numbers."""


def skip_tags(buffer: Buffer, offset: int) -> int:
    """The offset after the tagged section of a header, all of whose tags are unknown.

    Raises:
        IndexError: The buffer ends first, or a tag extends beyond it.
        WireError: There are more than `MAX_TAGS`.
    """
    count, offset = read_varint(buffer, offset)
    if count > MAX_TAGS:
        raise too_many_tags(count)
    for _ in range(count):
        _, offset = read_varint(buffer, offset)
        size, offset = read_varint(buffer, offset)
        offset += size
    if offset > len(buffer):
        raise IndexError
    return offset


def too_many_tags(count: int) -> WireError:
    """The error for a tagged section with more than `MAX_TAGS`."""
    return WireError(f"{count} tags are more than {MAX_TAGS}")


def long_string(name: str, size: int) -> WireError:
    """The error for a string of more than `MAX_STRING` bytes."""
    return WireError(f"{name} of {size} bytes is longer than {MAX_STRING}")
