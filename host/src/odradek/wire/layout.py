"""The layout of one version of a message, derived from its annotations.

`layout` turns a declared class (see ``wire.types``) into a tree of `StructOf`, `ArrayOf`, `Scalar` and
`Blob`. The tree has no versions: it contains exactly the fields on the wire. The codec compilers and the
generators of test data walk it.
"""

from __future__ import annotations

import dataclasses
import functools
import struct
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from odradek.wire.errors import WireError
from odradek.wire.types import Blob, Nullable, Scalar, Tag, Versions


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """A count, then that many elements, which are never null."""

    element: Kind


@dataclass(frozen=True, slots=True)
class StructOf:
    """Fields one after the other, followed by a tagged section in flexible versions."""

    cls: type
    flexible: bool
    fields: tuple[Field, ...]
    tagged: tuple[Field, ...]
    """By ascending tag."""
    absent: tuple[Field, ...]
    """Fields that this version does not have: they keep their defaults."""

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields + self.tagged)


Kind = Scalar | Blob | ArrayOf | StructOf


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute and its encoding."""

    name: str
    kind: Kind
    nullable: bool
    tag: int | None
    default: Callable[[], Any]


def layout(cls: type, version: int) -> StructOf:
    """The layout of a version of a message.

    Raises:
        WireError: The message has no such version.
        TypeError: The class is not declared with the vocabulary of ``wire.types``.
    """
    versions: Versions = cls.VERSIONS  # type: ignore[attr-defined]
    if version not in versions:
        raise WireError(f"{cls.__name__} has versions {versions.first} to {versions.last}, not {version}")
    flexible: Versions = cls.FLEXIBLE  # type: ignore[attr-defined]
    return struct_of(cls, version, version in flexible)


@functools.cache
def hints_of(cls: type) -> dict[str, Any]:
    """The annotations of a class. To evaluate them takes a third of the time of a layout and its codecs."""
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def struct_of(cls: type, version: int, flexible: bool) -> StructOf:
    """The layout of a message or of a structure inside one."""
    plain: list[Field] = []
    tagged: list[Field] = []
    absent: list[Field] = []
    hints = hints_of(cls)
    for declared in dataclasses.fields(cls):
        field, present = field_of(declared, hints[declared.name], version, flexible)
        (absent if not present else plain if field.tag is None else tagged).append(field)
    tagged.sort(key=lambda field: field.tag or 0)
    return StructOf(cls, flexible, tuple(plain), tuple(tagged), tuple(absent))


def field_of(declared: dataclasses.Field[Any], hint: Any, version: int, flexible: bool) -> tuple[Field, bool]:
    """A field, and whether this version has it."""
    marks = marks_of(hint)
    tag = next((mark for mark in marks if isinstance(mark, Tag)), None)
    everywhere = tag.versions if tag is not None else None
    versions = next((mark for mark in marks if isinstance(mark, Versions)), everywhere)
    present = versions is None or version in versions
    inner = without_null(hint)
    nulls = next((mark for mark in marks if isinstance(mark, Nullable)), None)
    nullable = inner is not None and (nulls is None or version in nulls.versions)
    kind = kind_of(hint if inner is None else inner, version, flexible)
    number = tag.number if tag is not None and version in tag.versions else None
    return Field(declared.name, kind, nullable, number, default_of(declared)), present


def marks_of(hint: Any) -> tuple[Any, ...]:
    """The metadata of an `Annotated` type; empty for other types."""
    return hint.__metadata__ if get_origin(hint) is Annotated else ()


def without_null(hint: Any) -> Any:
    """``X`` for ``X | None``; None for anything else."""
    if any(isinstance(mark, Scalar | Blob) for mark in marks_of(hint)):
        return None
    if get_origin(hint) is Annotated:
        hint = hint.__origin__
    if get_origin(hint) not in (Union, types.UnionType):
        return None
    (inner,) = (arm for arm in get_args(hint) if arm is not type(None))
    return inner


def kind_of(hint: Any, version: int, flexible: bool) -> Kind:
    """The encoding of a type."""
    for mark in marks_of(hint):
        if isinstance(mark, Scalar | Blob):
            return mark
    if get_origin(hint) is Annotated:
        hint = hint.__origin__
    if get_origin(hint) is list:
        return ArrayOf(kind_of(get_args(hint)[0], version, flexible))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return struct_of(hint, version, flexible)
    raise TypeError(f"{hint!r} has no encoding: use the types of odradek.wire.types")


def default_of(declared: dataclasses.Field[Any]) -> Callable[[], Any]:
    """A function that returns the default of a field."""
    if declared.default_factory is not dataclasses.MISSING:
        return declared.default_factory
    if declared.default is dataclasses.MISSING:
        raise TypeError(f"field {declared.name} has no default")
    return functools.partial(constant, declared.default)


def constant(value: object) -> object:
    """The value itself."""
    return value


def has_records(kind: Kind) -> bool:
    """Whether a value may contain record batches."""
    if isinstance(kind, ArrayOf):
        return has_records(kind.element)
    if isinstance(kind, StructOf):
        return any(has_records(field.kind) for field in kind)
    return kind is Blob.RECORDS


def smallest_size(kind: Kind, flexible: bool) -> int:
    """The fewest bytes of a value that is not null."""
    if isinstance(kind, Scalar):
        return struct.calcsize(">" + kind.format)
    if isinstance(kind, StructOf):
        return sum(smallest_field_size(field, flexible) for field in kind.fields) + flexible
    if kind is Blob.UUID:
        return 16
    if flexible:
        return 1
    return 2 if kind is Blob.STRING else 4


def smallest_field_size(field: Field, flexible: bool) -> int:
    """The fewest bytes of a field. Null is never longer than empty."""
    if field.nullable and isinstance(field.kind, StructOf):
        return 1
    return smallest_size(field.kind, flexible)
