"""Protobuf messages declared in Python, in a descriptor pool of their own.

They cannot clash with compiled messages of the same name, and nothing is added to protobuf's default pool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

SCALARS: Final = (
    "bytes", "double", "fixed64", "int32", "int64", "sint32", "sint64", "string", "uint32", "uint64",
)  # fmt: skip
TYPES: Final = {name: FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}") for name in SCALARS}


def message_classes(
    package: str, messages: Mapping[str, Mapping[str, tuple[int, str]]]
) -> dict[str, type[Message]]:
    """Compile messages (proto3).

    Fields that are not declared are unknown fields to protobuf: they are kept and written again.

    Args:
        package: The protobuf package of all of them.
        messages: By message name, by field name: the field number and the type. A type is one of `TYPES` or
            another of these messages; a trailing ``*`` makes the field repeated.

    Returns:
        The classes, by message name.
    """
    file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field_name, (number, kind) in fields.items():
            field = message.field.add(name=field_name, number=number)
            field.label = (
                FieldDescriptorProto.LABEL_REPEATED
                if kind.endswith("*")
                else FieldDescriptorProto.LABEL_OPTIONAL
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
