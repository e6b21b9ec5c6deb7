"""``google.rpc.Status``, the error body of OTLP, without the package that has it compiled.

Only the fields that matter are declared, under names of our own in a pool of our own: nothing clashes with
googleapis-common-protos where that is installed.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

PACKAGE = "odradek.otlp"
RETRY_INFO = "/google.rpc.RetryInfo"
TYPES = {
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
}
MESSAGES = {
    "Status": {"code": (1, "int32"), "message": (2, "string"), "details": (3, "Detail*")},
    "Detail": {"type_url": (1, "string"), "value": (2, "bytes")},
    "RetryInfo": {"retry_delay": (1, "Delay")},
    "Delay": {"seconds": (1, "int64"), "nanos": (2, "int32")},
}
"""Message: field: (number, type); ``*`` is repeated. After google/rpc/{status,error_details}.proto."""


@dataclass(frozen=True, slots=True)
class RpcStatus:
    """What the far side says about a request it did not take."""

    message: str = ""
    retry_after_s: float | None = None
    """None when there is no ``RetryInfo``: the far side does not promise that a retry helps."""


def message_classes() -> dict[str, type[Message]]:
    file = FileDescriptorProto(name="odradek_otlp/rpc_status.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, (number, kind) in fields.items():
            repeated = kind.endswith("*")
            field = message.field.add(name=field_name, number=number)
            field.label = (
                FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            )
            if kind in TYPES:
                field.type = TYPES[kind]
            else:
                field.type = FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{PACKAGE}.{kind.rstrip('*')}"
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in MESSAGES}


CLASSES = message_classes()


def read_status(data: bytes) -> RpcStatus:
    """The message and the wait; empty when the bytes are no ``Status``."""
    try:
        status = CLASSES["Status"].FromString(data)
        after_s = None
        for detail in status.details:  # type: ignore[attr-defined]
            if detail.type_url.endswith(RETRY_INFO):
                delay = CLASSES["RetryInfo"].FromString(detail.value).retry_delay  # type: ignore[attr-defined]
                after_s = max(0.0, delay.seconds + delay.nanos / 1e9)
    except DecodeError:
        return RpcStatus()
    return RpcStatus(status.message, after_s)  # type: ignore[attr-defined]
