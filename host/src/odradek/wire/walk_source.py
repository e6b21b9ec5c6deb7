"""Generates functions that walk over one version of a message and read a few of its fields.

A walk is compiled from the same declaration as the codec, and skips every field that is not wanted: it
decodes nothing. Like the codec it checks all lengths and counts, and refuses null where it is not allowed; it
does not look at the bytes of strings, nor into tagged fields.

A walk over a message that is complete is a function of the bytes, the offset where it starts and the end of
the message, which may lie within more bytes. A streamed walk is a generator for a message that comes in
pieces; `Walking` drives it. It yields the position where it wants to go on, which may be far beyond the bytes
that have come, and gets the bytes from there with the last position in them from which `ATOM_BYTES` can be
read, or with their end if the message ends there.

Both return the position after the last field that was walked over, what `Wanted.counts` asks for, and what
the rest of `Wanted` asks for. Local names: ``b`` the bytes, ``o`` the offset in them, ``end`` the end of the
message, ``base`` the position of the bytes in the message.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final

from odradek.wire import reader_source
from odradek.wire.codegen import Source
from odradek.wire.errors import WireError
from odradek.wire.layout import ArrayOf, Field, Kind, StructOf
from odradek.wire.types import Blob, Scalar
from odradek.wire.varint import MAX_TAGS

ATOM_BYTES: Final = 64
"""A streamed walk reads at most so much between two looks at its limit: more than the header of a batch."""
BATCH_HEAD_BYTES: Final = 61
LOG_OVERHEAD: Final = 12
"""The base offset and the length of a batch, which its length does not count."""
MAGIC: Final = 2

Walk = Callable[[Any, int, int], tuple[Any, ...]]
"""Takes bytes, and where the message starts and ends in them.

Raises:
    WireError: The bytes do not follow the protocol.
    Truncated: They end before the message does.
