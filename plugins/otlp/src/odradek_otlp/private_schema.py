"""Protobuf messages declared here, under names of our own in a pool of their own.

Nothing clashes with packages that have the real ones compiled.
"""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

TYPES = {
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
}


def message_classes(
    package: str, messages: Mapping[str, Mapping[str, tuple[int, str]]]
) -> dict[str, type[Message]]:
    """Compile messages.

    Args:
        package: Of all of them.
        messages: Message: field: (number, type). A type is one of `TYPES` or a message; ``*`` is repeated.
    """
    file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field_name, (number, kind) in fields.items():
            repeated = kind.endswith("*")
            field = message.field.add(name=field_name, number=number)
            field.label = (
                FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            )
            kind = kind.rstrip("*")
            if kind in TYPES:
                field.type = TYPES[kind]
            else:
                field.type = FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{package}.{kind}"
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages}
