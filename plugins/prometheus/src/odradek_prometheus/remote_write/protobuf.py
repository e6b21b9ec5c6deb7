"""Protobuf's encoding, as far as remote write needs it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

CACHED: Final = 1 << 14


@lru_cache(maxsize=4_096)
def encoded_varint(number: int) -> bytes:
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    digits.append(number)
    return bytes(digits)


SMALL: Final = tuple([encoded_varint(number) for number in range(CACHED)])


def varint(number: int) -> bytes:
    """A number of type uint64 or int64."""
    if 0 <= number < CACHED:
        return SMALL[number]
    return encoded_varint(number & 0xFFFF_FFFF_FFFF_FFFF)


def zigzag(number: int) -> bytes:
    """A number of type sint32 or sint64."""
    return varint(2 * number if number >= 0 else -2 * number - 1)


def tag(field: int, wire_type: int) -> bytes:
    return varint(field << 3 | wire_type)


def delimited(field: int, content: bytes) -> bytes:
    """A field of type bytes, string, message, or a packed list."""
    return tag(field, 2) + varint(len(content)) + content
