"""Protobuf bytes field by field, without objects: only lengths are read, values stay slices of the input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from odradek.otlp.protobuf_bytes import NotOtlp
from odradek.wire.compression import TooLarge

VARINT: Final = 0
FIXED64: Final = 1
LENGTH_DELIMITED: Final = 2
FIXED32: Final = 5


class TooMuchWork(TooLarge):
    """There are more fields to read than the caller has time for."""


@dataclass(slots=True)
class FieldBudget:
    """How many more fields may be read: about half a microsecond each."""

    left: int


Field = tuple[int, int, int, int]
"""Tag (field number times eight plus wire type), start of the tag, start of the value, end of the value."""


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """A number of at most ten bytes, and its end.

    Raises:
        IndexError: The data end first.
        NotOtlp: The number does not end.
    """
    number = shift = 0
    while shift < 70:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
    raise NotOtlp(f"varint of more than ten bytes at {position - 10}")


def fields(data: bytes, budget: FieldBudget, position: int = 0, end: int | None = None) -> Iterator[Field]:
    """The fields of the message in ``data[position:end]``.

    Raises:
        TooMuchWork: There are more of them than the budget allows.
        NotOtlp: A field goes beyond the end, or is of a kind that OTLP does not have (groups).
    """
    last = len(data) if end is None else end
    while position < last:
        start = position
        try:
            tag = data[position]
            position += 1
            if tag > 0x7F:
                tag, position = read_varint(data, start)
            value, position = value_bounds(data, position, tag & 7)
        except IndexError:
            raise NotOtlp(f"ends inside a field at {start}") from None
        if position > last:
            raise NotOtlp(f"field at {start} ends at {position}, its message at {last}")
        if tag < 8:
            raise NotOtlp(f"field number 0 at {start}")
        budget.left -= 1
        if budget.left < 0:
            raise TooMuchWork("too many fields to look at")
        yield tag, start, value, position


def value_bounds(data: bytes, position: int, wire_type: int) -> tuple[int, int]:
    """Start and end of the value whose tag ends at ``position``."""
    if wire_type == LENGTH_DELIMITED:
        return length_bounds(data, position)
    if wire_type == VARINT:
        return position, read_varint(data, position)[1]
    if wire_type == FIXED64:
        return position, position + 8
    if wire_type == FIXED32:
        return position, position + 4
    raise NotOtlp(f"wire type {wire_type} at {position}")


def length_bounds(data: bytes, position: int) -> tuple[int, int]:
    """Start and end of the value whose length is at ``position``; the end may lie beyond the data."""
    length = data[position]
    if length < 0x80:
        return position + 1, position + 1 + length
    # Two bytes are the rule above 127: they are read without a loop.
    high = data[position + 1]
    if high < 0x80:
        return position + 2, position + 2 + (length & 0x7F | high << 7)
    length, position = read_varint(data, position)
    return position, position + length
