"""Every declared message in every version, compared with the schema that Kafka itself is generated from.

Apache Kafka publishes its schemas in the jar of kafka-clients.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from odradek.wire.layout import ArrayOf, Field, Kind, StructOf, layout
from odradek.wire.types import NIL_UUID, Blob, Scalar
from random_messages import declared_messages

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
FORMATS = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q", "float64": "d"}
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
NULL_IS_READ = {"PushTelemetryRequest": "metrics"}
"""Fields that may be null here and not in Kafka, by message: librdkafka sends null."""


@dataclass(frozen=True, slots=True)
class Row:
    """A field as both sides describe it: a message is a tuple of rows."""

    name: str
    """In small letters, without separators."""
    kind: Any
    nullable: bool
    tag: int | None
    default: Any


@dataclass(frozen=True, slots=True)
class Schema:
    """One message of Kafka."""

    json: Mapping[str, Any]

    @property
    def versions(self) -> tuple[int, int]:
        return span(self.json["validVersions"])

    def rows(self, version: int) -> tuple[Row, ...]:
        """The fields of a version, in the order of the bytes."""
        structs = {struct["name"]: struct["fields"] for struct in self.json.get("commonStructs", ())}
        return rows_of(self.json["fields"], structs, version)


def span(versions: str) -> tuple[int, int]:
    """First and last version of ``0-3``, ``2+``, ``4`` or ``none``."""
    if versions == "none":
        return (1, 0)
    first, separator, last = versions.partition("-")
    if versions.endswith("+"):
        return (int(versions[:-1]), 0x7FFF)
    return (int(first), int(last) if separator else int(first))


def is_in(version: int, versions: str) -> bool:
    first, last = span(versions)
    return first <= version <= last


def rows_of(fields: Any, structs: Mapping[str, Any], version: int) -> tuple[Row, ...]:
    rows = [row_of(field, structs, version) for field in fields if is_in(version, field["versions"])]
    return tuple(sorted(rows, key=lambda row: -1 if row.tag is None else row.tag))


def row_of(field: Mapping[str, Any], structs: Mapping[str, Any], version: int) -> Row:
    nullable = is_in(version, field.get("nullableVersions", "none"))
    tagged = is_in(version, field.get("taggedVersions", "none"))
    kind = kind_of(field["type"], field, structs, version)
    return Row(
        field["name"].lower(),
        kind,
        nullable,
        field["tag"] if tagged else None,
        default_of(field, kind),
    )


def kind_of(name: str, field: Mapping[str, Any], structs: Mapping[str, Any], version: int) -> Any:
    if name.startswith("[]"):
        return ("array", kind_of(name[2:], field, structs, version))
    if name in FORMATS:
        return FORMATS[name]
    if name in ("string", "bytes", "records", "uuid"):
        return name
    return rows_of(field.get("fields") or structs[name], structs, version)


def default_of(field: Mapping[str, Any], kind: Any) -> Any:
    """The default as text; empty for the natural one of the type."""
    text = str(field.get("default", "")).lower()
    return "" if text in ("0", "false", "0.0") or kind == "records" else as_decimal(text)


def as_decimal(text: str) -> str:
    return str(int(text, 16)) if text.startswith("0x") else text


def ours(shape: StructOf) -> tuple[Row, ...]:
    """The same for a declared message."""
    return tuple(
        Row(field.name.replace("_", ""), our_kind(field.kind), field.nullable, field.tag, our_default(field))
        for field in shape
    )


def our_kind(kind: Kind) -> Any:
    if isinstance(kind, ArrayOf):
        return ("array", our_kind(kind.element))
    if isinstance(kind, Scalar):
        return kind.format
    return ours(kind) if isinstance(kind, StructOf) else kind.value


def our_default(field: Field) -> str:
    if isinstance(field.kind, StructOf):
        return "null" if field.default() is None else ""
    value = field.default()
    if value is None:
        return "null" if field.kind is not Blob.RECORDS else ""
    return "" if not value or value == NIL_UUID else str(value).lower()


@pytest.fixture(scope="module")
def schemas(java_classpath_4_4: str) -> Mapping[str, Schema]:
    """Kafka's messages by name."""
    (jar,) = (
        entry
        for entry in java_classpath_4_4.split(os.pathsep)
        if re.search(r"/kafka-clients-4\.4[^/]*$", entry)
    )
    return dict(in_jar(jar))


def in_jar(jar: str) -> Iterator[tuple[str, Schema]]:
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"common/message/\w+\.json", name):
                schema = json.loads(COMMENT.sub("", archive.read(name).decode()))
                yield schema["name"], Schema(schema)


@pytest.mark.parametrize("cls", declared_messages(), ids=lambda cls: cls.__name__)
def test_the_message_is_kafkas(schemas: Mapping[str, Schema], cls: Any) -> None:
    schema = schemas[cls.__name__]

    assert (cls.VERSIONS.first, cls.VERSIONS.last) == schema.versions
    for version in range(cls.VERSIONS.first, cls.VERSIONS.last + 1):
        shape = layout(cls, version)
        assert shape.flexible == is_in(version, schema.json["flexibleVersions"])
        assert with_kafkas_nulls(cls, ours(shape)) == schema.rows(version), f"version {version}"


def with_kafkas_nulls(cls: type, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows without the exceptions of `NULL_IS_READ`."""
    return tuple(
        replace(row, nullable=False) if row.name == NULL_IS_READ.get(cls.__name__) else row for row in rows
    )