"""
StreamedWalk = Generator[int, tuple[bytes, int], tuple[Any, ...]]
"""The walk over one message. Raises as `Walk`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The fields that a walk reads, and those that it walks over."""

    counts: str = ""
    """Name of int16 fields, at any depth. How often each value but 0 occurs is returned as a dictionary, in
    the order of their first ones; None if all are 0."""
    reads: tuple[str, ...] = ()
    """Names of fields at the top. Two numbers are returned for each: its position, and its value if it is a
    number, else the position after it; twice None if the version does not have it."""
    batches: str = ""
    """Name of a field with records. The records, batches and bytes of all batches are returned, from their
    headers. Those of old formats count as bytes only."""
    collects: str = ""
    """Name of a field with a string or a UUID in the elements of an array. Of each element its bytes, and the
    records, batches and bytes of `batches` in the element, are returned in a list. Not for streamed walks: a
    string may be longer than what has come."""
    header: bool = False
    """The walk begins with the tags of a header."""
    after: str = ""
    """Begin after this field at the top instead of at the first one."""
    before: str = ""
    """Stop before this field at the top."""
    last: str = ""
    """Stop after this field at the top."""
    tags: bool = True
    """Include the tagged section at the end, unless the walk stops before that."""


def counted(counts: dict[int, int] | None, value: int) -> dict[int, int]:
    """Count a value."""
    counts = {} if counts is None else counts
    counts[value] = counts.get(value, 0) + 1
    return counts


def bad_batch(length: int, left: int) -> WireError:
    """The error for a batch whose length cannot be."""
    return WireError(f"a batch of {length} bytes in {left}")


RUNTIME: dict[str, Any] = {
    **reader_source.RUNTIME,
    "bad_batch": bad_batch,
    # The length, magic and record count of a batch.
    "batch_head": struct.Struct(">8xi4xb40xi").unpack_from,
    "counted": counted,
}


def compile_walk(shape: StructOf, wanted: Wanted, title: str) -> Walk:
    """Compile a walk over structures that are complete."""
    return WalkSource(shape, wanted, streamed=False).compile(f"{title} walk")


def compile_streamed_walk(shape: StructOf, wanted: Wanted, title: str) -> Callable[[int], StreamedWalk]:
    """Compile a walk over messages that come in pieces. The function takes the position where it starts."""
    return WalkSource(shape, wanted, streamed=True).compile(f"{title} streamed walk")


class WalkSource:
    """Walks a layout and generates the lines that walk over its bytes."""

    def __init__(self, shape: StructOf, wanted: Wanted, *, streamed: bool) -> None:
        self.shape = shape
        self.wanted = wanted
        self.streamed = streamed
        self.source = Source(RUNTIME)
        self.ahead = 0
        """The current position lies so many bytes after ``o``."""
        self.safe = ATOM_BYTES
        """So many bytes from there on can be read without a look at the limit."""

    def compile(self, title: str) -> Callable[..., Any]:
        """Generate and compile the whole function."""
        line, block, wanted = self.source.line, self.source.block, self.wanted
        with block("def walk(base):" if self.streamed else "def walk(b, o, end):"):
            with block("try:"):
                if self.streamed:
                    line("b, limit = yield base")
                    line("o = 0")
                line("counts = None")
                if wanted.batches:
                    line("records = batches = size_bytes = 0")
                if wanted.collects:
                    line("collected = []")
                self.message()
                self.settle()
                if not self.streamed:
                    self.bound()
                elif self.safe < 0:
                    self.look()
                base = "base + " if self.streamed else ""
                found = [f"{base}o", "counts", *(f"at_{name}, {name}" for name in wanted.reads)]
                found += ["records, batches, size_bytes"] if wanted.batches else []
                found += ["collected"] if wanted.collects else []
                line(f"return {', '.join(found)}")
            with block("except (IndexError, StructError) as error:"):
                line(f"raise Truncated('{title}: the bytes end before the message') from error")
        return self.source.function("walk", title)

    def message(self) -> None:
        """Walk over the wanted part of the message."""
        wanted, fields = self.wanted, self.shape.fields
        places = {field.name: place for place, field in enumerate(fields)}
        start = places.get(wanted.after, -1) + 1
        stop = places.get(wanted.before, places.get(wanted.last, len(fields)) + 1)
        for name in wanted.reads:
            if not start <= places.get(name, -1) < stop:
                self.source.line(f"at_{name} = {name} = None")
        if wanted.header:
            self.tags()
        for field in fields[start:stop]:
            self.field(field, self.shape.flexible, is_top=True)
        if self.shape.flexible and wanted.tags and stop > len(fields):
            self.tags()

    def settle(self) -> None:
        """Bring ``o`` to the current position."""
        if self.ahead:
            self.source.line(f"o += {self.ahead}")
            self.ahead = 0

    def look(self) -> None:
        """Get the next bytes if those that are there reach not far enough."""
        with self.source.block("if o > limit:"):
            self.source.line("base += o")
            self.source.line("b, limit = yield base")
            self.source.line("o = 0")
        self.safe = ATOM_BYTES

    def bound(self) -> None:
        """Check that the message does not end before the current position."""
        with self.source.block("if o > end:"):
            self.source.line("raise short(0, o, end)")

    def at(self, further: int = 0) -> str:
        """A position after the current one, as an expression."""
        distance = self.ahead + further
        return f"o + {distance}" if distance else "o"

    def need(self, count: int) -> str:
        """Make sure that some bytes can be read, and return the current position."""
        if self.streamed and self.safe < count:
            self.settle()
            self.look()
        return self.at()

    def skip(self, count: int) -> None:
        """Go on by a known number of bytes."""
        self.need(min(count, ATOM_BYTES))  # once for this and the next fields
        self.ahead += count
        self.safe -= count

    def structure(self, shape: StructOf) -> None:
        """Walk over a structure."""
        for field in shape.fields:
            self.field(field, shape.flexible)
        if shape.flexible:
            self.tags()

    def field(self, field: Field, flexible: bool, *, is_top: bool = False) -> None:
        """Walk over a value, or null."""
        kind, size = field.kind, self.fixed_size(field.kind)
        is_read = is_top and field.name in self.wanted.reads
        if is_read:
            self.source.line(f"at_{field.name} = {'base + ' if self.streamed else ''}{self.at()}")
        if isinstance(kind, Scalar):
            self.number(kind, field.name, is_read)
        elif isinstance(kind, StructOf):
            self.inline(kind, field.nullable)
        elif size is not None:
            if field.name == self.wanted.collects:
                self.source.line(f"key = bytes(b[{self.at()} : {self.at(size)}])")
            self.skip(size)
        else:
            self.sized(field, flexible)
        if is_read and not isinstance(kind, Scalar):
            self.settle()
            self.source.line(f"{field.name} = {'base + ' if self.streamed else ''}o")

    def number(self, kind: Scalar, name: str, is_read: bool) -> None:
        """Read a number if it is wanted, and skip it."""
        size = struct.calcsize(">" + kind.format)
        if is_read:
            at = self.need(size)
            self.source.line(f"({name},) = {self.source.unpack(kind.format)}(b, {at})")
        if name == self.wanted.counts:
            at = self.need(size)
            with self.source.block(f"if b[{self.at(1)}] or b[{at}]:"):
                self.source.line(f"counts = counted(counts, {self.source.unpack('h')}(b, {at})[0])")
        self.skip(size)

    def inline(self, shape: StructOf, nullable: bool) -> None:
        """Walk over a structure inline. A nullable one has a byte in front that tells whether it is null."""
        if not nullable:
            self.structure(shape)
            return
        self.need(1)
        self.skip(1)
        self.settle()
        with self.source.block("if b[o - 1] < 128:"):
            self.structure(shape)
            self.settle()
            self.source.line("pass")
        self.safe = 0

    def sized(self, field: Field, flexible: bool) -> None:
        """Walk over a value with a length or count in front. In flexible versions that is one larger, as 0
        means null.
        """
        size = self.source.name("n")
        if flexible:
            self.byte(size)
            head, null, real = f"if {size} > 1:", f"elif not {size}:", f"({size} - 1)"
        else:
            fixed = "h" if field.kind is Blob.STRING else "i"
            at = self.need(4)
            self.source.line(f"({size},) = {self.source.unpack(fixed)}(b, {at})")
            self.skip(2 if fixed == "h" else 4)
            self.settle()
            head, null, real = f"if {size} > 0:", f"elif {size} < 0:", size
        safe = self.safe
        with self.source.block(head):
            if flexible:
                self.other_bytes(size)
            if isinstance(field.kind, ArrayOf):
                self.array(field.kind.element, real, flexible, field.name)
            elif field.name == self.wanted.batches:
                self.batches(real)
            else:
                if field.name == self.wanted.collects:
                    self.source.line(f"key = bytes(b[o : o + {real}])")
                self.source.line(f"o += {real}")
            if self.streamed:
                self.look()
        if not field.nullable:
            with self.source.block(null):
                self.source.line(f"raise forbidden_null({field.name!r})")
        self.safe = safe

    def byte(self, target: str) -> None:
        """Read the first byte of a varint, and make sure that the others can be read."""
        self.source.line(f"{target} = b[{self.need(5)}]")
        self.skip(5)
        self.ahead -= 4
        self.settle()

    def other_bytes(self, target: str) -> None:
        """Read the other bytes of a varint, without a call if there is none or one."""
        line, block = self.source.line, self.source.block
        with block(f"if {target} > 127:"):
            with block("if b[o] < 128:"):
                line(f"{target} += (b[o] - 1) << 7")
                line("o += 1")
            with block("else:"):
                line(f"{target}, o = read_varint(b, o - 1)")

    def array(self, element: Kind, count: str, flexible: bool, name: str) -> None:
        """Walk over the elements. Each reads a byte at least: too large a count ends with the bytes."""
        fixed = self.fixed_size(element)
        if fixed is not None:
            self.source.line(f"o += {count} * {fixed}")
            return
        with self.source.block(f"for _ in range({count}):"):
            self.safe = 0
            if isinstance(element, StructOf) and self.collects(element):
                self.source.line("key, before = b'', (records, batches, size_bytes)")
                self.structure(element)
                sums = "records - before[0], batches - before[1], size_bytes - before[2]"
                self.source.line(f"collected.append((key, {sums}))")
            elif isinstance(element, StructOf):
                self.structure(element)
            else:
                self.field(Field(name, element, False, None, list), flexible)
            self.settle()

    def collects(self, element: StructOf) -> bool:
        """Whether the elements of an array are collected."""
        return any(field.name == self.wanted.collects for field in element.fields)

    def batches(self, size: str) -> None:
        """Read the headers of batches, and skip what is in them."""
        line, block = self.source.line, self.source.block
        line(f"left = {size}")
        line("size_bytes += left")
        with block("while left > 0:"):
            self.safe = 0
            self.need(BATCH_HEAD_BYTES)
            line(f"length, magic, count = batch_head(b, o) if left >= {BATCH_HEAD_BYTES} else (0, 0, 0)")
            with block(f"if magic != {MAGIC}:"):
                line("o += left")
                line("break")
            line(f"length += {LOG_OVERHEAD}")
            with block(f"if not {BATCH_HEAD_BYTES} <= length <= left:"):
                line("raise bad_batch(length, left)")
            line("records += count")
            line("batches += 1")
            line("o += length")
            line("left -= length")

    def tags(self) -> None:
        """Walk over a tagged section."""
        line, block, name = self.source.line, self.source.block, self.source.name
        count, size = name("n"), name("n")
        self.byte(count)
        safe = self.safe
        with block(f"if {count}:"):
            line(f"{count}, o = read_varint(b, o - 1)")
            with block(f"if {count} > {MAX_TAGS}:"):
                line(f"raise too_many_tags({count})")
            with block(f"for _ in range({count}):"):
                self.safe = 0
                self.need(10)
                line("_, o = read_varint(b, o)")
                line(f"{size}, o = read_varint(b, o)")
                line(f"o += {size}")
            if self.streamed:
                self.look()
        self.safe = safe

    def fixed_size(self, kind: Kind) -> int | None:
        """The size of a value that always has the same, and has no wanted field; None for others."""
        if isinstance(kind, Scalar):
            return struct.calcsize(">" + kind.format)
        if isinstance(kind, StructOf):
            sizes = [self.fixed_size(field.kind) for field in kind.fields]
            names = {field.name for field in kind.fields}
            wanted = {self.wanted.counts, self.wanted.collects}
            is_plain = not kind.flexible and not names & wanted and None not in sizes
            is_plain = is_plain and not any(field.nullable for field in kind.fields)
            return sum(size or 0 for size in sizes) if is_plain else None
        return 16 if kind is Blob.UUID else None
