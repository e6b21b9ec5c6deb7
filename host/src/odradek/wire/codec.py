"""Conversion of bytes to messages and back.

A codec is straight-line Python for one version of one message, compiled on first use and cached. Tracebacks
show its lines.

Bounds: a reader takes no memory for a length or count before it has checked that the buffer holds that much.
All arrays and tags of a request together have at most `MAX_ELEMENTS` elements, those of a response
`MAX_RESPONSE_ELEMENTS`. (Kafka 4.4 has no such total, and allows 1 000 000 for each array.) A tagged section
has at most `MAX_TAGS`, as in Kafka. A message therefore occupies less than four times its bytes plus 1000
bytes for each element (a string with one rare character takes four bytes for each character, and six while
it is decoded).
The largest element, a partition of a FetchResponse, takes about 900 bytes; most take less than 300.

A request takes 0.3 to 1.2 µs per element, so 6 to 25 ms for the largest (tests/bench/elements.py, EPYC,
November 2026). The host reads large ones in steps, with a `stepped_reader`. The bound cannot be lower: a
CreateTopics request with more than 10 000 partitions of one replica (MAX_PARTITIONS_PER_BATCH in Kafka) has
20 003 elements, and the client must get an answer instead of a closed connection.

Bytes after the end of a message are ignored, as in Kafka.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from odradek.wire.layout import ArrayOf, StructOf, layout
from odradek.wire.parts import Parts
from odradek.wire.reader_source import (
    MAX_ELEMENTS,
    MAX_RESPONSE_ELEMENTS,
    SteppedRead,
    compile_reader,
    compile_stepped_reader,
    has_loops,
)
from odradek.wire.types import Buffer
from odradek.wire.writer_source import compile_writer

__all__ = [
    "MAX_ELEMENTS", "MAX_RESPONSE_ELEMENTS", "SteppedRead", "decode", "element_writer", "encode", "reader",
    "stepped_reader", "takes_steps", "writer",
]  # fmt: skip

T = TypeVar("T")


def decode(cls: type[T], version: int, data: Buffer, offset: int = 0) -> T:
    """Read the message at ``offset``.

    Strings and ``Bytes`` are copies, ``Records`` are views into ``data``. Fields that the version does not
    have get their defaults.

    Raises:
        WireError: The bytes do not follow the protocol, or the message has no such version.
        Truncated: The bytes end before the message does.
    """
    message, _ = reader(cls, version)(data, offset)
    return message


def encode(message: object, version: int) -> bytes:
    """Write a message.

    Fields that the version does not have are left out, whatever their values. Tagged fields are left out
    if they equal their defaults.

    Raises:
        WireError: A value is null, out of range or of the wrong type; or the message has no such version.
    """
    data = writer(type(message), version)(message)
    return bytes(data) if isinstance(data, Parts) else data


def reader(cls: type[T], version: int) -> Callable[[Buffer, int], tuple[T, int]]:
    """The function that `decode` uses: takes a buffer and an offset, returns the message and its end.

    Raises:
        WireError: The message has no such version.
    """
    return compiled_reader(cls, version)  # type: ignore[arg-type]  # mypy doubts that classes are hashable


def stepped_reader(cls: type[T], version: int) -> Callable[..., SteppedRead]:
    """The function that reads a large message in steps; only if it `takes_steps`.

    Raises:
        WireError: The message has no such version.
    """
    return compiled_stepped_reader(cls, version)  # type: ignore[arg-type]  # as in `reader`


def takes_steps(cls: type, version: int) -> bool:
    """Whether a message has arrays that take long to read, if they are large: those of numbers do not.

    Raises:
        WireError: The message has no such version.
    """
    return has_loops(layout(cls, version))


def writer(cls: type[T], version: int) -> Callable[[T], bytes | Parts]:
    """The function that `encode` uses. It returns `Parts` if records of the message are still in files.

    Raises:
        WireError: The message has no such version.
    """
    return compiled_writer(cls, version)  # type: ignore[arg-type]  # mypy doubts that classes are hashable


@functools.cache
def element_writer(cls: type, version: int, *arrays: str) -> Callable[[Any], bytes] | None:
    """The function that writes one element of an array of a response, for `EncodedElements`.

    None if this version of the response has no such array.

    Args:
        cls: The class of the response.
        version: Its version.
        arrays: The name of the array at the top, or that and the name of an array in its elements.

    Raises:
        WireError: The message has no such version.
    """
    shape = layout(cls, version)
    for array in arrays:
        elements = [
            field.kind.element
            for field in shape.fields
            if field.name == array and isinstance(field.kind, ArrayOf)
        ]
        if not elements:
            return None
        assert isinstance(elements[0], StructOf)
        shape = elements[0]
    compiled = compile_writer(shape, f"{cls.__name__} v{version} {'.'.join(arrays)} writer")
    return cast("Callable[[Any], bytes]", compiled)  # only records make `Parts`


@functools.cache
def compiled_reader(cls: type, version: int) -> Callable[[Buffer, int], tuple[Any, int]]:
    """`reader` without its type. The cache stays bounded: a version that is not declared raises."""
    return compile_reader(layout(cls, version), f"{cls.__name__} v{version} reader")


@functools.cache
def compiled_stepped_reader(cls: type, version: int) -> Callable[..., SteppedRead]:
    """`stepped_reader` without its type."""
    return compile_stepped_reader(layout(cls, version), f"{cls.__name__} v{version} stepped reader")


@functools.cache
def compiled_writer(cls: type, version: int) -> Callable[[Any], bytes | Parts]:
    """`writer` without its type."""
    return compile_writer(layout(cls, version), f"{cls.__name__} v{version} writer")
