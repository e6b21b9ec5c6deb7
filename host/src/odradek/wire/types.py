"""The types that declare messages.

A `Message` is a request or a response, a `Struct` a structure in one; each field is annotated with its
encoding and its versions::

    class HeartbeatRequest(Message, api_key=12, versions=between(0, 4), flexible=since(4)):
        group_id: String = ""
        generation_id: Int32 = 0
        group_instance_id: Annotated[String | None, since(3)] = None

    class HeartbeatResponse(Message, answers=HeartbeatRequest):
        error_code: Int16 = 0

mypy sees ``str`` and ``int``; the codec sees the encoding.

* A field without `Versions` exists in all versions of the message, a tagged field in the versions of its
  `tag`.
* ``| None`` allows null in every version that has the field, unless `nullable` names fewer versions.
* Outside its versions a field keeps its default when read and is left out when written.
* ``list[X]`` is an array, a `Struct` is inline; both nest.
* Every field has a default. A tagged field that equals its default is not written.

Messages do not depend on the codec: neither this module nor ``wire.messages`` imports it.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field
from enum import Enum
from typing import Annotated, Any, ClassVar, dataclass_transform

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


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class StructType(type):
    """Makes a class with slots of each declaration, and a dataclass of it at its first use.

    A dataclass takes half a millisecond to make, and a program uses few of the 331 declarations.
    """

    DECLARED: dict[str, Any]
    __dataclass_fields__: dict[str, Field[Any]]

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **api: Any) -> Any:
        """Make the class. The defaults, which have the names of the slots, are kept for `complete`."""
        if "__slots__" in namespace:
            return super().__new__(cls, name, bases, namespace, **api)
        inherited: dict[str, Any] = getattr(bases[0], "DECLARED", {"__annotations__": {}})
        older, own = inherited["__annotations__"], namespace.setdefault("__annotations__", {})
        declared = inherited | {each: namespace.pop(each) for each in own if each in namespace}
        declared |= {each: namespace.get(each) for each in ("__module__", "__doc__")}
        declared["__annotations__"] = older | own
        slots = {"__slots__": tuple(own.keys() - older.keys()), "DECLARED": declared}
        made = super().__new__(cls, name, bases, namespace | slots, **api)
        if older:
            complete(made)  # it would find the methods of the other first
        return made

    def __getattr__(cls, name: str) -> Any:
        """Find the fields, which `dataclasses` asks for."""
        if name != "__dataclass_fields__" or "DECLARED" not in cls.__dict__:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        complete(cls)
        return cls.__dataclass_fields__


def complete(cls: StructType) -> None:
    """Give a class the fields of a dataclass, and its `__init__` with keyword arguments."""
    made: Any = dataclass(kw_only=True, repr=False, eq=False)(type(cls.__name__, (), cls.DECLARED))
    for name in ("__dataclass_fields__", "__dataclass_params__", "__init__"):
        setattr(cls, name, made.__dict__[name])


class Struct(metaclass=StructType):
    """Fields one after the other."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # as of every dataclass that can change

    def __init__(self, **values: Any) -> None:
        complete(type(self))
        self.__init__(**values)  # type: ignore[misc]  # the one of its class, which is there now

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = type(self).DECLARED["__annotations__"]
        return all(getattr(self, each) == getattr(other, each) for each in names)

    def __repr__(self) -> str:
        names = type(self).DECLARED["__annotations__"]
        return f"{type(self).__qualname__}({', '.join(f'{each}={getattr(self, each)!r}' for each in names)})"


class Message(Struct):
    """A request, a response, or what another protocol puts into one."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[Versions]
    FLEXIBLE: ClassVar[Versions]

    def __init_subclass__(cls, answers: type[Message] | None = None, **declared: int | Versions) -> None:
        """Take the attributes above, as ``api_key``, ``versions`` and ``flexible``; of a response, from the
        request that it answers.
        """
        if answers is not None:
            declared = {name: getattr(answers, name) for name in ("API_KEY", "VERSIONS", "FLEXIBLE")}
        for name, value in declared.items():
            setattr(cls, name.upper(), value)


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
