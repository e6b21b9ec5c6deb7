"""The types that declare messages.

A message is a slotted dataclass; each field is annotated with its encoding and its versions::

    @dataclass(slots=True, kw_only=True)
    class HeartbeatRequest:
        API_KEY: ClassVar[int] = 12
        VERSIONS: ClassVar[Versions] = between(0, 4)
        FLEXIBLE: ClassVar[Versions] = since(4)

        group_id: String = ""
        generation_id: Int32 = 0
        group_instance_id: Annotated[String | None, since(3)] = None

mypy sees ``str`` and ``int``; the codec sees the encoding.

* A field without `Versions` exists in all versions of the message, a tagged field in the versions of its
  `tag`.
* ``| None`` allows null in every version that has the field, unless `nullable` names fewer versions.
* Outside its versions a field keeps its default when read and is left out when written.
* ``list[X]`` is an array, a dataclass is an inline structure; both nest.
* Every field has a default. A tagged field that equals its default is not written.

Messages do not depend on the codec: neither this module nor ``wire.messages`` imports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, ClassVar, Protocol

from odradek.wire.parts import RecordSlice

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
    """The versions in which a field may be null, if not in all that have the field."""

    versions: Versions


def nullable(versions: Versions) -> Nullable:
    """Allow null in ``versions`` only."""
    return Nullable(versions)


@dataclass(frozen=True, slots=True)
class Tag:
    """A field of the tagged section (KIP-482), written only when it differs from its default."""

    number: int
    versions: Versions


def tag(number: int, versions: Versions) -> Tag:
    """Put the field into the tagged section, under ``number``, in ``versions``."""
    return Tag(number, versions)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number of fixed width, as a big-endian `struct` format character."""

    format: str


class Blob(Enum):
    """Values with a length prefix, and uuids of sixteen bytes."""

    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"
    UUID = "uuid"


class EncodedElements(list[bytes]):
    """Elements of an array at the top of a response, each already encoded by its `codec.element_writer`.

    A large response is encoded like this while it is made, which takes less memory than its objects, and the
    loop for a shorter time than encoding all of them at the end. A subclass may keep facts about the
    elements, which cannot be read any more.
    """


class Message(Protocol):
    """The attributes of every request and response class."""

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
"""Consecutive record batches. Read without a copy: a view into the frame."""
SentRecords = Annotated[bytes | memoryview | RecordSlice, Blob.RECORDS]
"""`Records` in a response of the host, which may still be in a file."""
Uuid = Annotated[bytes, Blob.UUID]
"""Sixteen raw bytes; `NIL_UUID` stands for none."""

Buffer = bytes | memoryview
"""Input of the readers. A memoryview must have unsigned bytes as items."""
