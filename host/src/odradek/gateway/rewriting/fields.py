"""Positions of the fields of a response, read without decoding the values."""

from __future__ import annotations

import struct

from odradek.wire.errors import WireError
from odradek.wire.varint import MAX_TAGS, read_varint, too_many_tags, varint

BROKEN = (IndexError, struct.error, UnicodeDecodeError, WireError)
"""The exceptions of reading past the end, a wrong size or a wrong text."""
INT32 = struct.Struct(">i")
INT16 = struct.Struct(">h")
int32_at = INT32.unpack_from
int16_at = INT16.unpack_from
LENGTH_BYTES = INT32.size

Tags = list[tuple[int, bytes]]
"""A tagged section: number and content of each tag."""


def text_start(data: bytes, at: int, flexible: bool) -> int:
    """Return where the content of a string starts whose length is at a position."""
    return read_varint(data, at)[1] if flexible else at + INT16.size


def text(value: str, flexible: bool) -> bytes:
    """Return a string as bytes, its length first."""
    content = value.encode()
    return (varint(len(content) + 1) if flexible else INT16.pack(len(content))) + content


def count_at(data: bytes, at: int, flexible: bool) -> tuple[int, int]:
    """Return the number of elements of an array, -1 for null, and the position of the first."""
    if flexible:
        count, at = read_varint(data, at)
        return count - 1, at
    (count,) = int32_at(data, at)
    if count < -1:
        raise WireError(f"{count} elements before {at + 4}")
    return count, at + 4


def tags_at(data: bytes, at: int) -> tuple[Tags, int]:
    """Return the tags of a section and the position after it.

    Raises:
        IndexError: The data ends first.
        WireError: The tags do not ascend, or there are more than `MAX_TAGS`.
    """
    count, at = read_varint(data, at)
    if count > MAX_TAGS:
        raise too_many_tags(count)
    tags: Tags = []
    last = -1
    for _ in range(count):
        number, at = read_varint(data, at)
        size, at = read_varint(data, at)
        if number <= last:
            raise WireError(f"tag {number} after tag {last}")
        last = number
        end = at + size
        if end > len(data):
            raise IndexError
        tags.append((number, data[at:end]))
        at = end
    return tags, at


def require_end(data: bytes, at: int) -> None:
    """Check that a message ends where its data does.

    Raises:
        WireError: There are bytes after the message, which could hold anything.
    """
    if at != len(data):
        raise WireError(f"the message ends at {at}, its frame at {len(data)}")
