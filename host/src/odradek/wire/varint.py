"""Unsigned varints: lengths, counts and tags of flexible versions (KIP-482, ByteUtils.java)."""

from __future__ import annotations

from odradek.wire.errors import WireError
from odradek.wire.types import Buffer

LARGEST = 0x7FFF_FFFF
"""Whatever a varint counts fits into a Java int."""
MAX_TAGS = 1000
"""Of a section in a header. Nobody sends more than a few; skipping them costs time, not memory."""


def read_varint(buffer: Buffer, offset: int) -> tuple[int, int]:
    """The number at ``offset`` and the offset behind it.

    Raises:
        IndexError: The buffer ends first. Compiled readers turn that into `Truncated`.
        WireError: More than five bytes, or more than `LARGEST`.
    """
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = buffer[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > LARGEST:
                raise WireError(f"varint {value} exceeds {LARGEST}")
            return value, offset
    raise WireError(f"varint of more than 5 bytes before {offset}")


def varint(value: int) -> bytes:
    """The bytes of a number from 0 to `LARGEST`."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


SMALL = tuple(varint(value) for value in range(256))
"""The bytes of frequent numbers, ready made."""


def skip_tags(buffer: Buffer, offset: int) -> int:
    """The offset behind the tagged section at ``offset``, none of whose tags is known.

    Raises:
        IndexError: The buffer ends first, or a tag reaches beyond it.
        WireError: Tags do not ascend, or are more than `MAX_TAGS`.
    """
    count, offset = read_varint(buffer, offset)
    if count > MAX_TAGS:
        raise WireError(f"{count} tags are more than {MAX_TAGS}")
    last = -1
    for _ in range(count):
        number, offset = read_varint(buffer, offset)
        size, offset = read_varint(buffer, offset)
        if number <= last:
            raise tag_disorder(number, last)
        last = number
        offset += size
    if offset > len(buffer):
        raise IndexError
    return offset


def tag_disorder(number: int, last: int) -> WireError:
    """What is wrong with a tag that comes twice, or after a larger one."""
    return WireError(f"tag {number} after tag {last}")
