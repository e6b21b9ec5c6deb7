"""The vocabulary in which messages are declared.

A message is a slotted dataclass; a field is annotated with how it looks on the wire and since when::

    @dataclass(slots=True, kw_only=True)
    class HeartbeatRequest:
        API_KEY: ClassVar[int] = 12
        VERSIONS: ClassVar[Versions] = between(0, 4)
        FLEXIBLE: ClassVar[Versions] = since(4)

        group_id: String = ""
        generation_id: Int32 = 0
        group_instance_id: Annotated[String | None, since(3)] = None

mypy sees ``str`` and ``int``; the codec sees how to read and write them.

* A field without `Versions` is there in all versions of the message; a tagged one in those of its `tag`.
* ``| None`` allows null in every version that has the field, unless `nullable` names fewer.
* A field outside its versions keeps its default when read and is left out when written.
* ``list[X]`` is an array, a dataclass as a type is a structure in place; both nest.
* Every field has a default. It is also what a tagged field is compared with before it is written.

Data does not know its encoding: nothing here, and nothing in ``wire.messages``, imports the codec.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, ClassVar, Protocol

LAST_VERSION = 0x7FFF
NIL_UUID = bytes(16)


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of versions of one message."""

    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


def since(first: int) -> Versions:
    """From ``first`` on."""
    return Versions(first, LAST_VERSION)


def only(version: int) -> Versions:
    """A single version."""
    return Versions(version, version)


def between(first: int, last: int) -> Versions:
    """From ``first`` to ``last``, both included."""
    return Versions(first, last)


NEVER = Versions(1, 0)


@dataclass(frozen=True, slots=True)
class Nullable:
    """In which versions null may stand in place of a value, where these are not all that have the field."""

    versions: Versions


def nullable(versions: Versions) -> Nullable:
    """Null is legal on the wire in ``versions``."""
    return Nullable(versions)


@dataclass(frozen=True, slots=True)
class Tag:
    """A field of the tagged section (KIP-482), written only when it differs from its default."""

    number: int
    versions: Versions


def tag(number: int, versions: Versions) -> Tag:
    """The field travels under tag ``number`` in ``versions``."""
    return Tag(number, versions)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number of fixed width, as a big-endian `struct` format character."""

    format: str


class Blob(Enum):
    """Values with a length in front, or of sixteen bytes."""

    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"
    UUID = "uuid"


class Message(Protocol):
    """What the request and the response of an API have in common."""

    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[Versions]
    FLEXIBLE: ClassVar[Versions]


Bool = Annotated[bool, Scalar("?")]
Int8 = Annotated[int, Scalar("b")]
Int16 = Annotated[int, Scalar("h")]
UInt16 = Annotated[int, Scalar("H")]
Int32 = Annotated[int, Scalar("i")]
Int64 = Annotated[int, Scalar("q")]
Float64 = Annotated[float, Scalar("d")]
String = Annotated[str, Blob.STRING]
Bytes = Annotated[bytes, Blob.BYTES]
Records = Annotated[bytes | memoryview, Blob.RECORDS]
"""Record batches, back to back. Read without a copy: a view into the frame."""
Uuid = Annotated[bytes, Blob.UUID]
"""Sixteen raw bytes; `NIL_UUID` stands for none."""

Buffer = bytes | memoryview
"""What messages are read from. A memoryview is one of unsigned bytes."""
