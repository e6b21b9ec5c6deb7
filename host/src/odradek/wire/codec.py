"""Bytes to messages and back.

A codec is straight-line Python, compiled on first use for one version of one message and kept. Tracebacks
through it show its lines.

Bounds: a reader takes no memory for a length or count before it has seen that the buffer holds as much,
and no message has more than `MAX_ELEMENTS` elements in all its arrays (and tags) together, a response
`MAX_RESPONSE_ELEMENTS`. What a message occupies is therefore less than four times its bytes (a string with
one rare character takes four bytes for each; six times while it is decoded) plus 1000 bytes for each
element. The largest element is a partition of a FetchResponse with about 900; most have less than 300.

A request is read on the host's loop, in one go: 0.3 to 1.2 µs for each element, so 6 to 25 ms for the longest
(tests/bench/elements.py, EPYC, November 2026). The bound cannot be lower: CreateTopics is to be answered,
not cut off, with more than 10 000 partitions of one replica (MAX_PARTITIONS_PER_BATCH in Kafka), which are
20 003 elements.

Bytes behind the end of a message are ignored, as Kafka does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from odradek.wire.layout import layout
from odradek.wire.reader_source import MAX_ELEMENTS, MAX_RESPONSE_ELEMENTS, compile_reader
from odradek.wire.types import Buffer
from odradek.wire.writer_source import compile_writer

__all__ = ["MAX_ELEMENTS", "MAX_RESPONSE_ELEMENTS", "decode", "encode", "reader", "writer"]

T = TypeVar("T")


def decode(cls: type[T], version: int, data: Buffer, offset: int = 0) -> T:
    """Read a message that begins at ``offset``.

    Fields of type ``Bytes`` and strings are copies, ``Records`` are views into ``data``. Fields that the
    version does not have get their defaults.

    Raises:
        WireError: The bytes do not follow the protocol, or the message has no such version.
        Truncated: They end too early.
    """
    message, _ = reader(cls, version)(data, offset)
    return message


def encode(message: object, version: int) -> bytes:
    """Write a message.

    Fields that the version does not have are silently left out, whatever their values. Tagged fields are
    left out if they equal their defaults.

    Raises:
        WireError: A value is null, out of range or of a type that cannot be written; or the message has
            no such version.
    """
    return writer(type(message), version)(message)


def reader(cls: type[T], version: int) -> Callable[[Buffer, int], tuple[T, int]]:
    """The function behind `decode`: from buffer and offset to the message and the offset behind it.

    Raises:
        WireError: The message has no such version.
    """
    return compiled_reader(cls, version)  # type: ignore[arg-type]  # mypy doubts that classes are hashable


def writer(cls: type[T], version: int) -> Callable[[T], bytes]:
    """The function behind `encode`.

    Raises:
        WireError: The message has no such version.
    """
    return compiled_writer(cls, version)  # type: ignore[arg-type]  # mypy doubts that classes are hashable


@functools.cache
def compiled_reader(cls: type, version: int) -> Callable[[Buffer, int], tuple[Any, int]]:
    """As `reader`, without a type. Declared versions alone are kept: others raise."""
    return compile_reader(layout(cls, version), f"{cls.__name__} v{version} reader")


@functools.cache
def compiled_writer(cls: type, version: int) -> Callable[[Any], bytes]:
    """As `writer`, without a type."""
    return compile_writer(layout(cls, version), f"{cls.__name__} v{version} writer")
