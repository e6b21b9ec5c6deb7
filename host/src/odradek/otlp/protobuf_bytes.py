"""Length-delimited protobuf fields, written without the protobuf library."""

from __future__ import annotations

from typing import Final

from odradek.wire.errors import WireError

ONE_BYTE: Final = tuple(bytes((number,)) for number in range(0x80))


class NotOtlp(WireError):
    """The bytes are not a serialized MetricsData, or not the part of one that is expected.

    Args:
        reason: What is wrong, and where.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


def varint(number: int) -> bytes:
    """The encoding of a length."""
    if number < 0x80:
        return ONE_BYTE[number]
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    return bytes((number & 0x7F | 0x80,)) + varint(number >> 7)


def delimited(tag: int, value: bytes) -> bytes:
    """The encoding of a length-delimited field.

    Args:
        tag: Field number times eight plus 2; below 128, so the field number is at most 15.
        value: The bytes, the text in UTF-8 or the serialized message.
    """
    return ONE_BYTE[tag] + varint(len(value)) + value
