"""Generates the function that reads one version of a message.

The function is straight-line: structures and arrays are read inline, without calls, and only arrays loop.
Consecutive fixed-width values, length prefixes included, are read with one ``unpack_from``. Local names:
``b`` the buffer, ``o`` the offset, ``end`` the end of the buffer, ``room`` how many more array elements and
tags the message may have.

Every length and count is checked against the rest of the buffer before anything is created for it. Messages
are created without ``__init__``, which is 2.5 times faster; so every attribute must be set, those of other
versions to their defaults.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from typing import Any

from odradek.bounds.large_list import MANY_ELEMENTS
from odradek.wire.codegen import Source, literal
from odradek.wire.errors import Truncated, WireError
from odradek.wire.layout import ArrayOf, Field, Kind, StructOf, has_records, smallest_size
from odradek.wire.types import Blob, Scalar
from odradek.wire.utf8 import LENIENT
from odradek.wire.varint import MAX_STRING, MAX_TAGS, long_string, read_varint, too_many_tags

MAX_ELEMENTS = 20_500
"""The most elements in all arrays of a request together, structures and numbers alike. Tags count too."""
MAX_RESPONSE_ELEMENTS = 250_000
"""The same for a response, which only a client reads, from a broker of its choice."""


STEP_ELEMENTS = 128
"""Some 50 to 200 microseconds of reading."""
SteppedRead = Generator[None, None, tuple[Any, int]]


def short(needed: int, offset: int, end: int) -> Truncated:
    """The error for a length that exceeds the buffer."""
    return Truncated(f"need {needed} bytes at {offset}, have {max(end - offset, 0)}")


def forbidden_null(name: str) -> WireError:
    """The error for null in a field that is never null in this version."""
    return WireError(f"{name} is null")


def too_many(name: str, count: int, most: int) -> WireError:
    """The error for more array elements and tags than a message may have."""
    return WireError(f"{count} more elements in {name} make more than {most}")


def most_elements(cls: type) -> int:
    """How many array elements and tags a message may have."""
    return MAX_RESPONSE_ELEMENTS if cls.__name__.endswith("Response") else MAX_ELEMENTS


RUNTIME: dict[str, Any] = {
    "StructError": struct.error,
    "Truncated": Truncated,
    "WireError": WireError,
    "forbidden_null": forbidden_null,
    "long_string": long_string,
    "new": object.__new__,
    "read_varint": read_varint,
    "short": short,
    "too_many": too_many,
    "too_many_tags": too_many_tags,
    "unpack_from": struct.unpack_from,
}


def compile_reader(message: StructOf, title: str) -> Callable[[Any, int], tuple[Any, int]]:
    """Compile the reader of one version of a message."""
    return ReaderSource(message).compile(title)


def compile_stepped_reader(message: StructOf, title: str) -> Callable[..., SteppedRead]:
    """The same as a generator, which yields after each `STEP_ELEMENTS` elements of arrays. Its third argument
    is a function that makes the lists of large arrays.
    """
    return ReaderSource(message, stepped=True).compile(title)


class ReaderSource:
    """Walks a layout and generates the lines that read it."""

    def __init__(self, message: StructOf, *, stepped: bool = False) -> None:
        self.message = message
        self.stepped = stepped
        self.most_elements = most_elements(message.cls)
        self.source = Source(RUNTIME)
        self.run: list[tuple[str, str]] = []
        """Fixed-width values that are not generated yet: their targets and formats."""

    def compile(self, title: str) -> Callable[[Any, int], Any]:
        """Generate and compile the whole function."""
        line, block = self.source.line, self.source.block
        with block("def read(b, o, large=list):" if self.stepped else "def read(b, o):"):
            with block("try:"):
                line("end = len(b)")
                line(f"room = {self.most_elements}")
                if self.stepped:
                    line(f"step = {STEP_ELEMENTS}")
                if has_records(self.message):
                    line("view = memoryview(b)")
                made = self.structure(self.message)
                self.flush()
                line(f"return {made}, o")
            with block("except (IndexError, StructError) as error:"):
                line(f"raise Truncated(f'{title}: the message continues past {{len(b)}} bytes') from error")
        return self.source.function("read", title)

    def flush(self) -> None:
        """Generate the pending run of fixed-width values."""
        if not self.run:
            return
        targets = ", ".join(target for target, _ in self.run)
        formats = "".join(fixed for _, fixed in self.run)
        self.run.clear()
        comma = "" if ", " in targets else ","
        self.source.line(f"{targets}{comma} = {self.source.unpack(formats)}(b, o)")
        self.source.line(f"o += {struct.calcsize('>' + formats)}")

    def line(self, text: str) -> None:
        """Add a line after flushing the values that precede it."""
        self.flush()
        self.source.line(text)

    def structure(self, shape: StructOf) -> str:
        """Read the fields of a structure; return its local name."""
        made = self.source.name("m")
        self.line(f"{made} = new({self.source.cls(shape.cls)})")
        for field in shape.absent + shape.tagged:
            self.default(f"{made}.{field.name}", field)
        for field in shape.fields:
            self.field(f"{made}.{field.name}", field, shape.flexible)
        if shape.flexible:
            self.tags(made, shape)
        return made

    def default(self, target: str, field: Field) -> None:
        """Set a field to its default."""
        value = literal(field)
        if value is None:
            assert isinstance(field.kind, StructOf)
            value = self.source.name("m")
            self.line(f"{value} = new({self.source.cls(field.kind.cls)})")
            for inner in (*field.kind, *field.kind.absent):
                self.default(f"{value}.{inner.name}", inner)
        self.line(f"{target} = {value}")

    def field(self, target: str, field: Field, flexible: bool) -> None:
        """Read a value, or null."""
        if isinstance(field.kind, StructOf):
            self.structure_field(target, field.kind, field.nullable)
        elif isinstance(field.kind, Scalar):
            self.run.append((target, field.kind.format))
        elif field.kind is Blob.UUID:
            self.run.append((target, "16s"))
        else:
            null = f"{target} = None" if field.nullable else f"raise forbidden_null({field.name!r})"
            self.sized(target, field.kind, flexible, null, field.name)

    def structure_field(self, target: str, shape: StructOf, nullable: bool) -> None:
        """Read a structure inline. A nullable one has a byte in front that tells whether it is null."""
        if not nullable:
            self.line(f"{target} = {self.structure(shape)}")
            return
        marker = self.source.name("n")
        self.run.append((marker, "b"))
        self.flush()
        with self.source.block(f"if {marker} < 0:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            self.line(f"{target} = {self.structure(shape)}")

    def sized(self, target: str, kind: Kind, flexible: bool, null: str, name: str) -> None:
        """Read a value with a length or count prefix."""
        size = self.source.name("n")
        if flexible:
            self.varint(size)
            head = f"if not {size}:"
        else:
            self.run.append((size, "h" if kind is Blob.STRING else "i"))
            self.flush()
            head = f"if {size} < 0:"
        with self.source.block(head):
            self.source.line(null)
        if null.startswith("raise"):
            self.content(target, kind, size, flexible, name)
            return
        with self.source.block("else:"):
            self.content(target, kind, size, flexible, name)

    def varint(self, target: str) -> None:
        """Read an unsigned varint, without a call if it has one byte or two."""
        self.line(f"{target} = b[o]")
        self.line("o += 1")
        with self.source.block(f"if {target} > 127:"):
            with self.source.block("if b[o] < 128:"):
                self.source.line(f"{target} += (b[o] - 1) << 7")
                self.source.line("o += 1")
            with self.source.block("else:"):
                self.source.line(f"{target}, o = read_varint(b, o - 1)")

    def content(self, target: str, kind: Kind, size: str, flexible: bool, name: str) -> None:
        """Read what follows a length or count. In flexible versions the prefix is one larger, as 0 means
        null.
        """
        if isinstance(kind, ArrayOf):
            if flexible:
                self.line(f"{size} -= 1")
            self.array(target, kind.element, size, flexible, name)
            return
        start = self.source.name("s")
        self.line(f"{start} = o")
        self.line(f"o += {size} - 1" if flexible else f"o += {size}")
        with self.source.block("if o > end:"):
            self.source.line(f"raise short(o - {start}, {start}, end)")
        if kind is Blob.STRING:
            if flexible:
                with self.source.block(f"if {size} > {MAX_STRING + 1}:"):
                    self.source.line(f"raise long_string({name!r}, {size} - 1)")
            self.line(f"{target} = str(b[{start}:o], 'utf-8', {LENIENT!r})")
        elif kind is Blob.BYTES:
            self.line(f"{target} = b[{start}:o] if b.__class__ is bytes else bytes(b[{start}:o])")
        else:
            self.line(f"{target} = view[{start}:o]")

    def array(self, target: str, element: Kind, count: str, flexible: bool, name: str) -> None:
        """Read the elements. Their smallest size bounds how many the rest of the buffer can hold."""
        smallest = max(smallest_size(element, flexible), 1)
        with self.source.block(f"if {count} * {smallest} > end - o:"):
            self.source.line(f"raise short({count} * {smallest}, o, end)")
        self.charge(count, name)
        if isinstance(element, Scalar):
            self.line(f"{target} = list(unpack_from(f'>{{{count}}}{element.format}', b, o))")
            self.line(f"o += {count} * {smallest}")
            return
        items = self.source.name("items")
        made = f"large() if {count} > {MANY_ELEMENTS} else []" if self.stepped else "[]"
        self.line(f"{target} = {items} = {made}")
        with self.source.block(f"for _ in range({count}):"):
            self.element(items, element, flexible, name)
            self.flush()
            if self.stepped:
                self.step()

    def step(self) -> None:
        """Yield from time to time."""
        self.source.line("step -= 1")
        with self.source.block("if not step:"):
            self.source.line(f"step = {STEP_ELEMENTS}")
            self.source.line("yield")

    def charge(self, count: str, name: str) -> None:
        """Deduct elements from ``room``."""
        self.line(f"room -= {count}")
        with self.source.block("if room < 0:"):
            self.source.line(f"raise too_many({name!r}, {count}, {self.most_elements})")

    def element(self, items: str, element: Kind, flexible: bool, name: str) -> None:
        """Read one element and append it."""
        if isinstance(element, StructOf):
            value = self.structure(element)
        else:
            value = self.source.name("x")
            self.field(value, Field(name, element, False, None, list), flexible)
        self.line(f"{items}.append({value})")

    def tags(self, made: str, shape: StructOf) -> None:
        """Read the tagged section: known fields are set, others skipped. As in Kafka, tags may come in any
        order and more than once, and the size of a known one is not looked at.
        """
        line, block, name = self.source.line, self.source.block, self.source.name
        count, number, size = name("n"), name("tag"), name("n")
        self.varint(count)
        with block(f"if {count}:"):
            with block(f"if {count} > {MAX_TAGS}:"):
                line(f"raise too_many_tags({count})")
            self.charge(count, "a tagged section")
            with block(f"for _ in range({count}):"):
                self.varint(number)
                self.varint(size)
                for field in shape.tagged:
                    with block(f"if {number} == {field.tag}:"):
                        self.field(f"{made}.{field.name}", field, True)
                        self.line("continue")
                line(f"o += {size}")
                with block("if o > end:"):
                    line(f"raise short({size}, o - {size}, end)")


def has_loops(kind: Kind) -> bool:
    """Whether there are arrays of anything but numbers."""
    if isinstance(kind, StructOf):
        return any(has_loops(field.kind) for field in (*kind.fields, *kind.tagged))
    return isinstance(kind, ArrayOf) and not isinstance(kind.element, Scalar)
