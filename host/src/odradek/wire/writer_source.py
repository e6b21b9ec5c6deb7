"""Generates the function that writes one version of a message.

The function collects pieces and joins them once; records that are still in files stay pieces of `Parts`.
Consecutive fixed-width values, length prefixes and empty
tagged sections included, are packed with one ``pack``; a message of nothing else is a single call. Local
names: ``out`` the pieces, ``add`` its ``append``. A tagged field, which needs its size in front, has a list
of its own.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from odradek.wire.codegen import Source, literal
from odradek.wire.errors import WireError
from odradek.wire.layout import ArrayOf, Field, Kind, StructOf, has_records, smallest_size
from odradek.wire.parts import Parts
from odradek.wire.types import Blob, EncodedElements, Scalar
from odradek.wire.varint import SMALL, varint


def wrong_uuid(value: bytes) -> WireError:
    """The error for a uuid that does not have sixteen bytes."""
    return WireError(f"a uuid has 16 bytes, not {len(value)}")


RUNTIME: dict[str, Any] = {
    "EncodedElements": EncodedElements,
    # The exceptions that a null, a wrong type or a value out of range raises in the generated lines.
    "MISTAKES": (struct.error, AttributeError, TypeError, ValueError),
    "SMALL": SMALL,
    "WireError": WireError,
    "Parts": Parts,
    "pack": struct.pack,
    "varint": varint,
    "wrong_uuid": wrong_uuid,
}


def compile_writer(message: StructOf, title: str) -> Callable[[Any], bytes | Parts]:
    """Compile the writer of one version of a message."""
    return WriterSource(message).compile(title)


class WriterSource:
    """Walks a layout and generates the lines that write it."""

    def __init__(self, message: StructOf) -> None:
        self.message = message
        self.source = Source(RUNTIME)
        self.is_request = message.cls.__name__.endswith("Request")
        self.depth = 0
        """The arrays around the current place."""
        self.pieces = "out"
        """The list for the next piece."""
        self.run: list[tuple[str, str]] = []
        """Fixed-width values that are not generated yet: their expressions and formats."""

    def compile(self, title: str) -> Callable[[Any], bytes | Parts]:
        """Generate and compile the whole function."""
        line, block = self.source.line, self.source.block
        with block("def write(m):"):
            with block("try:"):
                self.body()
            with block("except MISTAKES as error:"):
                line(f"raise WireError(f'{title}: {{error}}') from error")
        return self.source.function("write", title)

    def body(self) -> None:
        """Generate the pieces and their join."""
        head = len(self.source.lines)
        self.structure("m", self.message)
        if len(self.source.lines) == head:
            self.source.line(f"return {self.packed() if self.run else repr(b'')}")
            return
        self.flush()
        self.source.lines[head:head] = ["        out = []", "        add = out.append"]
        if not has_records(self.message):
            self.source.line("return b''.join(out)")
            return
        with self.source.block("try:"):
            self.source.line("return b''.join(out)")
        with self.source.block("except TypeError:"):
            self.source.line("return Parts(out)")

    def packed(self) -> str:
        """The expression that packs the pending run."""
        values = ", ".join(value for value, _ in self.run)
        formats = "".join(fixed for _, fixed in self.run)
        self.run.clear()
        if formats == "16s":
            return values
        if values == "0":
            return repr(bytes(struct.calcsize(">" + formats)))
        return f"{self.source.pack(formats)}({values})"

    def flush(self) -> None:
        """Generate the pending run of fixed-width values."""
        if self.run:
            self.source.line(f"{self.add}({self.packed()})")

    @property
    def add(self) -> str:
        """The function that appends the next piece."""
        return "add" if self.pieces == "out" else f"{self.pieces}.append"

    def piece(self, expression: str) -> None:
        """Append bytes after flushing the values that precede them."""
        self.flush()
        self.source.line(f"{self.add}({expression})")

    def structure(self, made: str, shape: StructOf) -> None:
        """Write the fields of the structure named ``made``."""
        for field in shape.fields:
            self.field(f"{made}.{field.name}", field.kind, field.nullable, shape.flexible)
        if not shape.flexible:
            return
        if shape.tagged:
            self.tags(made, shape)
        else:
            self.run.append(("0", "B"))

    def field(self, value: str, kind: Kind, nullable: bool, flexible: bool) -> None:
        """Write a value, or null."""
        if isinstance(kind, Scalar):
            self.run.append((value, kind.format))
        elif kind is Blob.UUID:
            self.uuid(value)
        elif isinstance(kind, StructOf):
            self.structure_field(value, kind, nullable)
        elif isinstance(kind, ArrayOf):
            self.array(value, kind.element, nullable, flexible)
        else:
            self.blob(value, kind, nullable, flexible)

    def local(self, value: str, stem: str = "x") -> str:
        """A local name for a value that is used more than once."""
        if value.isidentifier():
            return value
        name = self.source.name(stem)
        self.source.line(f"{name} = {value}")
        return name

    def uuid(self, value: str) -> None:
        """Write a uuid. ``pack`` would silently pad or cut it, so the length is checked first."""
        name = self.local(value, "u")
        with self.source.block(f"if len({name}) != 16:"):
            self.source.line(f"raise wrong_uuid({name})")
        self.run.append((name, "16s"))

    def structure_field(self, value: str, shape: StructOf, nullable: bool) -> None:
        """Write a structure inline. A nullable one has a byte in front that tells whether it is null."""
        name = self.local(value, "m")
        if not nullable:
            self.structure(name, shape)
            return
        self.flush()
        with self.source.block(f"if {name} is None:"):
            self.piece(r"b'\xff'")
        with self.source.block("else:"):
            self.run.append(("1", "b"))
            self.structure(name, shape)
            self.flush()

    def blob(self, value: str, kind: Kind, nullable: bool, flexible: bool) -> None:
        """Write a string, bytes or records with a length prefix."""
        name = self.local(value)
        size = self.source.name("n")
        encoded = f"{name}.encode()" if kind is Blob.STRING else None
        with self.unless_null(name, size, nullable, flexible, empty=f"{name} = b''"):
            if encoded:
                self.source.line(f"{name} = {encoded}")
            self.source.line(f"{size} = len({name})" + " + 1" * flexible)
        self.prefix(size, flexible, "h" if kind is Blob.STRING else "i")
        self.piece(name)

    def unless_null(
        self, name: str, size: str, nullable: bool, flexible: bool, empty: str
    ) -> AbstractContextManager[None]:
        """Generate the lines inside for values only. Null becomes the length of null, and ``empty`` runs."""
        if not nullable:
            return contextlib.nullcontext()
        with self.source.block(f"if {name} is None:"):
            self.source.line(f"{size} = {0 if flexible else -1}")
            self.source.line(empty)
        return self.source.block("else:")

    def prefix(self, size: str, flexible: bool, legacy: str) -> None:
        """Write a length or a count."""
        if flexible:
            self.piece(f"SMALL[{size}] if {size} < 256 else varint({size})")
        else:
            self.run.append((size, legacy))

    def array(self, value: str, element: Kind, nullable: bool, flexible: bool) -> None:
        """Write the count and the elements."""
        name = self.local(value)
        size = self.source.name("n")
        with self.unless_null(name, size, nullable, flexible, empty=f"{name} = ()"):
            self.source.line(f"{size} = len({name})" + " + 1" * flexible)
        self.prefix(size, flexible, "i")
        self.flush()
        if isinstance(element, Scalar):
            with self.source.block(f"if {name}:"):
                self.piece(f"pack(f'>{{len({name})}}{element.format}', *{name})")
            return
        item = self.source.name("m")
        if self.may_be_encoded(element):
            # the first condition is the faster one, and false for nearly all arrays
            with self.source.block(
                f"if {name}.__class__ is not list and isinstance({name}, EncodedElements):"
            ):
                self.source.line(f"{self.pieces}.extend({name})")
                self.source.line(f"{name} = ()")
        self.depth += 1
        with self.source.block(f"for {item} in {name}:"):
            self.field(item, element, False, flexible)
            self.flush()
        self.depth -= 1

    def may_be_encoded(self, element: Kind) -> bool:
        """Whether the elements of an array may be `EncodedElements`: in a response, at the top, and in the
        elements there.
        """
        # The element of a response has a writer of its own, whose arrays are one level deeper.
        top = 0 if self.message.cls.__name__.endswith("Response") else 1
        return self.depth + top <= 1 and not self.is_request and isinstance(element, StructOf)

    def tags(self, made: str, shape: StructOf) -> None:
        """Write the tagged fields that differ from their defaults, ordered by tag."""
        line, block, name = self.source.line, self.source.block, self.source.name
        self.flush()
        tagged, count = name("tagged"), name("n")
        line(f"{tagged} = []")
        line(f"{count} = 0")
        for field in shape.tagged:
            value = self.local(f"{made}.{field.name}")
            with block(f"if {self.differs(value, field)}:"):
                line(f"{count} += 1")
                self.tagged_field(value, field, tagged)
        self.piece(f"SMALL[{count}]")
        line(f"{self.pieces}.extend({tagged})")

    def differs(self, value: str, field: Field) -> str:
        """The condition under which a tagged field is written."""
        default = literal(field)
        if default is not None:
            return f"{value} is not None" if default == "None" else f"{value} != {default}"
        assert isinstance(field.kind, StructOf)
        everything = (*field.kind, *field.kind.absent)
        if any(literal(inner) is None for inner in everything):
            return f"{value} != {self.source.cls(field.kind.cls)}()"
        # Field by field: dataclasses compare by building tuples, and a FetchResponse needs this for each
        # partition.
        return " or ".join(f"{value}.{inner.name} != {literal(inner)}" for inner in everything)

    def tagged_field(self, value: str, field: Field, tagged: str) -> None:
        """Write tag, size and value."""
        assert field.tag is not None
        if isinstance(field.kind, Scalar) and field.tag < 128:
            size = smallest_size(field.kind, True)
            pack = self.source.pack("BB" + field.kind.format)
            self.source.line(f"{tagged}.append({pack}({field.tag}, {size}, {value}))")
            return
        outer, self.pieces = self.pieces, self.source.name("pieces")
        self.source.line(f"{self.pieces} = []")
        self.field(value, field.kind, field.nullable, True)
        self.flush()
        inner, self.pieces = self.pieces, outer
        self.source.line(f"{inner} = b''.join({inner})")
        self.source.line(f"{tagged} += varint({field.tag}), varint(len({inner})), {inner}")
