"""Three ways to let the C parser of protobuf look at a MetricsData without making an object per metric.

A *singular* message field that comes several times is merged, by the rules of protobuf. So a schema in
which repeated fields are declared singular reads the same bytes into one object, and one in which messages
are declared as bytes does not look into them:

* `entry_count`: ResourceMetrics as bytes, to count them;
* `merged_entry`: all ResourceMetrics merged into one, whose parts are bytes;
* `validate`: the real schema with every repeated message declared singular. It refuses what the real one
  refuses, and takes no memory for a million empty messages.

The schemas live in pools of their own; nothing is added to protobuf's default pool.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence
from typing import Final, Protocol, cast

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1 import resource_pb2

from odradek.telemetry.protobuf_fields import NotOtlp

REPEATED: Final = FieldDescriptorProto.LABEL_REPEATED
SINGULAR: Final = FieldDescriptorProto.LABEL_OPTIONAL
BYTES: Final = FieldDescriptorProto.TYPE_BYTES
MESSAGE: Final = FieldDescriptorProto.TYPE_MESSAGE


class MergedEntry(Protocol):
    """All ResourceMetrics of a payload as one."""

    resource: MutableSequence[bytes]
    """One for each ResourceMetrics that has one."""
    scope_metrics: MutableSequence[bytes]
    schema_url: MutableSequence[bytes]

    def SerializeToString(self) -> bytes:  # noqa: N802
        """First all resources, then all scope metrics, then all schema URLs."""


class Merged(Protocol):
    entry: MergedEntry


class Counted(Protocol):
    entries: MutableSequence[bytes]


def shallow_schema() -> tuple[type[Message], type[Message]]:
    """`Merged` and `Counted`."""
    file = FileDescriptorProto(name="odradek/shallow.proto", package="odradek", syntax="proto3")
    entry = file.message_type.add(name="Entry")
    for number, name in enumerate(("resource", "scope_metrics", "schema_url"), start=1):
        entry.field.add(name=name, number=number, label=REPEATED, type=BYTES)
    merged = file.message_type.add(name="Merged")
    merged.field.add(name="entry", number=1, label=SINGULAR, type=MESSAGE, type_name=".odradek.Entry")
    counted = file.message_type.add(name="Counted")
    counted.field.add(name="entries", number=1, label=REPEATED, type=BYTES)
    pool = DescriptorPool()
    pool.Add(file)
    return message_class(pool, "odradek.Merged"), message_class(pool, "odradek.Counted")


def singular_schema() -> type[Message]:
    """MetricsData as OpenTelemetry declares it, but with every repeated message singular."""
    pool = DescriptorPool()
    for module in (common_pb2, resource_pb2, metrics_pb2):
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        for message in file.message_type:
            make_singular(message)
        pool.Add(file)
    return message_class(pool, "opentelemetry.proto.metrics.v1.MetricsData")


def make_singular(message: DescriptorProto) -> None:
    for field in message.field:
        if field.label == REPEATED and field.type == MESSAGE:
            field.label = SINGULAR
    for nested in message.nested_type:
        make_singular(nested)


def message_class(pool: DescriptorPool, name: str) -> type[Message]:
    return GetMessageClass(pool.FindMessageTypeByName(name))


MERGED, COUNTED = shallow_schema()
# Bound once: these run for every push.
parse_merged: Final = cast(Callable[[bytes], Merged], MERGED.FromString)
parse_counted: Final = cast(Callable[[bytes], Counted], COUNTED.FromString)
parse_validated: Final = cast(Callable[[bytes], object], singular_schema().FromString)


def entry_count(data: bytes) -> int:
    """How many ResourceMetrics there are.

    Raises:
        NotOtlp: The bytes are not MetricsData.
    """
    try:
        return len(parse_counted(data).entries)
    except DecodeError as error:
        raise not_otlp(error) from None


def merged_entry(data: bytes) -> MergedEntry:
    """All ResourceMetrics as one.

    Raises:
        NotOtlp: The bytes are not MetricsData.
    """
    try:
        return parse_merged(data).entry
    except DecodeError as error:
        raise not_otlp(error) from None


def validate(data: bytes) -> None:
    """Read every field down to the last attribute.

    Raises:
        NotOtlp: The bytes are not MetricsData, or nested deeper than protobuf allows.
    """
    try:
        parse_validated(data)
    except DecodeError as error:
        raise not_otlp(error) from None


def not_otlp(error: DecodeError) -> NotOtlp:
    return NotOtlp(f"not MetricsData: {error}")
